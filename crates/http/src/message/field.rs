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

const fn is_value(bytes: &[u8]) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        let edge = at == 0 || at + 1 == bytes.len();
        match bytes[at] {
            b'\t' | b' ' if !edge => {}
            0..=b' ' | 0x7f => return false,
            _ => {}
        }
        at += 1;
    }
    true
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
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' => {}
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`'
            | b'|' | b'~' => {}
            _ => return false,
        }
        at += 1;
    }
    !bytes.is_empty()
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
