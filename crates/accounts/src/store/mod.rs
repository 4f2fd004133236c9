//! The database of members.
//!
//! Statements are here and in [`schema`], in the SQL that SQLite, PostgreSQL, MySQL and MariaDB share. A
//! [`DatabaseConnection`] hides the differences. Values are always parameters: no statement contains text from a
//! visitor.

mod connection;
#[cfg(feature = "postgresql")]
mod connector;
#[cfg(any(feature = "postgresql", feature = "mysql"))]
pub(crate) mod encryption;
#[cfg(feature = "mysql")]
mod mysql;
mod pool;
#[cfg(feature = "postgresql")]
mod postgres;
mod schema;
#[cfg(feature = "sqlite")]
mod sqlite;
pub mod url;

pub use connection::StoreError;
use connection::{DatabaseConnection, RowValues, Value, columns};
use pool::ConnectionPool;
use url::DatabaseUrl;

/// Defines a client that is not part of this build: it only has errors.
#[cfg(any(test, not(all(feature = "mysql", feature = "postgresql", feature = "sqlite"))))]
macro_rules! missing_client {
    ($module:ident, $database:literal, $feature:literal) => {
        mod $module {
            use crate::store::connection::{DatabaseConnection, StoreError};

            const WHY: &str = concat!(
                "this build cannot use ",
                $database,
                "; build with --features ",
                $feature,
                ", or use the package"
            );

            pub(super) fn check<T: ?Sized>(_: &T) -> Result<(), String> {
                Err(WHY.into())
            }

            pub(super) fn open<T: ?Sized>(_: &T) -> Result<Box<dyn DatabaseConnection>, StoreError> {
                Err(StoreError::Failed(WHY.into()))
            }
        }
    };
}
#[cfg(not(feature = "mysql"))]
missing_client!(mysql, "MySQL", "mysql");
#[cfg(not(feature = "postgresql"))]
missing_client!(postgres, "PostgreSQL", "postgresql");
#[cfg(not(feature = "sqlite"))]
missing_client!(sqlite, "SQLite", "sqlite");

/// A member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The id of the row.
    pub(crate) id: i64,
    /// The name as displayed.
    pub name: String,
    pub(crate) key: String,
    pub(crate) look: String,
    /// The hash of the password, as a PHC string.
    pub(crate) password: String,
    /// When the account was made, in seconds since 1970.
    pub created: i64,
    /// Whether login is disabled.
    pub disabled: bool,
    /// Grows with each change that ends all sessions: a new password, disabling, enabling.
    pub(crate) epoch: i64,
}

impl Member {
    /// Whether this session is valid for the current state of the member.
    pub(crate) fn admits(&self, session: &StoredSession) -> bool {
        self.epoch == session.epoch && !self.disabled
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredSession {
    pub(crate) user: i64,
    /// Creation time, in seconds since 1970.
    pub(crate) created: i64,
    /// The last written use, in seconds since 1970.
    pub(crate) seen: i64,
    /// The epoch of the member at the login. A session of another epoch has ended.
    pub(crate) epoch: i64,
}

/// The database of the members.
#[derive(Debug)]
pub struct MemberStore {
    pool: ConnectionPool,
    keys: schema::DatabaseKeys,
}

const USER: &str =
    "SELECT id, name, name_key, name_look, password, created, disabled, epoch FROM tenfold_users";
const SESSION: &str = "SELECT digest, user_id, created, seen, epoch FROM tenfold_sessions";

impl MemberStore {
    /// Opens the database with at most `connections`, and creates missing tables. An error is one line.
    pub fn open(url: &DatabaseUrl, connections: usize) -> Result<MemberStore, String> {
        let pool = ConnectionPool::new(url.clone(), connections);
        let keys = pool
            .with(|connection| schema::prepare(connection))
            .map_err(|fault| format!("cannot use the database {url}: {fault}"))?;
        Ok(MemberStore { pool, keys })
    }

    /// Checks that the database answers. An error is one line.
    pub fn reach(url: &DatabaseUrl) -> Result<(), String> {
        let answered = url.connect().and_then(|mut connection| connection.query("SELECT 1", &[]));
        answered.map(drop).map_err(|fault| format!("cannot use the database {url}: {fault}"))
    }

    /// The signing key of all nodes that share the database.
    pub(crate) fn secret(&self) -> &str {
        &self.keys.secret
    }

    /// The key of the session filter.
    pub(crate) fn filter(&self) -> &str {
        &self.keys.filter
    }

    /// The member whose name has this key.
    pub(crate) fn user_by_key(&self, key: &str) -> Result<Option<Member>, StoreError> {
        self.user_where("name_key = ?", key.into())
    }

    /// The member with this row id.
    pub(crate) fn user(&self, id: i64) -> Result<Option<Member>, StoreError> {
        self.user_where("id = ?", id.into())
    }

    /// The member with the lowest row id from `place` on.
    ///
    /// Row ids are random, so an unknown name gets any member with the same probability. If hashes have different costs, a
    /// login with an unknown name then takes the time of a member's login.
    pub(crate) fn another_user(&self, place: i64) -> Result<Option<Member>, StoreError> {
        self.user_where("id >= ? ORDER BY id LIMIT 1", place.into())
    }

    fn user_where(&self, condition: &'static str, value: Value) -> Result<Option<Member>, StoreError> {
        Ok(self.read(&format!("{USER} WHERE {condition}"), &[value], user)?.pop())
    }

    /// All members, ordered by the key of their names.
    pub fn users(&self) -> Result<Vec<Member>, StoreError> {
        self.read(&format!("{USER} ORDER BY name_key"), &[], user)
    }

    /// Whether an invitation with this digest can be used.
    pub(crate) fn has_invitation(&self, digest: &str, now: i64) -> Result<bool, StoreError> {
        const SQL: &str =
            "SELECT created FROM tenfold_invitations WHERE digest = ? AND used = 0 AND expires > ?";
        Ok(!self.read(SQL, &[digest.into(), now.into()], Ok)?.is_empty())
    }

    /// Stores a new member, and consumes the invitation with this digest. Returns false if there is no such invitation,
    /// and [`StoreError::Taken`] if the name, or a name that looks like it, exists.
    pub(crate) fn add_user(
        &self,
        user: &Member,
        invitation: Option<&str>,
        now: i64,
    ) -> Result<bool, StoreError> {
        self.transaction(|connection| {
            // One registration at a time: two registrations that wait for the rows of a third one would deadlock when it
            // is rolled back.
            let lock =
                format!("SELECT content FROM tenfold_facts WHERE name = 'version'{}", connection.row_lock());
            connection.query(&lock, &[])?;
            if let Some(digest) = invitation {
                let used = connection.execute(
                    "UPDATE tenfold_invitations SET used = ? WHERE digest = ? AND used = 0 AND expires > ?",
                    &[user.id.into(), digest.into(), now.into()],
                )?;
                if used != 1 {
                    return Ok(false);
                }
            }
            connection.execute(
                "INSERT INTO tenfold_users (id, name, name_key, name_look, password, created, disabled, epoch) \
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                &[
                    user.id.into(),
                    user.name.as_str().into(),
                    user.key.as_str().into(),
                    user.look.as_str().into(),
                    user.password.as_str().into(),
                    user.created.into(),
                    i64::from(user.disabled).into(),
                    user.epoch.into(),
                ],
            )?;
            Ok(true)
        })
    }

    /// Sets another password, unless the member changed since `user` was read; returns whether it was set.
    /// Sessions of earlier epochs end.
    pub(crate) fn change_password(&self, user: &Member, password: &str) -> Result<bool, StoreError> {
        let values = [password.into(), user.id.into(), user.epoch.into()];
        let sql = "UPDATE tenfold_users SET password = ?, epoch = epoch + 1 WHERE id = ? AND epoch = ?";
        Ok(self.write(sql, &values)? > 0)
    }

    /// Stores a new hash of the same password, unless the password was changed since `user` was read.
    pub(crate) fn renew_hash(&self, user: &Member, password: &str) -> Result<(), StoreError> {
        let values = [password.into(), user.id.into(), user.epoch.into()];
        self.write("UPDATE tenfold_users SET password = ? WHERE id = ? AND epoch = ?", &values).map(drop)
    }

    pub(crate) fn set_disabled(&self, id: i64, disabled: bool) -> Result<u64, StoreError> {
        let values = [i64::from(disabled).into(), id.into()];
        self.write("UPDATE tenfold_users SET disabled = ?, epoch = epoch + 1 WHERE id = ?", &values)
    }

    /// Removes a member and all sessions, unless it changed since `user` was read; returns whether it was removed.
    pub(crate) fn remove_user(&self, user: &Member) -> Result<bool, StoreError> {
        let values = [user.id.into(), user.epoch.into()];
        Ok(self.write("DELETE FROM tenfold_users WHERE id = ? AND epoch = ?", &values)? > 0)
    }

    pub(crate) fn add_invitation(&self, digest: &str, now: i64, expires: i64) -> Result<u64, StoreError> {
        self.write(
            "INSERT INTO tenfold_invitations (digest, created, expires, used) VALUES (?, ?, ?, 0)",
            &[digest.into(), now.into(), expires.into()],
        )
    }

    pub(crate) fn session(&self, digest: &str) -> Result<Option<StoredSession>, StoreError> {
        let found = self.read(&format!("{SESSION} WHERE digest = ?"), &[digest.into()], session)?.pop();
        Ok(found.map(|(_, session)| session))
    }

    /// Adds a session, unless its member has changed since the session's epoch. `surplus` selects the member's other
    /// sessions that end in return. Returns whether the session was added.
    pub(crate) fn add_session(
        &self,
        digest: &str,
        new: StoredSession,
        surplus: impl FnOnce(Vec<(String, StoredSession)>) -> Vec<String>,
    ) -> Result<bool, StoreError> {
        self.transaction(|connection| {
            let member = format!("{USER} WHERE id = ?{}", connection.row_lock());
            let member = connection.query(&member, &[new.user.into()])?;
            let member = member.into_iter().next().map(user).transpose()?;
            if !member.is_some_and(|member| member.admits(&new)) {
                return Ok(false);
            }
            let others = connection.query(&format!("{SESSION} WHERE user_id = ?"), &[new.user.into()])?;
            let others = others.into_iter().map(session).collect::<Result<_, _>>()?;
            // One statement per row, by primary key: MySQL locks the gaps of a range, and concurrent logins would
            // deadlock.
            for ended in surplus(others) {
                let values = [ended.as_str().into()];
                connection.execute("DELETE FROM tenfold_sessions WHERE digest = ?", &values)?;
            }
            connection.execute(
                "INSERT INTO tenfold_sessions (digest, user_id, created, seen, epoch) VALUES (?, ?, ?, ?, ?)",
                &[digest.into(), new.user.into(), new.created.into(), new.seen.into(), new.epoch.into()],
            )?;
            Ok(true)
        })
    }

    pub(crate) fn touch_session(&self, digest: &str, now: i64) -> Result<u64, StoreError> {
        self.write("UPDATE tenfold_sessions SET seen = ? WHERE digest = ?", &[now.into(), digest.into()])
    }

    pub(crate) fn remove_session(&self, digest: &str) -> Result<u64, StoreError> {
        self.write("DELETE FROM tenfold_sessions WHERE digest = ?", &[digest.into()])
    }

    /// Removes the sessions of a member, except the one with the digest `kept`.
    pub(crate) fn remove_sessions(&self, user: i64, kept: &str) -> Result<u64, StoreError> {
        let values = [user.into(), kept.into()];
        self.write("DELETE FROM tenfold_sessions WHERE user_id = ? AND digest <> ?", &values)
    }

    /// Removes sessions that began or were last used before these times.
    pub(crate) fn remove_old_sessions(&self, created: i64, seen: i64) -> Result<u64, StoreError> {
        let values = [created.into(), seen.into()];
        self.write("DELETE FROM tenfold_sessions WHERE created < ? OR seen < ?", &values)
    }

    pub(crate) fn count_sessions(&self, user: i64, created: i64, seen: i64) -> Result<u64, StoreError> {
        let values = [user.into(), created.into(), seen.into()];
        let sql = "SELECT COUNT(*) FROM tenfold_sessions WHERE user_id = ? AND created >= ? AND seen >= ?";
        let counts = self.read(sql, &values, |row| columns(row).and_then(|[count]| count.number()))?;
        Ok(counts.first().map_or(0, |count| count.unsigned_abs()))
    }

    fn read<T>(
        &self,
        sql: &str,
        values: &[Value],
        row: impl Fn(RowValues) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let rows = self.pool.read(|connection| connection.query(sql, values))?;
        rows.into_iter().map(row).collect()
    }

    fn write(&self, sql: &str, values: &[Value]) -> Result<u64, StoreError> {
        self.pool.with(|connection| connection.execute(sql, values))
    }

    /// Runs `steps` in a transaction, which is rolled back if they return false or an error.
    fn transaction(
        &self,
        steps: impl FnOnce(&mut dyn DatabaseConnection) -> Result<bool, StoreError>,
    ) -> Result<bool, StoreError> {
        self.pool.with(|connection| {
            connection.begin()?;
            match steps(connection) {
                Ok(true) => connection.execute("COMMIT", &[]).map(|_| true),
                Ok(false) => connection.execute("ROLLBACK", &[]).map(|_| false),
                Err(fault) => match connection.execute("ROLLBACK", &[]) {
                    Ok(_) => Err(fault),
                    Err(worse) => Err(worse),
                },
            }
        })
    }
}

fn user(row: RowValues) -> Result<Member, StoreError> {
    let [id, name, key, look, password, created, disabled, epoch] = columns(row)?;
    Ok(Member {
        id: id.number()?,
        name: name.text()?,
        key: key.text()?,
        look: look.text()?,
        password: password.text()?,
        created: created.number()?,
        disabled: disabled.number()? != 0,
        epoch: epoch.number()?,
    })
}

fn session(row: RowValues) -> Result<(String, StoredSession), StoreError> {
    let [digest, user, created, seen, epoch] = columns(row)?;
    let (user, epoch) = (user.number()?, epoch.number()?);
    Ok((digest.text()?, StoredSession { user, created: created.number()?, seen: seen.number()?, epoch }))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_client_that_is_not_built_is_named_with_its_feature() {
        missing_client!(oracle, "Oracle", "oracle");
        let why = "this build cannot use Oracle; build with --features oracle, or use the package";
        assert_eq!(oracle::check("oracle://db/x"), Err(why.to_owned()));
        assert_eq!(oracle::open("oracle://db/x").err().map(|error| error.to_string()), Some(why.to_owned()));
    }
}
