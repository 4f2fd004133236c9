//! The interface of a database: statements with values.

use std::fmt::{self, Write};

/// A value of a statement or a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(i64),
    Text(String),
}

/// The values of a row, in the order of its columns.
pub(crate) type RowValues = Vec<Value>;

/// The values of a row with this many columns.
pub(super) fn columns<const N: usize>(row: RowValues) -> Result<[Value; N], StoreError> {
    row.try_into().map_err(|row: RowValues| {
        StoreError::Failed(format!("a row has {} columns instead of {N}", row.len()))
    })
}

/// An open connection. Statements have `?` where values go.
pub(crate) trait DatabaseConnection: Send {
    /// Runs a statement that returns rows.
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<RowValues>, StoreError>;

    /// Runs any other statement, and returns the number of changed rows.
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, StoreError>;

    /// Begins a transaction that will write.
    fn begin(&mut self) -> Result<(), StoreError> {
        self.execute("BEGIN", &[]).map(drop)
    }

    /// Prevents other connections from changing the schema until the connection ends or unlocks it.
    fn lock_schema(&mut self) -> Result<(), StoreError>;

    /// Undoes [`DatabaseConnection::lock_schema`].
    fn unlock_schema(&mut self) -> Result<(), StoreError>;

    /// Whether the file of its URL has not been removed or replaced.
    fn is_current(&self) -> bool {
        true
    }

    /// The suffix of a query that locks its rows until the transaction ends; empty if transactions are serialised.
    fn row_lock(&self) -> &'static str {
        " FOR UPDATE"
    }

    /// Whether the database creates an index for each foreign key.
    fn indexes_foreign_keys(&self) -> bool {
        false
    }

    /// The text after the closing bracket of a new table.
    fn table_suffix(&self) -> &'static str {
        ""
    }
}

/// The reason why a statement failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// A row with this key exists.
    Taken,
    /// The database is unreachable, and the connection is unusable.
    Lost(String),
    /// The database rejects the statement, is locked, or is full.
    Failed(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Taken => f.write_str("a row with this key exists"),
            // One line, without characters that control a terminal.
            StoreError::Lost(why) | StoreError::Failed(why) => {
                let line = why.split_whitespace().collect::<Vec<_>>().join(" ");
                line.chars().try_for_each(|character| match character.is_control() {
                    true => write!(f, "{}", character.escape_default()),
                    false => f.write_char(character),
                })
            }
        }
    }
}

impl From<StoreError> for String {
    fn from(error: StoreError) -> String {
        error.to_string()
    }
}

impl Value {
    pub(crate) fn number(self) -> Result<i64, StoreError> {
        match self {
            Value::Number(number) => Ok(number),
            Value::Text(_) => Err(StoreError::Failed("expected a number, found text".into())),
        }
    }

    pub(crate) fn text(self) -> Result<String, StoreError> {
        match self {
            Value::Text(text) => Ok(text),
            Value::Number(_) => Err(StoreError::Failed("expected text, found a number".into())),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_a_database_is_one_line_without_control_characters() {
        let error = StoreError::Failed("no\n  table \u{1b}[2J\u{9b}ä".to_owned());
        assert_eq!(error.to_string(), "no table \\u{1b}[2J\\u{9b}ä");
    }
}
