//! MySQL and MariaDB.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts, OptsBuilder, Params, SslOpts};
use tenfold_tls::certificates::roots::trusted;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::connection::{DatabaseConnection, RowValues, StoreError, Value};
use super::encryption::{Encryption, EncryptionNames};

/// The timeouts of a connect, of a reply, and of the last message of a connection.
const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(10);
const QUIT: Duration = Duration::from_secs(1);
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

/// The names of the client programs of MySQL.
const NAMES: EncryptionNames = EncryptionNames {
    mode: "ssl-mode",
    roots: "ssl-ca",
    off: ["DISABLED", "PREFERRED"],
    unverified: "REQUIRED",
    verified: "VERIFY_IDENTITY",
};

/// Checks that this library can parse `url`, and that it has no unsupported options.
pub(super) fn check(url: &str) -> Result<(), String> {
    options(url).map(drop)
}

fn options(url: &str) -> Result<(Encryption, Opts), String> {
    // The library has other names.
    let (encryption, url) = Encryption::take_from(url, &NAMES)?;
    match Opts::from_url(&url) {
        Ok(options) if options.ssl_opts().is_some() => {
            Err("a URL of MySQL requests encryption with ssl-mode and ssl-ca only".into())
        }
        // The library does not encrypt a connection to a Unix socket.
        Ok(options) if options.socket().is_some() && encryption != Encryption::Off => {
            Err("ssl-mode has no effect with socket, which stays on this machine".into())
        }
        Ok(options) => Ok((encryption, options)),
        // The library's message may contain the typed URL.
        Err(_) => Err("not a URL of a MySQL database such as mysql://USER:PASSWORD@HOST/NAME".into()),
    }
}

/// Returns the library's options for an encrypted connection; `None` without encryption.
fn encryption_options(encryption: &Encryption) -> Result<Option<SslOpts>, String> {
    let file = match encryption {
        Encryption::Off => return Ok(None),
        Encryption::Unverified => return Ok(Some(SslOpts::default().with_danger_accept_invalid_certs(true))),
        Encryption::Verified(file) => file.as_deref(),
    };
    let roots = trusted(file)
        .map_err(|why| format!("cannot verify the database: {why}; name its authority with ssl-ca"))?;
    let roots = roots.into_iter().map(|root| root.to_vec().into()).collect();
    Ok(Some(SslOpts::default().with_disable_built_in_roots(true).with_root_certs(roots)))
}

pub(super) fn open(url: &str) -> Result<Box<dyn DatabaseConnection>, StoreError> {
    let (encryption, options) = options(url).map_err(StoreError::Failed)?;
    let options = OptsBuilder::from_opts(options)
        // Use the address of the URL, not a local socket.
        .prefer_socket(false)
        .ssl_opts(encryption_options(&encryption).map_err(StoreError::Failed)?)
        .init(FIRST.to_vec());
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| StoreError::Failed(format!("cannot wait for MySQL: {error}")))?;
    let connection = within(&runtime, CONNECT, Conn::new(options))?;
    Ok(Box::new(Mysql { runtime, connection: Some(connection) }))
}

/// Waits for the result of the library, for a limited time.
fn within<T>(
    runtime: &Runtime,
    time: Duration,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, StoreError> {
    match runtime.block_on(async { timeout(time, work).await }) {
        Ok(result) => result.map_err(fault),
        Err(_) => Err(StoreError::Lost(format!("no reply within {} s", time.as_secs()))),
    }
}

/// A connection, and the runtime of its waits.
struct Mysql {
    runtime: Runtime,
    /// `None` after a timeout: a late reply would be taken for the reply to the next statement.
    connection: Option<Conn>,
}

impl Mysql {
    fn with<T>(&mut self, work: impl AsyncFnOnce(&mut Conn) -> Result<T, Error>) -> Result<T, StoreError> {
        let lost = || StoreError::Lost("the connection was lost".into());
        let mut connection = self.connection.take().ok_or_else(lost)?;
        let (connection, result) = within(&self.runtime, ANSWER, async {
            let result = work(&mut connection).await;
            Ok((connection, result))
        })?;
        self.connection = Some(connection);
        result.map_err(fault)
    }
}

impl Drop for Mysql {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            let _ = within(&self.runtime, QUIT, connection.disconnect());
        }
    }
}

impl DatabaseConnection for Mysql {
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<RowValues>, StoreError> {
        let values = parameters(values);
        let rows: Vec<mysql_async::Row> = self.with(async |connection| connection.exec(sql, values).await)?;
        rows.into_iter().map(|row| row.unwrap().into_iter().map(value).collect()).collect()
    }

    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, StoreError> {
        let values = parameters(values);
        self.with(async |connection| {
            // Prepared statements cannot control transactions.
            match values {
                Params::Empty => connection.query_drop(sql).await?,
                values => connection.exec_drop(sql, values).await?,
            }
            Ok(connection.affected_rows())
        })
    }

    fn lock_schema(&mut self) -> Result<(), StoreError> {
        let lock = "SELECT GET_LOCK('tenfold_schema', 5)";
        match self.with(async |connection| connection.query_first(lock).await)? {
            Some(Some(1i64)) => Ok(()),
            // NULL is an error of the server, 0 a lock held by another node.
            _ => Err(StoreError::Failed("another node holds the lock of the schema".into())),
        }
    }

    fn unlock_schema(&mut self) -> Result<(), StoreError> {
        self.with(async |connection| connection.query_drop("SELECT RELEASE_LOCK('tenfold_schema')").await)
    }

    fn indexes_foreign_keys(&self) -> bool {
        true
    }

    /// A binary collation, because the keys of names handle similarity.
    fn table_suffix(&self) -> &'static str {
        " ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
    }
}

fn parameters(values: &[Value]) -> Params {
    let value = |value: &Value| match value {
        Value::Number(number) => mysql_async::Value::Int(*number),
        Value::Text(text) => mysql_async::Value::Bytes(text.clone().into_bytes()),
    };
    match values {
        [] => Params::Empty,
        values => Params::Positional(values.iter().map(value).collect()),
    }
}

fn value(value: mysql_async::Value) -> Result<Value, StoreError> {
    match value {
        mysql_async::Value::Int(number) => Ok(Value::Number(number)),
        mysql_async::Value::UInt(number) => Ok(Value::Number(number.try_into().unwrap_or(i64::MAX))),
        mysql_async::Value::Bytes(bytes) => Ok(Value::Text(String::from_utf8_lossy(&bytes).into_owned())),
        _ => Err(StoreError::Failed("expected a number or text, found another type".into())),
    }
}

fn fault(error: Error) -> StoreError {
    match error {
        Error::Server(said) if said.code == DUPLICATE => StoreError::Taken,
        Error::Server(said) => StoreError::Failed(said.message),
        other => StoreError::Lost(other.to_string()),
    }
}
