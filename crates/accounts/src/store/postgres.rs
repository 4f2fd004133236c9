//! PostgreSQL.

use std::collections::HashMap;
use std::time::Duration;

use postgres::config::SslMode;
use postgres::error::SqlState;
use postgres::types::{ToSql, Type};
use postgres::{Client, Config, Error, NoTls, Statement};

use super::connection::{DatabaseConnection, RowValues, StoreError, Value};
use super::connector::Connector;
use super::encryption::{Encryption, EncryptionNames};

/// The timeout of a connect and of acknowledgements.
const PATIENCE: Duration = Duration::from_secs(5);
/// The server's timeouts for a statement and for a lock.
const STATEMENT: &str = "-c statement_timeout=10000 -c lock_timeout=5000";
/// The lock held during migrations: a number that other programs are unlikely to choose.
const LOCK: i64 = 0x7465_6e66_6f6c_6431;

/// The names of libpq.
pub(super) const NAMES: EncryptionNames = EncryptionNames {
    mode: "sslmode",
    roots: "sslrootcert",
    off: ["disable", "prefer"],
    unverified: "require",
    verified: "verify-full",
};

/// Checks that this library can parse `url`, and that it has no unsupported options.
pub(super) fn check(url: &str) -> Result<(), String> {
    config(url).map(drop)
}

pub(super) fn open(url: &str) -> Result<Box<dyn DatabaseConnection>, StoreError> {
    let (encryption, mut config) = config(url).map_err(StoreError::Failed)?;
    config.connect_timeout(PATIENCE).tcp_user_timeout(PATIENCE).application_name("tenfold");
    if config.get_options().is_none() {
        config.options(STATEMENT);
    }
    let client = match Connector::new(&encryption).map_err(StoreError::Failed)? {
        Some(connector) => config.ssl_mode(SslMode::Require).connect(connector),
        None => config.connect(NoTls),
    };
    let client = client.map_err(fault)?;
    Ok(Box::new(Postgres { client, prepared: HashMap::new() }))
}

fn config(url: &str) -> Result<(Encryption, Config), String> {
    // The library does not know `verify-full` and `sslrootcert`.
    let (encryption, url) = Encryption::take_from(url, &NAMES)?;
    match url.parse() {
        Ok(config) => Ok((encryption, config)),
        // The library's message may contain the typed URL.
        Err(_) => Err("not a URL of a PostgreSQL database such as postgres://USER:PASSWORD@HOST/NAME".into()),
    }
}

struct Postgres {
    client: Client,
    /// Prepared statements, by their text in this crate.
    prepared: HashMap<String, Statement>,
}

impl Postgres {
    fn prepare(&mut self, sql: &str) -> Result<Statement, StoreError> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(&numbered(sql)).map_err(fault)?;
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl DatabaseConnection for Postgres {
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<RowValues>, StoreError> {
        let statement = self.prepare(sql)?;
        let rows = self.client.query(&statement, &parameters(values)).map_err(fault)?;
        rows.iter().map(|row| (0..row.len()).map(|column| value(row, column)).collect()).collect()
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, StoreError> {
        if values.is_empty() {
            return self.client.batch_execute(sql).map(|()| 0).map_err(fault);
        }
        let statement = self.prepare(sql)?;
        self.client.execute(&statement, &parameters(values)).map_err(fault)
    }

    fn lock_schema(&mut self) -> Result<(), StoreError> {
        let lock = format!("SELECT pg_advisory_lock({LOCK})");
        self.client.batch_execute(&lock).map_err(fault)
    }

    fn unlock_schema(&mut self) -> Result<(), StoreError> {
        let unlock = format!("SELECT pg_advisory_unlock({LOCK})");
        self.client.batch_execute(&unlock).map_err(fault)
    }
}

/// Replaces `?` by `$1`, `$2`. Our statements contain `?` nowhere else.
fn numbered(sql: &str) -> String {
    let mut pieces = sql.split('?');
    let first = pieces.next().unwrap_or_default().to_owned();
    (1..).zip(pieces).fold(first, |sql, (number, piece)| format!("{sql}${number}{piece}"))
}

fn parameters(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(parameter).collect()
}

fn parameter(value: &Value) -> &(dyn ToSql + Sync) {
    match value {
        Value::Number(number) => number,
        Value::Text(text) => text,
    }
}

fn value(row: &postgres::Row, column: usize) -> Result<Value, StoreError> {
    let kind = row.columns()[column].type_();
    match *kind {
        Type::INT8 => row.try_get(column).map(Value::Number).map_err(fault),
        // A literal such as 1.
        Type::INT4 => row.try_get(column).map(|number: i32| Value::Number(number.into())).map_err(fault),
        _ => row.try_get(column).map(Value::Text).map_err(fault),
    }
}

fn fault(error: Error) -> StoreError {
    let Some(said) = error.as_db_error() else {
        // The cause has the message of the system.
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        return StoreError::Lost(format!("{error}{cause}"));
    };
    match said.code() {
        &SqlState::UNIQUE_VIOLATION => StoreError::Taken,
        // 57P: the server is starting or stopping.
        code if code.code().starts_with("57P") => StoreError::Lost(said.message().to_owned()),
        // The details may contain values of a row, so they are omitted. The hint names a full disk.
        _ => StoreError::Failed(match said.hint() {
            Some(hint) => format!("{} ({hint})", said.message()),
            None => said.message().to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_numbered() {
        assert_eq!(numbered("SELECT 1"), "SELECT 1");
        assert_eq!(numbered("a = ? AND b = ?"), "a = $1 AND b = $2");
    }
}
