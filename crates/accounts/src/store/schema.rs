//! The tables, and the migrations between versions.

use std::collections::BTreeMap;

use super::connection::{DatabaseConnection, StoreError, Value, columns};
use crate::clock::seconds;
use crate::names::looks;
use crate::token;

/// The migrations of each version. Each can be repeated without harm, because MySQL does not roll back a new table.
const VERSIONS: &[&[Migration]] = &[
    &[
        Table(
            "CREATE TABLE IF NOT EXISTS tenfold_users (
        id BIGINT NOT NULL PRIMARY KEY,
        name VARCHAR(64) NOT NULL,
        name_key VARCHAR(190) NOT NULL UNIQUE,
        password VARCHAR(255) NOT NULL,
        created BIGINT NOT NULL,
        disabled BIGINT NOT NULL)",
        ),
        Table(
            "CREATE TABLE IF NOT EXISTS tenfold_sessions (
        digest VARCHAR(43) NOT NULL PRIMARY KEY,
        user_id BIGINT NOT NULL,
        created BIGINT NOT NULL,
        seen BIGINT NOT NULL,
        FOREIGN KEY (user_id) REFERENCES tenfold_users (id) ON DELETE CASCADE)",
        ),
        Table(
            "CREATE TABLE IF NOT EXISTS tenfold_invitations (
        digest VARCHAR(43) NOT NULL PRIMARY KEY,
        created BIGINT NOT NULL,
        expires BIGINT NOT NULL,
        used BIGINT NOT NULL)",
        ),
    ],
    // A session ends if its epoch differs from its member's. Nodes of version 1 insert neither column.
    &[
        Column { table: "tenfold_users", name: "epoch", definition: "BIGINT NOT NULL DEFAULT 0" },
        Column { table: "tenfold_sessions", name: "epoch", definition: "BIGINT NOT NULL DEFAULT 0" },
        ForeignKeyIndex("CREATE INDEX IF NOT EXISTS tenfold_sessions_user ON tenfold_sessions (user_id)"),
    ],
];

/// The looks of names, which may be alike when their keys differ. Programs of the same version that do not know the table
/// do without it, so it changes no version, and [`insert_missing_looks`] inserts what they left out.
const LOOKS: &[Migration] = &[
    Table(
        "CREATE TABLE IF NOT EXISTS tenfold_looks (
        look VARCHAR(190) NOT NULL PRIMARY KEY,
        user_id BIGINT NOT NULL,
        FOREIGN KEY (user_id) REFERENCES tenfold_users (id) ON DELETE CASCADE)",
    ),
    ForeignKeyIndex("CREATE INDEX IF NOT EXISTS tenfold_looks_user ON tenfold_looks (user_id)"),
];

/// The members whose looks one statement inserts.
const MEMBERS: usize = 50;

/// A migration of the tables.
enum Migration {
    /// `CREATE TABLE IF NOT EXISTS`.
    Table(&'static str),
    /// A column, if it is missing: neither SQLite nor MySQL supports `ADD COLUMN IF NOT EXISTS`.
    Column { table: &'static str, name: &'static str, definition: &'static str },
    /// `CREATE INDEX IF NOT EXISTS` on a foreign key.
    ForeignKeyIndex(&'static str),
}
use Migration::{Column, ForeignKeyIndex, Table};

impl Migration {
    fn apply(&self, connection: &mut dyn DatabaseConnection) -> Result<(), StoreError> {
        let statement = match self {
            Table(statement) => format!("{statement}{}", connection.table_suffix()),
            Column { table, name, definition } => {
                let has_it = connection.query(&format!("SELECT {name} FROM {table} WHERE 1 = 0"), &[]);
                match has_it {
                    Ok(_) => return Ok(()),
                    Err(lost @ StoreError::Lost(_)) => return Err(lost),
                    Err(_) => format!("ALTER TABLE {table} ADD COLUMN {name} {definition}"),
                }
            }
            ForeignKeyIndex(_) if connection.indexes_foreign_keys() => return Ok(()),
            ForeignKeyIndex(statement) => (*statement).to_owned(),
        };
        connection.execute(&statement, &[]).map(drop)
    }
}

/// Inserts the looks of members who have none. Of members that look alike, the oldest has the look.
fn insert_missing_looks(connection: &mut dyn DatabaseConnection) -> Result<(), StoreError> {
    const WITHOUT: &str = "SELECT id, name FROM tenfold_users \
        WHERE NOT EXISTS (SELECT 1 FROM tenfold_looks WHERE user_id = tenfold_users.id) ORDER BY created, id";
    for members in connection.query(WITHOUT, &[])?.chunks(MEMBERS) {
        let mut owners = BTreeMap::new();
        for row in members {
            let [id, name] = columns(row.clone())?;
            for look in looks(&name.text()?) {
                owners.entry(look).or_insert(id.clone());
            }
        }
        let places = vec!["?"; owners.len()].join(", ");
        let values: Vec<Value> = owners.keys().map(|look| look.as_str().into()).collect();
        let taken = format!("SELECT look FROM tenfold_looks WHERE look IN ({places})");
        for row in connection.query(&taken, &values)? {
            let [look] = columns(row)?;
            owners.remove(&look.text()?);
        }
        let rows: Vec<_> = owners.into_iter().collect();
        match insert_looks(connection, &rows) {
            // Another node registered a member meanwhile. The next start inserts the others.
            Ok(()) | Err(StoreError::Taken) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Inserts looks with their owners.
///
/// # Errors
/// [`StoreError::Taken`] if a look exists.
pub(super) fn insert_looks(
    connection: &mut dyn DatabaseConnection,
    rows: &[(String, Value)],
) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let places = vec!["(?, ?)"; rows.len()].join(", ");
    let values: Vec<Value> =
        rows.iter().flat_map(|(look, owner)| [look.as_str().into(), owner.clone()]).collect();
    let sql = format!("INSERT INTO tenfold_looks (look, user_id) VALUES {places}");
    connection.execute(&sql, &values).map(drop)
}

const FACTS: &str = "CREATE TABLE IF NOT EXISTS tenfold_facts (
    name VARCHAR(32) NOT NULL PRIMARY KEY,
    content VARCHAR(255) NOT NULL)";

/// The keys of a database, shared by all nodes.
#[derive(Debug)]
pub(super) struct DatabaseKeys {
    /// Known only to the accounts processes.
    pub(super) secret: String,
    /// The key of the session filter, also known to workers.
    pub(super) filter: String,
    /// The creation time of the filter key, in seconds since 1970; 0 if there were no sessions before it.
    pub(super) filter_made: i64,
}

/// Migrates the tables and returns the keys of this database.
///
/// # Errors
/// The error of the database, or its tables are newer than this program.
pub(super) fn prepare(connection: &mut dyn DatabaseConnection) -> Result<DatabaseKeys, StoreError> {
    connection.lock_schema()?;
    let keys = update(connection);
    // After an error the connection is dropped, which releases the lock.
    if keys.is_ok() {
        connection.unlock_schema()?;
    }
    keys
}

fn update(connection: &mut dyn DatabaseConnection) -> Result<DatabaseKeys, StoreError> {
    let suffix = connection.table_suffix();
    connection.execute(&format!("{FACTS}{suffix}"), &[])?;
    let there = match fact(connection, "version")? {
        None => 0,
        Some(text) => text
            .parse()
            .map_err(|_| StoreError::Failed(format!("its schema version {text:?} is not a number")))?,
    };
    let known = VERSIONS.len();
    if there > known {
        return Err(StoreError::Failed(format!(
            "its schema version is {there}, newer than {known}, the newest that this program supports; use \
             a newer program"
        )));
    }
    for change in VERSIONS[there..].iter().copied().flatten() {
        change.apply(connection)?;
    }
    if there < known {
        set_fact(connection, "version", &known.to_string())?;
    }
    // Only the owner of a table may create its index, even if it exists.
    if fact(connection, "looks")?.is_none() {
        LOOKS.iter().try_for_each(|change| change.apply(connection))?;
        set_fact(connection, "looks", "1")?;
    }
    insert_missing_looks(connection)?;
    let random = || token::random().map_err(StoreError::Failed);
    let secret = fact_or(connection, "secret", random)?;
    let made = if there == 0 { 0 } else { seconds() };
    let filter = fact_or(connection, "filter", || Ok(format!("{} {made}", random()?)))?;
    let (key, made) = filter.split_once(' ').unwrap_or((&filter, ""));
    let filter_made = made.parse().map_err(|_| StoreError::Failed("its filter key has no date".into()))?;
    Ok(DatabaseKeys { secret, filter: key.to_owned(), filter_made })
}

/// Reads a fact of the database, and creates it if it is missing.
fn fact_or(
    connection: &mut dyn DatabaseConnection,
    name: &str,
    make: impl FnOnce() -> Result<String, StoreError>,
) -> Result<String, StoreError> {
    if let Some(content) = fact(connection, name)? {
        return Ok(content);
    }
    let content = make()?;
    set_fact(connection, name, &content)?;
    Ok(content)
}

fn fact(connection: &mut dyn DatabaseConnection, name: &str) -> Result<Option<String>, StoreError> {
    let rows = connection.query("SELECT content FROM tenfold_facts WHERE name = ?", &[name.into()])?;
    rows.into_iter().next().and_then(|mut row| row.pop()).map(|value| value.text()).transpose()
}

fn set_fact(connection: &mut dyn DatabaseConnection, name: &str, content: &str) -> Result<(), StoreError> {
    connection.execute("DELETE FROM tenfold_facts WHERE name = ?", &[name.into()])?;
    let values = [name.into(), content.into()];
    connection.execute("INSERT INTO tenfold_facts (name, content) VALUES (?, ?)", &values).map(drop)
}
