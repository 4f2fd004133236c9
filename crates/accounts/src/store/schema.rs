//! The tables and their version.

use super::connection::{DatabaseConnection, StoreError};
use crate::token;

/// The version of the tables that this program creates and supports.
const VERSION: u32 = 1;

/// The tables. Each can be created again without harm, because MySQL does not roll back a new table.
const TABLES: [&str; 3] = [
    "CREATE TABLE IF NOT EXISTS tenfold_users (
        id BIGINT NOT NULL PRIMARY KEY,
        name VARCHAR(64) NOT NULL,
        name_key VARCHAR(190) NOT NULL UNIQUE,
        name_look VARCHAR(190) NOT NULL UNIQUE,
        password VARCHAR(255) NOT NULL,
        created BIGINT NOT NULL,
        disabled BIGINT NOT NULL,
        epoch BIGINT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS tenfold_sessions (
        digest VARCHAR(43) NOT NULL PRIMARY KEY,
        user_id BIGINT NOT NULL,
        created BIGINT NOT NULL,
        seen BIGINT NOT NULL,
        epoch BIGINT NOT NULL,
        FOREIGN KEY (user_id) REFERENCES tenfold_users (id) ON DELETE CASCADE)",
    "CREATE TABLE IF NOT EXISTS tenfold_invitations (
        digest VARCHAR(43) NOT NULL PRIMARY KEY,
        created BIGINT NOT NULL,
        expires BIGINT NOT NULL,
        used BIGINT NOT NULL)",
];

/// The index of the foreign key. MySQL creates it by itself.
const INDEX: &str = "CREATE INDEX IF NOT EXISTS tenfold_sessions_user ON tenfold_sessions (user_id)";

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
}

/// Creates the tables if they are missing, and returns the keys of this database.
pub(super) fn prepare(connection: &mut dyn DatabaseConnection) -> Result<DatabaseKeys, StoreError> {
    connection.lock_schema()?;
    let keys = create(connection);
    // After an error the connection is dropped, which releases the lock.
    if keys.is_ok() {
        connection.unlock_schema()?;
    }
    keys
}

fn create(connection: &mut dyn DatabaseConnection) -> Result<DatabaseKeys, StoreError> {
    let suffix = connection.table_suffix();
    connection.execute(&format!("{FACTS}{suffix}"), &[])?;
    match fact(connection, "version")? {
        Some(version) if version == VERSION.to_string() => {}
        Some(version) => {
            return Err(StoreError::Failed(format!(
                "its schema version is {version}, and this program supports {VERSION}; use the program that made it, or \
                 a newer one"
            )));
        }
        None => {
            for table in TABLES {
                connection.execute(&format!("{table}{suffix}"), &[])?;
            }
            if !connection.indexes_foreign_keys() {
                connection.execute(INDEX, &[])?;
            }
            add_fact(connection, "version", &VERSION.to_string())?;
        }
    }
    Ok(DatabaseKeys { secret: key(connection, "secret")?, filter: key(connection, "filter")? })
}

/// The key of this name, which is created if it is missing.
fn key(connection: &mut dyn DatabaseConnection, name: &str) -> Result<String, StoreError> {
    if let Some(key) = fact(connection, name)? {
        return Ok(key);
    }
    let key = token::random().map_err(StoreError::Failed)?;
    add_fact(connection, name, &key)?;
    Ok(key)
}

fn fact(connection: &mut dyn DatabaseConnection, name: &str) -> Result<Option<String>, StoreError> {
    let rows = connection.query("SELECT content FROM tenfold_facts WHERE name = ?", &[name.into()])?;
    rows.into_iter().next().and_then(|mut row| row.pop()).map(|value| value.text()).transpose()
}

fn add_fact(connection: &mut dyn DatabaseConnection, name: &str, content: &str) -> Result<(), StoreError> {
    let values = [name.into(), content.into()];
    connection.execute("INSERT INTO tenfold_facts (name, content) VALUES (?, ?)", &values).map(drop)
}
