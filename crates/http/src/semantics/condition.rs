//! Conditional requests (RFC 9110 §13).

use crate::clock::{self, parse_date};
use crate::message::request::Method;
use crate::message::request::Request;

/// The validators of a representation (RFC 9110 §8.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validators<'a> {
    /// The entity tag, strong, with its quotes.
    pub etag: &'a [u8],
    /// The time of the last modification in seconds since 1970, if known. Within that second, it does not
    /// distinguish two versions for `If-Range`.
    pub modified: Option<u64>,
}

/// The result of a request's conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionResult {
    /// Answer as without conditions.
    Proceed,
    /// 304: the client has this version.
    NotModified,
    /// 412: a condition failed.
    PreconditionFailed,
}

/// Evaluates the conditions of `request` in the order of RFC 9110 §13.2.2, except `If-Range`: see
/// [`range_applies`].
pub fn evaluate(request: &Request<'_>, validators: Validators<'_>) -> ConditionResult {
    match listed(request, "if-match", |tag| tag.strong && tag.text == validators.etag) {
        Some(false) => return ConditionResult::PreconditionFailed,
        Some(true) => {}
        None => {
            if let (Some(date), Some(modified)) = (date(request, "if-unmodified-since"), validators.modified)
                && modified > date
            {
                return ConditionResult::PreconditionFailed;
            }
        }
    }
    let reads = matches!(request.method, Method::Get | Method::Head);
    match listed(request, "if-none-match", |tag| tag.text == validators.etag) {
        Some(true) if reads => ConditionResult::NotModified,
        Some(true) => ConditionResult::PreconditionFailed,
        Some(false) => ConditionResult::Proceed,
        None => match (date(request, "if-modified-since"), validators.modified) {
            (Some(date), Some(modified)) if reads && modified <= date => ConditionResult::NotModified,
            _ => ConditionResult::Proceed,
        },
    }
}

/// Whether the `Range` of this request may be answered with a part. There must be no `If-Range`, or it must
/// identify the present version by a strong validator (RFC 9110 §13.1.5). Otherwise the whole representation
/// is sent.
pub fn range_applies(request: &Request<'_>, validators: Validators<'_>) -> bool {
    let mut values = request.values("if-range");
    let Some(value) = values.next() else { return true };
    if values.next().is_some() {
        return false;
    }
    if value.ends_with(b"\"") {
        return value == validators.etag;
    }
    // A date is a strong validator after its second: versions of the same second share it, but then only the
    // last of them remains (RFC 9110 §8.8.2.2).
    let strong = |modified: &u64| *modified < clock::unix_seconds();
    validators.modified.filter(strong).is_some_and(|modified| parse_date(value) == Some(modified))
}

/// Whether an entity tag in the fields called `name`, or `*`, matches; None without such a field. A malformed
/// member ends its list, because the rest is ambiguous.
fn listed(request: &Request<'_>, name: &str, matches: impl Fn(Tag<'_>) -> bool) -> Option<bool> {
    let mut values = request.values(name).peekable();
    values.peek()?;
    Some(values.any(|value| value == b"*" || Tags { rest: value }.any(&matches)))
}

/// An entity tag (RFC 9110 §8.8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tag<'a> {
    strong: bool,
    /// Including the quotes.
    text: &'a [u8],
}

/// Iterates over the entity tags of a list. Tags can contain commas, so the list cannot be split at them.
struct Tags<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Tags<'a> {
    type Item = Tag<'a>;

    fn next(&mut self) -> Option<Tag<'a>> {
        let begin = self.rest.iter().position(|byte| !b", \t".contains(byte))?;
        let rest = &self.rest[begin..];
        let (strong, rest) = match rest.strip_prefix(b"W/") {
            Some(rest) => (false, rest),
            None => (true, rest),
        };
        let inner = rest.strip_prefix(b"\"")?;
        let end = inner.iter().position(|&byte| byte == b'"')?;
        let (text, rest) = rest.split_at(end + 2);
        // `"a"b` is not a tag, and the rest of its list is ambiguous.
        let ends = rest.trim_ascii_start().first().is_none_or(|&byte| byte == b',');
        let valid = text[1..=end].iter().all(|&byte| byte > b' ' && byte != 0x7f);
        self.rest = if ends { rest } else { &[] };
        (ends && valid).then_some(Tag { strong, text })
    }
}

/// Returns the date in the only field called `name`. An invalid date is ignored.
fn date(request: &Request<'_>, name: &str) -> Option<u64> {
    parse_date(request.only(name)?)
}

#[cfg(test)]
mod tests {
    use super::ConditionResult::{NotModified, PreconditionFailed, Proceed};
    use super::*;
    use crate::h1::parse_request;

    const THEN: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
    const VALIDATORS: Validators<'_> = Validators { etag: b"\"v,1\"", modified: Some(784_111_777) };

    /// A time after [`THEN`].
    const NOW: u64 = 784_111_800;

    fn with_request<T>(method: &str, fields: &[(&str, &str)], use_it: impl FnOnce(&Request<'_>) -> T) -> T {
        clock::set(clock::Instant(0), NOW);
        let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let mut bytes = format!("{method} / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes();
        parse_request(&mut bytes, |request| use_it(&request.expect("the request is well-formed")))
    }

    #[track_caller]
    fn check(method: &str, fields: &[(&str, &str)], expected: ConditionResult) {
        let verdict = with_request(method, fields, |request| evaluate(request, VALIDATORS));
        assert_eq!(verdict, expected, "{method} with {fields:?}");
    }

    #[test]
    fn without_a_condition_everything_proceeds() {
        check("GET", &[], Proceed);
        check("POST", &[], Proceed);
    }

    #[test]
    fn if_none_match_compares_weakly() {
        for value in ["\"v,1\"", "W/\"v,1\"", "*", "\"a\", \"v,1\"", "\"a\",,W/\"v,1\" , \"b\"", ",\t\"v,1\""]
        {
            check("GET", &[("If-None-Match", value)], NotModified);
            check("HEAD", &[("If-None-Match", value)], NotModified);
            check("POST", &[("If-None-Match", value)], PreconditionFailed);
        }
    }

    #[test]
    fn malformed_tags_do_not_match() {
        for value in [
            "\"v\"",
            "v,1",
            "\"v,1",
            "v,1\"",
            "w/\"v,1\"",
            "W/ \"v,1\"",
            "\"v,1\"x",
            "\"a\"\"v,1\"",
            "",
            "'v,1'",
            "\"v 1\"",
            "\"a\" \"v,1\"",
        ] {
            check("GET", &[("If-None-Match", value)], Proceed);
            check("GET", &[("If-Match", value)], PreconditionFailed);
        }
    }

    #[test]
    fn lists_go_on_over_several_fields() {
        check("GET", &[("If-None-Match", "\"a\""), ("if-none-match", "\"v,1\"")], NotModified);
        check("GET", &[("If-Match", "\"a\""), ("if-match", "\"v,1\"")], Proceed);
    }

    #[test]
    fn if_match_compares_strongly() {
        check("GET", &[("If-Match", "\"v,1\"")], Proceed);
        check("GET", &[("If-Match", "*")], Proceed);
        check("GET", &[("If-Match", "\"a\", \"v,1\"")], Proceed);
        check("GET", &[("If-Match", "W/\"v,1\"")], PreconditionFailed);
        check("GET", &[("If-Match", "\"a\"")], PreconditionFailed);
    }

    #[test]
    fn dates_are_compared_to_the_second_in_every_format() {
        for (value, verdict) in [
            (THEN, NotModified),
            ("Sunday, 06-Nov-94 08:49:37 GMT", NotModified),
            ("Sun Nov  6 08:49:37 1994", NotModified),
            (AFTER, NotModified),
            (BEFORE, Proceed),
            ("Sun Nov  6 08:49:36 1994", Proceed),
        ] {
            check("GET", &[("If-Modified-Since", value)], verdict);
        }
        check("GET", &[("If-Unmodified-Since", THEN)], Proceed);
        check("GET", &[("If-Unmodified-Since", BEFORE)], PreconditionFailed);
    }

    #[test]
    fn an_invalid_date_is_ignored() {
        for value in ["", "yesterday", "784111777", "Mon, 06 Nov 1994 08:49:37 GMT", "\u{663e}"] {
            check("GET", &[("If-Modified-Since", value)], Proceed);
            check("GET", &[("If-Unmodified-Since", value)], Proceed);
        }
        check("GET", &[("If-Modified-Since", THEN), ("If-Modified-Since", THEN)], Proceed);
        check("POST", &[("If-Modified-Since", THEN)], Proceed);
    }

    #[test]
    fn the_entity_tag_outranks_the_date() {
        check("GET", &[("If-None-Match", "\"a\""), ("If-Modified-Since", THEN)], Proceed);
        check("GET", &[("If-None-Match", "\"v,1\""), ("If-Modified-Since", BEFORE)], NotModified);
        check("GET", &[("If-Match", "\"v,1\""), ("If-Unmodified-Since", BEFORE)], Proceed);
        check("GET", &[("If-Match", "\"a\""), ("If-None-Match", "\"v,1\"")], PreconditionFailed);
        check("GET", &[("If-Match", "\"v,1\""), ("If-None-Match", "\"v,1\"")], NotModified);
    }

    #[test]
    fn without_a_known_date_only_tags_count() {
        let undated = Validators { modified: None, ..VALIDATORS };
        for name in ["If-Modified-Since", "If-Unmodified-Since"] {
            assert_eq!(with_request("GET", &[(name, BEFORE)], |request| evaluate(request, undated)), Proceed);
        }
        assert!(!with_request("GET", &[("If-Range", THEN)], |request| range_applies(request, undated)));
    }

    #[test]
    fn if_range_holds_for_exactly_this_version() {
        for (value, applies) in [
            ("\"v,1\"", true),
            ("W/\"v,1\"", false),
            ("\"a\"", false),
            ("\"v,1\", \"a\"", false),
            ("*", false),
            ("", false),
            (THEN, true),
            (AFTER, false),
            (BEFORE, false),
        ] {
            let found =
                with_request("GET", &[("If-Range", value)], |request| range_applies(request, VALIDATORS));
            assert_eq!(found, applies, "{value}");
        }
        assert!(with_request("GET", &[], |request| range_applies(request, VALIDATORS)));
        assert!(!with_request("GET", &[("If-Range", THEN), ("If-Range", THEN)], |request| {
            range_applies(request, VALIDATORS)
        }));
    }

    #[test]
    fn a_date_whose_second_is_not_over_is_no_strong_validator() {
        for (modified, applies) in [(NOW - 1, true), (NOW, false), (NOW + 1, false)] {
            let validators = Validators { modified: Some(modified), ..VALIDATORS };
            let date = String::from_utf8(clock::format_date(modified).to_vec()).expect("text");
            let found =
                with_request("GET", &[("If-Range", &date)], |request| range_applies(request, validators));
            assert_eq!(found, applies, "{date}");
        }
    }
}
