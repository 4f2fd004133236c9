//! Edits of response fields by the configuration: set, add, remove.

use std::sync::Arc;

use tenfold_http::{FieldName, FieldValue, HeaderLines, ResponseHead};

/// An edit of a response's fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldEdit {
    name: String,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Set(String),
    Add(String),
    Remove,
}

/// Fields that frame the message or concern the connection; the protocol sets them (RFC 9110 §7.6.1, RFC 9112
/// §6).
const PROTOCOL: &[&str] = &[
    "Connection",
    "Content-Length",
    "Content-Range",
    "Date",
    "Keep-Alive",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Transfer-Encoding",
    "Upgrade",
];

/// The field that describes the content of a file. Other responses do not have it.
const CODING: &str = "Content-Encoding";

/// Fields with a single right value. They can be removed from responses with files.
const FOUND_OUT: &[&str] = &["Accept-Ranges", "ETag", "Last-Modified", "X-Content-Type-Options"];

/// Fields that have settings of their own, with advice.
const ELSEWHERE: &[(&str, &str)] = &[
    ("Allow", "the site decides which methods are served"),
    ("Content-Type", "use the keys types and charset"),
    ("Location", "use a redirect"),
    ("Server", "the setting server-field removes it"),
    ("WWW-Authenticate", "use the key auth"),
];

impl FieldEdit {
    /// Sends this field with this value, and no other field of its name.
    pub fn set(name: &str, value: &str) -> Result<FieldEdit, String> {
        if name.eq_ignore_ascii_case("Vary") {
            return Err(
                "Vary cannot be replaced, because the server's own values must stay; add to it".into()
            );
        }
        if name.eq_ignore_ascii_case(CODING)
            && !value.split(',').all(|coding| FieldName::new(coding.trim()).is_some())
        {
            return Err("Content-Encoding names codings, such as br or gzip".into());
        }
        FieldEdit::with_value(name, value, What::Set(value.to_owned()))
    }

    /// Sends this field in addition to other fields of its name.
    pub fn add(name: &str, value: &str) -> Result<FieldEdit, String> {
        if name.eq_ignore_ascii_case(CODING) {
            return Err(
                "a file has a single Content-Encoding; set it, with several codings in their order".into()
            );
        }
        FieldEdit::with_value(name, value, What::Add(value.to_owned()))
    }

    /// Sends no field of this name.
    pub fn remove(name: &str) -> Result<FieldEdit, String> {
        if name.eq_ignore_ascii_case("Vary") {
            return Err("without Vary, a cache would send one client's response to another".into());
        }
        allowed(name)?;
        Ok(FieldEdit { name: name.to_owned(), what: What::Remove })
    }

    /// Whether the edit concerns this field.
    pub(crate) fn is_of(&self, name: FieldName<'_>) -> bool {
        self.name.eq_ignore_ascii_case(name.as_str())
    }

    fn with_value(name: &str, value: &str, what: What) -> Result<FieldEdit, String> {
        allowed(name)?;
        if is_in(FOUND_OUT, name) {
            return Err(format!("{name} already has the right value; it can only be removed"));
        }
        if FieldValue::new(value.as_bytes()).is_none() {
            return Err("a value cannot contain control characters, or begin or end with a space".into());
        }
        Ok(FieldEdit { name: name.to_owned(), what })
    }
}

fn allowed(name: &str) -> Result<(), String> {
    if FieldName::new(name).is_none() {
        return Err(format!("{name:?} is not the name of a field: letters, digits and hyphens"));
    }
    if is_in(PROTOCOL, name) {
        return Err(format!("{name} belongs to the protocol: a wrong value would break the connection"));
    }
    match ELSEWHERE.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)) {
        Some((_, advice)) => Err(format!("{name} cannot be set here: {advice}")),
        None => Ok(()),
    }
}

fn is_in(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// The result of all edits at a path. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResponseFields(Option<Arc<Inner>>);

#[derive(Debug, Default, PartialEq, Eq)]
struct Inner {
    /// Names of fields that the server does not send itself.
    replaced: Vec<String>,
    lines: Vec<(String, String)>,
}

impl ResponseFields {
    /// Applies `edits` in order.
    pub(crate) fn of(edits: &[FieldEdit]) -> ResponseFields {
        if edits.is_empty() {
            return ResponseFields::default();
        }
        let mut inner = Inner::default();
        for FieldEdit { name, what } in edits {
            if !matches!(what, What::Add(_)) {
                inner.lines.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
                inner.replaced.push(name.clone());
            }
            if let What::Set(value) | What::Add(value) = what {
                inner.lines.push((name.clone(), value.clone()));
            }
        }
        ResponseFields(Some(Arc::new(inner)))
    }

    /// Whether the server sends its own field of this name.
    pub(crate) fn keeps(&self, name: FieldName<'_>) -> bool {
        self.0.as_ref().is_none_or(|inner| {
            !inner.replaced.iter().any(|replaced| replaced.eq_ignore_ascii_case(name.as_str()))
        })
    }

    /// Writes a field of the server, unless the configuration replaces it.
    pub(crate) fn own(&self, head: &mut ResponseHead<'_>, name: FieldName<'_>, value: FieldValue<'_>) {
        if self.keeps(name) {
            head.field(name, value);
        }
    }

    /// Writes the fields that the configuration adds to every response.
    pub(crate) fn write(&self, head: &mut ResponseHead<'_>) {
        self.each(false, |name, value| head.field(name, value));
    }

    /// Writes the coding of the content, if the configuration sets it.
    pub(crate) fn write_coding(&self, head: &mut ResponseHead<'_>) {
        self.each(true, |name, value| head.field(name, value));
    }

    /// Adds the fields that the configuration adds to every response.
    pub(crate) fn render(&self, lines: &mut HeaderLines) {
        self.each(false, |name, value| lines.field(name, value));
    }

    /// Calls `take` with the fields of all responses, or with the fields of content.
    fn each(&self, of_content: bool, mut take: impl FnMut(FieldName<'_>, FieldValue<'_>)) {
        let Some(inner) = &self.0 else { return };
        for (name, value) in inner.lines.iter().filter(|(name, _)| is_in(&[CODING], name) == of_content) {
            let name = FieldName::new(name).expect("an edit's name is a token");
            let value = FieldValue::new(value.as_bytes()).expect("an edit's value is a field value");
            take(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenfold_http::{Out, ResponseWriter};

    fn set(name: &str, value: &str) -> FieldEdit {
        FieldEdit::set(name, value).expect(name)
    }

    fn add(name: &str, value: &str) -> FieldEdit {
        FieldEdit::add(name, value).expect(name)
    }

    fn lines(edits: &[FieldEdit]) -> Vec<String> {
        let mut out = Out::new();
        let mut response = ResponseWriter::http1(&mut out);
        ResponseFields::of(edits).write(&mut response.head(204));
        let text = String::from_utf8_lossy(out.staged_alone().expect("a head is staged")).into_owned();
        text.lines().skip(3).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn edits_are_done_one_after_the_other() {
        assert_eq!(lines(&[]), [""; 0]);
        assert_eq!(lines(&[add("A", "1"), add("a", "2")]), ["A: 1", "a: 2"]);
        assert_eq!(lines(&[add("A", "1"), add("B", "b"), set("a", "3")]), ["B: b", "a: 3"]);
        assert_eq!(lines(&[set("A", "1"), FieldEdit::remove("a").expect("a"), add("A", "4")]), ["A: 4"]);
    }

    #[test]
    fn fields_that_are_set_or_removed_replace_the_servers_fields() {
        let fields =
            ResponseFields::of(&[set("cache-control", "x"), FieldEdit::remove("etag").expect("etag")]);
        assert!(!fields.keeps(FieldName::CACHE_CONTROL));
        assert!(!fields.keeps(FieldName::ETAG));
        assert!(fields.keeps(FieldName::LAST_MODIFIED));
        assert!(ResponseFields::of(&[add("Vary", "Cookie")]).keeps(FieldName::VARY));
    }

    #[test]
    fn a_coding_is_set_for_content_only() {
        let fields = ResponseFields::of(&[set("content-encoding", "br, gzip"), set("A", "1")]);
        assert!(!fields.keeps(FieldName::CONTENT_ENCODING));
        assert_eq!(lines(&[set("content-encoding", "br, gzip"), set("A", "1")]), ["A: 1"]);
        for value in ["", "b r", "br,,gzip", "\"br\""] {
            assert!(FieldEdit::set("Content-Encoding", value).is_err(), "{value:?}");
        }
        assert!(FieldEdit::add("Content-Encoding", "br").is_err());
    }

    #[test]
    fn h56_edits_that_would_break_the_message_are_refused() {
        for name in
            ["content-length", "Transfer-Encoding", "connection", "DATE", "Content-Type", "a b", "", "x:"]
        {
            assert!(FieldEdit::set(name, "x").is_err(), "{name}");
            assert!(FieldEdit::add(name, "x").is_err(), "{name}");
            assert!(FieldEdit::remove(name).is_err(), "{name}");
        }
        for value in ["a\r\nb", "a\0", " a", "a\n"] {
            assert!(FieldEdit::set("X-A", value).is_err(), "{value:?}");
        }
        assert!(FieldEdit::set("ETag", "\"a\"").is_err());
        assert!(FieldEdit::set("Vary", "*").is_err() && FieldEdit::remove("vary").is_err());
    }
}
