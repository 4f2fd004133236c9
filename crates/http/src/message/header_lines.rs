//! Fields collected before their head is written.

use super::decimal::Decimal;
use super::field::{FieldName, FieldValue};

/// Fields in order, stored as lines of an HTTP/1 head, so that its encoder copies them unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderLines(Vec<u8>);

impl HeaderLines {
    /// Adds a field.
    pub fn field(&mut self, name: FieldName<'_>, value: FieldValue<'_>) {
        self.push(name.as_str(), value.as_bytes());
    }

    /// Adds a field from a valid name and a valid value.
    pub(crate) fn push(&mut self, name: &str, value: &[u8]) {
        for piece in [name.as_bytes(), b": ", value, b"\r\n"] {
            self.0.extend_from_slice(piece);
        }
    }

    /// Adds a field whose value is a number.
    pub fn number(&mut self, name: FieldName<'_>, value: u64) {
        let number = Decimal::new(value);
        self.field(name, FieldValue::new(number.as_bytes()).expect("digits are a field value"));
    }

    /// Adds a field, and removes all other fields of its name.
    pub fn replace(&mut self, name: FieldName<'_>, value: FieldValue<'_>) {
        let mut kept = HeaderLines::default();
        self.iter()
            .filter(|(other, _)| !is_same(other, name))
            .for_each(|(name, value)| kept.field(name, value));
        kept.field(name, value);
        *self = kept;
    }

    /// Adds the fields of `lines`.
    pub fn append(&mut self, lines: &HeaderLines) {
        self.0.extend_from_slice(&lines.0);
    }

    /// Whether there is no field.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is a field of this name, compared without regard to case.
    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|(other, _)| other.as_str().eq_ignore_ascii_case(name))
    }

    /// Returns each field, in order.
    pub fn iter(&self) -> impl Iterator<Item = (FieldName<'_>, FieldValue<'_>)> {
        // Names and values have no line feed, and names have no colon.
        self.0.split_inclusive(|&byte| byte == b'\n').filter_map(|line| {
            let line = line.strip_suffix(b"\r\n")?;
            let colon = memchr::memchr(b':', line)?;
            let name = FieldName::new(std::str::from_utf8(&line[..colon]).ok()?)?;
            Some((name, FieldValue::new(line.get(colon + 2..)?)?))
        })
    }

    /// Returns the lines of an HTTP/1 head.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

fn is_same(one: &FieldName<'_>, other: FieldName<'_>) -> bool {
    one.as_str().eq_ignore_ascii_case(other.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &'static str) -> FieldValue<'static> {
        FieldValue::constant(text)
    }

    #[test]
    fn fields_are_read_back_as_they_were_added() {
        let mut lines = HeaderLines::default();
        lines.field(FieldName::LOCATION, value("http://a:1/b: c"));
        lines.field(FieldName::constant("X-Empty"), value(""));
        lines.number(FieldName::RETRY_AFTER, 7);
        let fields: Vec<_> = lines.iter().collect();
        let expected = [
            (FieldName::LOCATION, value("http://a:1/b: c")),
            (FieldName::constant("X-Empty"), value("")),
            (FieldName::RETRY_AFTER, value("7")),
        ];
        assert_eq!(fields, expected);
        assert!(lines.contains("retry-after") && !lines.contains("http"));
    }

    #[test]
    fn a_field_replaces_all_of_its_name() {
        let mut lines = HeaderLines::default();
        lines.field(FieldName::constant("vary"), value("a"));
        lines.field(FieldName::ETAG, value("b"));
        lines.field(FieldName::VARY, value("c"));
        lines.replace(FieldName::VARY, value("d"));
        let fields: Vec<_> = lines.iter().collect();
        assert_eq!(fields, [(FieldName::ETAG, value("b")), (FieldName::VARY, value("d"))]);
    }
}
