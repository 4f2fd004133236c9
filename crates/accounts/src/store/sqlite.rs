//! SQLite: a file, opened by this process.

use std::path::Path;
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, OpenFlags, ToSql, params_from_iter};

use super::connection::{Connection, Fault, Row, Value};

/// How long a statement waits for another process that writes.
const LOCKED: Duration = Duration::from_secs(5);

/// Opens the file at `path`, and makes it where there is none.
///
/// What was committed has been synced (`synchronous=FULL`): an account that was acknowledged is there after the
/// power has failed.
pub(super) fn open(path: &Path) -> Result<Box<dyn Connection>, Fault> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = rusqlite::Connection::open_with_flags(path, flags).map_err(fault)?;
    connection.busy_timeout(LOCKED).map_err(fault)?;
    let settings = [("journal_mode", "WAL"), ("synchronous", "FULL"), ("foreign_keys", "ON")];
    for (name, value) in settings {
        connection.pragma_update(None, name, value).map_err(fault)?;
    }
    Ok(Box::new(connection))
}

impl Connection for rusqlite::Connection {
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Fault> {
        let mut statement = self.prepare_cached(sql).map_err(fault)?;
        let count = statement.column_count();
        let mut rows = statement.query(params_from_iter(values)).map_err(fault)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(fault)? {
            let value = |column| {
                Ok(match row.get_ref(column).map_err(fault)? {
                    ValueRef::Integer(number) => Value::Number(number),
                    ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
                    other => return Err(Fault::Failed(format!("a value is {}", other.data_type()))),
                })
            };
            all.push((0..count).map(value).collect::<Result<_, _>>()?);
        }
        Ok(all)
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, Fault> {
        let mut statement = self.prepare_cached(sql).map_err(fault)?;
        statement.execute(params_from_iter(values)).map(|count| count as u64).map_err(fault)
    }

    /// A transaction that reads first and writes later could find somebody else's change in between.
    fn begin(&mut self) -> Result<(), Fault> {
        Connection::execute(self, "BEGIN IMMEDIATE", &[]).map(drop)
    }

    fn lock_schema(&mut self) -> Result<(), Fault> {
        self.begin()
    }

    fn unlock_schema(&mut self) -> Result<(), Fault> {
        Connection::execute(self, "COMMIT", &[]).map(drop)
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Value::Number(number) => number.to_sql(),
            Value::Text(text) => text.to_sql(),
        }
    }
}

fn fault(error: rusqlite::Error) -> Fault {
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => Fault::Taken,
        _ => Fault::Failed(error.to_string()),
    }
}
