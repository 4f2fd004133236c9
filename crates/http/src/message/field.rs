//! Field names and values that are safe to send: none can break out of its field.

/// The value of a field: visible characters, with single bytes of white space between them, or nothing (RFC
/// 9110 §5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldValue<'a>(&'a [u8]);

impl<'a> FieldValue<'a> {
    /// Returns `bytes` as a value. They must have no control characters except inner tabs, and no white space
    /// at the ends.
    pub const fn new(bytes: &'a [u8]) -> Option<FieldValue<'a>> {
        if is_value(bytes) { Some(FieldValue(bytes)) } else { None }
    }

    /// Returns a constant as a value. Panics if it is invalid.
    pub const fn constant(text: &'static str) -> FieldValue<'static> {
        assert!(is_value(text.as_bytes()), "a field value has a control character, or a space at an end");
        FieldValue(text.as_bytes())
    }

    /// Returns the bytes.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

/// Whether `bytes` are a value. Every field of HTTP/2 is checked, so the loop has no branch for a byte.
const fn is_value(bytes: &[u8]) -> bool {
    let (mut at, mut right) = (0, true);
    while at < bytes.len() {
        let byte = bytes[at];
        right &= (byte >= b' ' || byte == b'\t') & (byte != 0x7f);
        at += 1;
    }
    let begins = !matches!(bytes.first(), Some(b' ' | b'\t'));
    right && begins && !matches!(bytes.last(), Some(b' ' | b'\t'))
}

/// The name of a field: a token (RFC 9110 §5.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldName<'a>(&'a str);

#[allow(missing_docs, reason = "the names are the fields")]
impl FieldName<'static> {
    pub const ACCEPT_RANGES: Self = FieldName::constant("Accept-Ranges");
    pub const ALLOW: Self = FieldName::constant("Allow");
    pub const CACHE_CONTROL: Self = FieldName::constant("Cache-Control");
    pub const CONTENT_ENCODING: Self = FieldName::constant("Content-Encoding");
    pub const ETAG: Self = FieldName::constant("ETag");
    pub const LAST_MODIFIED: Self = FieldName::constant("Last-Modified");
    pub const LOCATION: Self = FieldName::constant("Location");
    pub const RETRY_AFTER: Self = FieldName::constant("Retry-After");
    pub const STRICT_TRANSPORT_SECURITY: Self = FieldName::constant("Strict-Transport-Security");
    pub const VARY: Self = FieldName::constant("Vary");
    pub const X_CONTENT_TYPE_OPTIONS: Self = FieldName::constant("X-Content-Type-Options");
}

impl<'a> FieldName<'a> {
    /// Returns `text` as a name if it is a token.
    pub const fn new(text: &'a str) -> Option<FieldName<'a>> {
        if is_token(text.as_bytes()) { Some(FieldName(text)) } else { None }
    }

    /// Returns a constant as a name. Panics if it is not a token.
    pub const fn constant(text: &'static str) -> FieldName<'static> {
        assert!(is_token(text.as_bytes()), "a field name is not a token");
        FieldName(text)
    }

    /// Returns the name.
    pub const fn as_str(self) -> &'a str {
        self.0
    }
}

/// Whether `bytes` are a token (RFC 9110 §5.6.2).
pub(crate) const fn is_token(bytes: &[u8]) -> bool {
    are_all(&TOKEN, bytes)
}

/// Whether `bytes` are a token without capital letters (RFC 9113 §8.2.1).
pub(crate) const fn is_lower_case_token(bytes: &[u8]) -> bool {
    are_all(&LOWER_CASE_TOKEN, bytes)
}

/// The bytes of a token.
const TOKEN: [bool; 256] = {
    let mut table = LOWER_CASE_TOKEN;
    let mut byte = b'A';
    while byte <= b'Z' {
        table[byte as usize] = true;
        byte += 1;
    }
    table
};

const LOWER_CASE_TOKEN: [bool; 256] = {
    let (mut table, mut at) = ([false; 256], 0);
    let bytes = b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz";
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
};

const fn are_all(table: &[bool; 256], bytes: &[u8]) -> bool {
    let (mut at, mut right) = (0, !bytes.is_empty());
    while at < bytes.len() {
        right &= table[bytes[at] as usize];
        at += 1;
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h56_line_ends_and_control_characters_are_no_value_of_a_field() {
        for wrong in
            [&b"a\r\nb"[..], b"a\rb", b"a\nb", b"a\0b", b"a\x7fb", b"a\x1bb", b" a", b"a ", b"\ta", b" "]
        {
            assert_eq!(FieldValue::new(wrong), None, "{}", wrong.escape_ascii());
        }
        for right in [&b""[..], b"a", b"a b\tc", b"\xc3\xa4", b"/a;b=\"c\""] {
            assert_eq!(FieldValue::new(right).map(FieldValue::as_bytes), Some(right));
        }
        for wrong in ["", "a b", "a:", "a\r\n", "\u{e4}"] {
            assert_eq!(FieldName::new(wrong), None, "{wrong:?}");
        }
    }
}
