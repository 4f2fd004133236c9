//! SQLite: a file opened by this process.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, OpenFlags, ToSql, params_from_iter};

use super::connection::{DatabaseConnection, RowValues, StoreError, Value};

/// The longest wait of a statement for another process that writes.
const LOCKED: Duration = Duration::from_secs(5);

/// SQLite accepts every path.
pub(super) fn check(_: &Path) -> Result<(), String> {
    Ok(())
}

/// Opens the existing file at `path`. A missing file is not created, and a symbolic link is not followed.
///
/// Commits are synchronous (`synchronous=FULL`): an acknowledged account survives a power failure.
pub(super) fn open(path: &Path) -> Result<Box<dyn DatabaseConnection>, StoreError> {
    // Read before opening: if the file is replaced in between, the connection is not current.
    let file = file(path);
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = rusqlite::Connection::open_with_flags(in_real_folder(path), flags).map_err(fault)?;
    connection.busy_timeout(LOCKED).map_err(fault)?;
    let settings = [("journal_mode", "WAL"), ("synchronous", "FULL"), ("foreign_keys", "ON")];
    for (name, value) in settings {
        connection.pragma_update(None, name, value).map_err(fault)?;
    }
    Ok(Box::new(Sqlite { connection, path: path.to_owned(), file }))
}

/// Resolves links in the folder of the path: `SQLITE_OPEN_NOFOLLOW` rejects links anywhere in a path.
fn in_real_folder(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match (folder.map(fs::canonicalize), path.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    }
}

struct Sqlite {
    connection: rusqlite::Connection,
    path: PathBuf,
    /// The file at the path when it was opened.
    file: Option<FileIdentity>,
}

/// The identity of a file: device and inode.
type FileIdentity = (u64, u64);

/// The identity of the file at a path; `None` for a database in memory.
fn file(path: &Path) -> Option<FileIdentity> {
    fs::metadata(path).ok().map(|facts| (facts.dev(), facts.ino()))
}

impl DatabaseConnection for Sqlite {
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<RowValues>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(fault)?;
        let count = statement.column_count();
        let mut rows = statement.query(params_from_iter(values)).map_err(fault)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(fault)? {
            let value = |column| {
                Ok(match row.get_ref(column).map_err(fault)? {
                    ValueRef::Integer(number) => Value::Number(number),
                    ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
                    other => {
                        return Err(StoreError::Failed(format!(
                            "unexpected value of type {}",
                            other.data_type()
                        )));
                    }
                })
            };
            all.push((0..count).map(value).collect::<Result<_, _>>()?);
        }
        Ok(all)
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, StoreError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(fault)?;
        statement.execute(params_from_iter(values)).map(|count| count as u64).map_err(fault)
    }

    /// A deferred transaction that reads first and writes later could miss another writer's change.
    fn begin(&mut self) -> Result<(), StoreError> {
        self.execute("BEGIN IMMEDIATE", &[]).map(drop)
    }

    fn lock_schema(&mut self) -> Result<(), StoreError> {
        self.begin()
    }

    fn unlock_schema(&mut self) -> Result<(), StoreError> {
        self.execute("COMMIT", &[]).map(drop)
    }

    fn row_lock(&self) -> &'static str {
        ""
    }

    /// A write to a removed file would be acknowledged and lost.
    fn is_current(&self) -> bool {
        file(&self.path) == self.file
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

fn fault(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => StoreError::Taken,
        _ => StoreError::Failed(error.to_string()),
    }
}
