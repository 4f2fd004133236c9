//! What a database has to be able to do: run one statement with its values.

use std::fmt;

/// A value of a statement or a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(i64),
    Text(String),
}

/// The values of a row, in the order of its columns.
pub(crate) type Row = Vec<Value>;

/// An open connection. Statements have `?` where values go.
pub(crate) trait Connection: Send {
    /// Runs a statement that gives rows.
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Fault>;

    /// Runs any other, and says how many rows it changed.
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, Fault>;

    /// Begins a transaction that will write.
    fn begin(&mut self) -> Result<(), Fault> {
        self.execute("BEGIN", &[]).map(drop)
    }

    /// Lets nobody else change the tables until the connection ends or says otherwise.
    fn lock_schema(&mut self) -> Result<(), Fault>;

    /// Undoes [`Connection::lock_schema`].
    fn unlock_schema(&mut self) -> Result<(), Fault>;

    /// Whether it still leads to what its URL names. A file can be taken away, or another one put in its place.
    fn is_current(&self) -> bool {
        true
    }

    /// What a query ends with that locks its rows until the transaction ends. Nothing if transactions run one at a
    /// time.
    fn row_lock(&self) -> &'static str {
        " FOR UPDATE"
    }

    /// Whether a foreign key gets an index without being told.
    fn indexes_foreign_keys(&self) -> bool {
        false
    }

    /// What stands behind the closing bracket of a new table.
    fn table_suffix(&self) -> &'static str {
        ""
    }
}

/// Why a statement was not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A row with this key is there already.
    Taken,
    /// The database is gone, or was never there; the connection is of no use any more.
    Lost(String),
    /// The database refuses, is locked or is full.
    Failed(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Taken => f.write_str("a row with this key is there already"),
            // What several lines say stands in one.
            Fault::Lost(why) | Fault::Failed(why) => {
                f.write_str(&why.split_whitespace().collect::<Vec<_>>().join(" "))
            }
        }
    }
}

impl std::error::Error for Fault {}

impl Value {
    pub(crate) fn number(self) -> Result<i64, Fault> {
        match self {
            Value::Number(number) => Ok(number),
            Value::Text(_) => Err(Fault::Failed("a text stands where a number should".into())),
        }
    }

    pub(crate) fn text(self) -> Result<String, Fault> {
        match self {
            Value::Text(text) => Ok(text),
            Value::Number(_) => Err(Fault::Failed("a number stands where a text should".into())),
        }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}
