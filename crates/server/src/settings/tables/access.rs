//! The keys of who may read: `cors` and `auth`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tenfold_site::{Cors, Hash, Policy, Realm};

use super::{Given, Key, Keys, Reader, Shape, Wrong};
use crate::settings::units::duration;

/// `cors`
pub(super) static CORS: Keys<CorsTable> = Keys {
    of: "cors",
    own: &[
        Key {
            name: "origins",
            shape: Shape::Many(&Shape::Text("https://app.example")),
            about: "the origins whose pages may read; * for all",
            set: |cors, given, _| words(&mut cors.origins, given),
        },
        Key {
            name: "methods",
            shape: Shape::Many(&Shape::Text("GET")),
            about: "methods that a preflight is told; GET and HEAD where nothing is said",
            set: |cors, given, _| some_words(&mut cors.methods, given),
        },
        Key {
            name: "headers",
            shape: Shape::Many(&Shape::Text("X-Requested-With")),
            about: "fields of requests that a preflight is told",
            set: |cors, given, _| some_words(&mut cors.headers, given),
        },
        Key {
            name: "expose",
            shape: Shape::Many(&Shape::Text("ETag")),
            about: "fields of answers that pages may read, beside those that they always may",
            set: |cors, given, _| some_words(&mut cors.expose, given),
        },
        Key {
            name: "max-age",
            shape: Shape::Text("10m"),
            about: "how long a preflight may be remembered",
            set: |cors, given, _| {
                const DAY: Duration = Duration::from_secs(24 * 60 * 60);
                cors.max_age = Some(given.parse(|text| duration(text, Duration::from_secs(1)..=DAY))?);
                Ok(())
            },
        },
        Key {
            name: "credentials",
            shape: Shape::Switch,
            about: "whether pages may send cookies and passwords along",
            set: |cors, given, _| {
                cors.credentials = given.switch()?;
                Ok(())
            },
        },
    ],
    policy: None,
};

#[derive(Default)]
pub(super) struct CorsTable {
    origins: Vec<String>,
    methods: Option<Vec<String>>,
    headers: Option<Vec<String>>,
    expose: Option<Vec<String>>,
    max_age: Option<Duration>,
    credentials: bool,
}

impl CorsTable {
    fn read(self) -> Result<Cors, String> {
        let mut cors = Cors::new(self.origins)?;
        if let Some(methods) = self.methods {
            cors = cors.methods(&methods)?;
        }
        if let Some(headers) = self.headers {
            cors = cors.headers(&headers)?;
        }
        if let Some(expose) = self.expose {
            cors = cors.expose(&expose)?;
        }
        if let Some(time) = self.max_age {
            cors = cors.max_age(time.as_secs());
        }
        if self.credentials { cors.with_credentials() } else { Ok(cors) }
    }
}

pub(super) fn read_cors(
    policy: &mut Policy,
    given: &Given<'_>,
    reader: &mut Reader<'_>,
) -> Result<(), Wrong> {
    policy.cors = Some(match given.is_off() {
        true => None,
        false => {
            let mut table = CorsTable::default();
            CORS.read(given.table()?, &mut table, reader);
            Some(Arc::new(table.read().map_err(|mend| given.wrong(mend))?))
        }
    });
    Ok(())
}

fn words(into: &mut Vec<String>, given: &Given<'_>) -> Result<(), Wrong> {
    *into = given.parse_each(|text| Ok(text.to_owned()))?;
    Ok(())
}

fn some_words(into: &mut Option<Vec<String>>, given: &Given<'_>) -> Result<(), Wrong> {
    words(into.insert(Vec::new()), given)
}

/// `auth`
pub(super) static AUTH: Keys<AuthTable> = Keys {
    of: "auth",
    own: &[
        Key {
            name: "realm",
            shape: Shape::Text("Members"),
            about: "what browsers show of it; `private` where nothing is said",
            set: |auth, given, _| {
                auth.realm = Some(given.text()?.to_owned());
                Ok(())
            },
        },
        Key {
            name: "users",
            shape: Shape::Either(&[
                Shape::Text("users.htpasswd"),
                Shape::Map("alice", &Shape::Text("$2y$10$...")),
            ]),
            about: "hashed passwords (bcrypt or Argon2id) by name, or a file of lines with name:hash",
            set: |auth, given, reader| {
                auth.users = match given.text() {
                    Ok(_) => {
                        let path = given.path(reader)?;
                        read_users(&path).map_err(|mend| given.wrong(mend))?
                    }
                    Err(_) => inline_users(given)?,
                };
                Ok(())
            },
        },
    ],
    policy: None,
};

#[derive(Default)]
pub(super) struct AuthTable {
    realm: Option<String>,
    users: BTreeMap<String, Hash>,
}

pub(super) fn read_auth(
    policy: &mut Policy,
    given: &Given<'_>,
    reader: &mut Reader<'_>,
) -> Result<(), Wrong> {
    policy.auth = Some(match given.is_off() {
        true => None,
        false => {
            let mut table = AuthTable::default();
            AUTH.read(given.table()?, &mut table, reader);
            let realm = Realm::new(table.realm.as_deref().unwrap_or("private"), table.users);
            Some(Arc::new(realm.map_err(|mend| given.wrong(mend))?))
        }
    });
    Ok(())
}

fn inline_users(given: &Given<'_>) -> Result<BTreeMap<String, Hash>, Wrong> {
    let entries = given.entries()?.into_iter();
    entries.map(|(name, hash)| Ok((name.text().to_owned(), hash.parse(Hash::new)?))).collect()
}

/// Reads a file of lines, each a name, a colon and a hash. Empty lines, and those that begin with `#`, say
/// nothing.
fn read_users(path: &Path) -> Result<BTreeMap<String, Hash>, String> {
    let content = std::fs::read_to_string(path)
        .map_err(|error| format!("can not read the users in {}: {error}", path.display()))?;
    let mut users = BTreeMap::new();
    for (number, line) in (1..).zip(content.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |why: &str| format!("{}, line {number}: {why}", path.display());
        let (name, hash) = line.split_once(':').ok_or_else(|| wrong("a line is name:hash"))?;
        let hash = Hash::new(hash).map_err(|why| wrong(&why))?;
        if users.insert(name.to_owned(), hash).is_some() {
            return Err(wrong(&format!("there is a user called {name} already")));
        }
    }
    Ok(users)
}
