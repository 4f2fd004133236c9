//! MySQL and MariaDB.

use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, Error, Opts, OptsBuilder, Params};

use super::connection::{DatabaseConnection, RowValues, StoreError, Value};

/// The timeout for a connect and for a reply.
const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(10);
/// The first statements of a connection. The timeout for a locked table is shorter than that for a reply: otherwise
/// each lock would cost a connection.
const FIRST: [&str; 4] = [
    "SET NAMES utf8mb4",
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
    "SET SESSION innodb_lock_wait_timeout = 5",
    "SET SESSION lock_wait_timeout = 5",
];
/// Duplicate key (ER_DUP_ENTRY).
const DUPLICATE: u16 = 1062;

/// Checks that this library can parse `url`, and that it has no unsupported options.
pub(super) fn check(url: &str) -> Result<(), String> {
    match Opts::from_url(url) {
        // The library would panic if the server has TLS.
        Ok(options) if options.get_ssl_opts().is_some() => {
            Err("connections to MySQL are never encrypted, so its URL must not request encryption; use a socket or a tunnel".into())
        }
        Ok(_) => Ok(()),
        // The library's message may contain the typed URL.
        Err(_) => Err("not a URL of a MySQL database such as mysql://USER:PASSWORD@HOST/NAME".into()),
    }
}

pub(super) fn open(url: &str) -> Result<Box<dyn DatabaseConnection>, StoreError> {
    let options = Opts::from_url(url).map_err(|error| StoreError::Failed(error.to_string()))?;
    let options = OptsBuilder::from_opts(options)
        // Use the address of the URL, not a local socket.
        .prefer_socket(false)
        .tcp_connect_timeout(Some(CONNECT))
        .read_timeout(Some(ANSWER))
        .write_timeout(Some(ANSWER))
        .init(FIRST.to_vec());
    Conn::new(options).map(|connection| Box::new(connection) as Box<dyn DatabaseConnection>).map_err(fault)
}

impl DatabaseConnection for Conn {
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<RowValues>, StoreError> {
        let rows: Vec<mysql::Row> = self.exec(sql, parameters(values)).map_err(fault)?;
        rows.into_iter().map(|row| row.unwrap().into_iter().map(value).collect()).collect()
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, StoreError> {
        // Prepared statements cannot control transactions.
        match values {
            [] => self.query_drop(sql),
            values => self.exec_drop(sql, parameters(values)),
        }
        .map_err(fault)?;
        Ok(self.affected_rows())
    }

    fn lock_schema(&mut self) -> Result<(), StoreError> {
        match self.query_first("SELECT GET_LOCK('tenfold_schema', 5)").map_err(fault)? {
            Some(Some(1i64)) => Ok(()),
            // NULL is an error of the server, 0 a lock held by another node.
            _ => Err(StoreError::Failed("another node holds the lock of the schema".into())),
        }
    }

    fn unlock_schema(&mut self) -> Result<(), StoreError> {
        self.query_drop("SELECT RELEASE_LOCK('tenfold_schema')").map_err(fault)
    }

    fn indexes_foreign_keys(&self) -> bool {
        true
    }

    /// Texts are equal if their bytes are; keys handle similarity.
    fn table_suffix(&self) -> &'static str {
        " ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    }
}

fn parameters(values: &[Value]) -> Params {
    let value = |value: &Value| match value {
        Value::Number(number) => mysql::Value::Int(*number),
        Value::Text(text) => mysql::Value::Bytes(text.clone().into_bytes()),
    };
    match values {
        [] => Params::Empty,
        values => Params::Positional(values.iter().map(value).collect()),
    }
}

fn value(value: mysql::Value) -> Result<Value, StoreError> {
    match value {
        mysql::Value::Int(number) => Ok(Value::Number(number)),
        mysql::Value::UInt(number) => Ok(Value::Number(number.try_into().unwrap_or(i64::MAX))),
        mysql::Value::Bytes(bytes) => Ok(Value::Text(String::from_utf8_lossy(&bytes).into_owned())),
        _ => Err(StoreError::Failed("expected a number or text, found another type".into())),
    }
}

fn fault(error: Error) -> StoreError {
    match error {
        Error::MySqlError(said) if said.code == DUPLICATE => StoreError::Taken,
        Error::MySqlError(said) => StoreError::Failed(said.message),
        other => StoreError::Lost(other.to_string()),
    }
}
