//! The keys of access control: `cors` and `auth`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tenfold_site::{Cors, Realm, StoredHash};
use tenfold_sys::location;

use super::reader::{BadValue, GivenValue, Shape, TableKeys, TableReader, keys};
use crate::config::parse::units::duration;

/// The most bytes of a file of users.
const MOST_USERS: u64 = 1 << 20;

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// `cors`
pub(super) static CORS: TableKeys<CorsTable> = TableKeys {
    of: "cors",
    own: keys! {
        "origins" Shape::Many(&Shape::Text("https://app.example"));
            "origins whose pages may read responses; * for all";
            |cors, given, _| cors.origins = words(given)?;
        "methods" Shape::Many(&Shape::Text("GET"));
            "methods that a preflight allows; default: GET and HEAD";
            |cors, given, _| cors.methods = Some(words(given)?);
        "headers" Shape::Many(&Shape::Text("X-Requested-With"));
            "request header fields that a preflight allows";
            |cors, given, _| cors.headers = Some(words(given)?);
        "expose" Shape::Many(&Shape::Text("ETag"));
            "additional response header fields that pages may read";
            |cors, given, _| cors.expose = Some(words(given)?);
        "max-age" Shape::Text("10m");
            "how long browsers may cache a preflight";
            |cors, given, _| cors.max_age = Some(given.parse(|text| duration(text, SECOND..=DAY))?);
        "credentials" Shape::Switch;
            "whether pages may send cookies and passwords";
            |cors, given, _| cors.credentials = given.switch()?;
    },
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

pub(super) fn read_cors(given: &GivenValue<'_>, reader: &mut TableReader<'_>) -> Result<Arc<Cors>, BadValue> {
    let mut table = CorsTable::default();
    if !CORS.read(given.table()?, &mut table, reader) {
        return Err(BadValue::Reported);
    }
    table.read().map(Arc::new).map_err(|mend| given.wrong(mend))
}

fn words(given: &GivenValue<'_>) -> Result<Vec<String>, BadValue> {
    given.parse_each(|text| Ok(text.to_owned()))
}

/// `auth`
pub(super) static AUTH: TableKeys<AuthTable> = TableKeys {
    of: "auth",
    own: keys! {
        "realm" Shape::Text("Members");
            "the name that browsers show in the password dialog; default: `private`";
            |auth, given, _| auth.realm = Some(given.text()?.to_owned());
        "users" Shape::Either(&[Shape::Text("users.htpasswd"), Shape::Map("alice", &Shape::Text("$2y$10$..."))]);
            "hashed passwords (bcrypt or Argon2id) by user name, or a file with name:hash on each line";
            |auth, given, reader| auth.users = users(given, reader)?;
    },
    policy: None,
};

#[derive(Default)]
pub(super) struct AuthTable {
    realm: Option<String>,
    users: BTreeMap<String, StoredHash>,
}

pub(super) fn read_auth(
    given: &GivenValue<'_>,
    reader: &mut TableReader<'_>,
) -> Result<Arc<Realm>, BadValue> {
    let mut table = AuthTable::default();
    if !AUTH.read(given.table()?, &mut table, reader) {
        return Err(BadValue::Reported);
    }
    let realm = Realm::new(table.realm.as_deref().unwrap_or("private"), table.users);
    realm.map(Arc::new).map_err(|mend| given.wrong(mend))
}

fn users(given: &GivenValue<'_>, reader: &TableReader<'_>) -> Result<BTreeMap<String, StoredHash>, BadValue> {
    if given.text().is_ok() {
        return read_users(&given.path(reader)?).map_err(|mend| given.wrong(mend));
    }
    let entries = given.entries()?.into_iter();
    entries.map(|(name, hash)| Ok((name.text().to_owned(), hash.parse(StoredHash::new)?))).collect()
}

/// Reads a file of lines, each with a name, a colon and a hash. As in Apache and nginx, further columns, a byte-order
/// mark, empty lines and lines that begin with `#` are ignored.
fn read_users(path: &Path) -> Result<BTreeMap<String, StoredHash>, String> {
    let content = location::read_text(path, MOST_USERS)
        .map_err(|error| format!("cannot read the users in {}: {error}", path.display()))?;
    let content = content.strip_prefix('\u{feff}').unwrap_or(&content);
    let mut users = BTreeMap::new();
    for (number, line) in (1..).zip(content.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |why: &str| format!("{}, line {number}: {why}", path.display());
        let (name, hash) = line.split_once(':').ok_or_else(|| wrong("a line is name:hash"))?;
        let hash = hash.split_once(':').map_or(hash, |(hash, _)| hash).trim_end();
        let hash = StoredHash::new(hash).map_err(|why| wrong(&why))?;
        if users.insert(name.to_owned(), hash).is_some() {
            return Err(wrong(&format!("there is a user called {name} already")));
        }
    }
    Ok(users)
}
