//! Fields that are rendered ahead of the head they stand in.

use crate::field::{FieldName, FieldValue};
use crate::response::Decimal;

/// Lines of fields, each with its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines(Vec<u8>);

impl Lines {
    /// Adds a field.
    pub fn field(&mut self, name: FieldName<'_>, value: FieldValue<'_>) {
        self.line(name, value.as_bytes());
    }

    /// Adds a field whose value is a number.
    pub fn number(&mut self, name: FieldName<'_>, value: u64) {
        self.line(name, Decimal::new(value).as_bytes());
    }

    /// Puts other lines behind these.
    pub fn append(&mut self, lines: &Lines) {
        self.0.extend_from_slice(&lines.0);
    }

    /// The bytes, as they stand in a head.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn line(&mut self, name: FieldName<'_>, value: &[u8]) {
        for piece in [name.as_str().as_bytes(), b": ", value, b"\r\n"] {
            self.0.extend_from_slice(piece);
        }
    }
}
