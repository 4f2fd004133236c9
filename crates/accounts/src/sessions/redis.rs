//! Sessions in Valkey or Redis, which several nodes can share.
//!
//! A session is `tenfold:session:DIGEST`, which the server expires; `tenfold:member:ID` is the set of a member's
//! sessions.

use std::fmt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::{
    Client, Commands, Connection, ExistenceCheck, RedisError, RedisResult, SetExpiry, SetOptions,
    TlsCertificates,
};
use tenfold_tls::certificates::roots;

use crate::store::encryption::{root_file, take_parameters};
use crate::store::url::{self, without_password};
use crate::store::{StoreError, StoredSession};

/// The timeout for a connect and for a reply.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most idle connections.
const KEPT: usize = 8;
/// The lifetime of the set of a member's sessions after the last began, longer than any session.
const SET_LIVES: i64 = 366 * 24 * 60 * 60;

pub(crate) struct Redis {
    client: Client,
    name: String,
    idle: Mutex<Vec<Connection>>,
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Redis {
    /// Opens the store at `url` and checks that it answers.
    pub(crate) fn open(url: &str) -> Result<Redis, String> {
        let read = url.strip_prefix("file:").map(|path| url::read(Path::new(path))).transpose()?;
        // Only the path, because an invalid URL in a file may contain a password.
        let name = if read.is_some() { url.to_owned() } else { without_password(url) };
        let url = read.as_deref().unwrap_or(url);
        let client = client(url).map_err(|why| format!("cannot use the sessions {name}: {why}"))?;
        let redis = Redis { client, name, idle: Mutex::default() };
        redis
            .with(|connection| redis::cmd("PING").query::<String>(connection))
            .map_err(|fault| format!("cannot use the sessions {}: {fault}", redis.name))?;
        Ok(redis)
    }

    pub(crate) fn find(&self, digest: &str) -> Result<Option<StoredSession>, StoreError> {
        let kept: Option<String> = self.with(|connection| connection.get(session_key(digest)))?;
        Ok(kept.as_deref().and_then(read))
    }

    /// Adds a session that expires after `seconds`.
    pub(crate) fn begin(&self, digest: &str, session: StoredSession, seconds: i64) -> Result<(), StoreError> {
        let set = member_key(session.user);
        self.with(|connection| {
            redis::pipe()
                .atomic()
                .set_ex(session_key(digest), text(session), seconds.unsigned_abs())
                .ignore()
                .sadd(&set, digest)
                .ignore()
                .expire(&set, SET_LIVES)
                .ignore()
                .query(connection)
        })
    }

    /// Replaces a session, unless it has ended.
    pub(crate) fn touch(&self, digest: &str, session: StoredSession, seconds: i64) -> Result<(), StoreError> {
        let options = SetOptions::default()
            .conditional_set(ExistenceCheck::XX)
            .with_expiration(SetExpiry::EX(seconds.unsigned_abs()));
        self.with(|connection| connection.set_options(session_key(digest), text(session), options.clone()))
    }

    pub(crate) fn end(&self, digest: &str) -> Result<(), StoreError> {
        let user = self.find(digest)?.map(|session| session.user);
        self.with(|connection| {
            let mut pipe = redis::pipe();
            pipe.atomic().del(session_key(digest)).ignore();
            if let Some(user) = user {
                pipe.srem(member_key(user), digest).ignore();
            }
            pipe.query(connection)
        })
    }

    /// Ends these sessions of a member.
    pub(crate) fn end_all(&self, user: i64, digests: &[String]) -> Result<(), StoreError> {
        if digests.is_empty() {
            return Ok(());
        }
        self.with(|connection| {
            let keys: Vec<_> = digests.iter().map(|digest| session_key(digest)).collect();
            redis::pipe()
                .atomic()
                .del(&keys)
                .ignore()
                .srem(member_key(user), digests)
                .ignore()
                .query(connection)
        })
    }

    /// The digests of a member's sessions, including some that have expired.
    pub(crate) fn digests(&self, user: i64) -> Result<Vec<String>, StoreError> {
        self.with(|connection| connection.smembers(member_key(user)))
    }

    /// A member's sessions; expired ones are removed from the set.
    pub(crate) fn sessions(&self, user: i64) -> Result<Vec<(String, StoredSession)>, StoreError> {
        let digests = self.digests(user)?;
        if digests.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<_> = digests.iter().map(|digest| session_key(digest)).collect();
        let kept: Vec<Option<String>> = self.with(|connection| connection.mget(&keys))?;
        let (mut live, mut over) = (Vec::new(), Vec::new());
        for (digest, kept) in digests.into_iter().zip(kept) {
            match kept.as_deref().and_then(read) {
                Some(session) => live.push((digest, session)),
                None => over.push(digest),
            }
        }
        self.end_all(user, &over).map(|()| live)
    }

    /// Runs a command on a connection of its own, which is dropped after an error.
    fn with<T>(&self, mut command: impl FnMut(&mut Connection) -> RedisResult<T>) -> Result<T, StoreError> {
        let lost = |error: RedisError| StoreError::Lost(error.to_string());
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(mut connection) = kept {
            match command(&mut connection) {
                Ok(value) => {
                    self.give_back(connection);
                    return Ok(value);
                }
                // The server may have restarted; every command here can be repeated.
                Err(_) => self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear(),
            }
        }
        let mut connection = self.client.get_connection_with_timeout(PATIENCE).map_err(lost)?;
        connection.set_read_timeout(Some(PATIENCE)).map_err(lost)?;
        connection.set_write_timeout(Some(PATIENCE)).map_err(lost)?;
        let value = command(&mut connection).map_err(lost)?;
        self.give_back(connection);
        Ok(value)
    }

    fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push(connection);
        }
    }
}

/// A client of the server at `url`. With `rediss:` the connection is encrypted, and the certificate is one for the host
/// of the URL; roots are those of the system, or those in the file `sslrootcert`.
fn client(url: &str) -> Result<Client, String> {
    const ROOTS: &str = "sslrootcert";
    let (url, [file]) = take_parameters(url, [ROOTS]);
    if url.contains(ROOTS) {
        // The client would ignore it, and trust the roots of the system.
        return Err(format!("{ROOTS} is not a parameter here; write an @ in the query as %40"));
    }
    let Some(file) = file else { return Client::open(url).map_err(|error| error.to_string()) };
    let pem = roots::pem(&root_file(ROOTS, &file)?);
    let pem = pem.map_err(|why| format!("cannot read root certificates in {why}"))?;
    let certificates = TlsCertificates { client_tls: None, root_cert: Some(pem) };
    Client::build_with_tls(url, certificates).map_err(|error| error.to_string())
}

fn session_key(digest: &str) -> String {
    format!("tenfold:session:{digest}")
}

fn member_key(user: i64) -> String {
    format!("tenfold:member:{user}")
}

fn text(session: StoredSession) -> String {
    let StoredSession { user, created, seen, epoch } = session;
    format!("{user} {created} {seen} {epoch}")
}

/// Sessions from versions without epochs have the first epoch.
fn read(kept: &str) -> Option<StoredSession> {
    let mut numbers = kept.split(' ').map(str::parse);
    let mut number = || numbers.next()?.ok();
    let (user, created, seen) = (number()?, number()?, number()?);
    Some(StoredSession { user, created, seen, epoch: number().unwrap_or(0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h78_the_content_of_a_url_file_is_not_shown() {
        let path = std::env::temp_dir().join(format!("tenfold-redis-{}", std::process::id()));
        for content in ["hunter2", "redis:/:hunter2@127.0.0.1", "redis://:hunter2@127.0.0.1:1"] {
            std::fs::write(&path, content).expect("a temporary folder");
            let why = Redis::open(&format!("file:{}", path.display())).expect_err("there is none");
            assert!(why.contains(&format!("file:{}", path.display())) && !why.contains("hunter2"), "{why}");
        }
        std::fs::remove_file(&path).expect("our own file");
    }

    #[test]
    fn only_a_regular_file_has_root_certificates() {
        let why = client("rediss://127.0.0.1:1?sslrootcert=/dev/null").expect_err("it is a device");
        assert_eq!(why, "cannot read root certificates in /dev/null: it is not a regular file");
    }
}
