//! Messages of HTTP/2: requests, prepared once before a run, and the check of heads of responses (RFC 9113 §8).

use std::sync::Arc;

use tenfold_wire::hpack::{Block, Constants, FieldList, ListLimits};

use crate::message::request::has_content;
use crate::plan::url::TargetUrl;
use crate::plan::{FORBIDDEN_FIELDS, LoadPlan};

/// The bounds of the fields of a response.
pub(crate) const LIST_LIMITS: ListLimits = ListLimits { size: 64 << 10, fields: 128 };

/// The fields of a request, for any connection to its server.
#[derive(Clone, Debug)]
pub(crate) struct PreparedRequest {
    /// The fields that all requests to the server have.
    pub(crate) constants: Arc<Constants>,
    pub(crate) block: Block,
    /// Bytes of the fields, as RFC 9113 §6.5.2 counts them.
    pub(crate) size: u64,
}

/// The requests of a plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestsToSend<'a> {
    /// By the number of their target.
    pub(crate) prepared: &'a [PreparedRequest],
    /// The body of every request.
    pub(crate) body: &'a [u8],
    /// Whether a hash of each response is computed.
    pub(crate) hash: bool,
}

impl RequestsToSend<'_> {
    /// The bytes of the largest head.
    pub(crate) fn largest_head(&self) -> u64 {
        self.prepared.iter().map(|request| request.size).max().unwrap_or_default()
    }
}

impl PreparedRequest {
    /// Prepares the request for each URL of the plan.
    pub(crate) fn all(plan: &LoadPlan) -> Vec<PreparedRequest> {
        let prepare = |url: &TargetUrl| {
            // Requests to one server differ only in their paths.
            let mut of_server = plan.urls.iter().filter(|other| other.origin() == url.origin());
            let has_one_path = of_server.all(|other| other == url);
            let fields = fields(plan, url);
            let common = fields.iter().filter(|(name, _)| has_one_path || name != ":path");
            let constants = Constants::new(common.map(|(name, value)| (name.as_bytes(), value.as_bytes())));
            let mut block = Block::new();
            for (name, value) in &fields {
                block.field(&constants, name.as_bytes(), value.as_bytes());
            }
            let size = fields.iter().map(|(name, value)| (name.len() + value.len() + 32) as u64).sum();
            PreparedRequest { constants: Arc::new(constants), block, size }
        };
        plan.urls.iter().map(prepare).collect()
    }
}

/// The fields in their order. The field `Host` of a plan replaces the authority of the URL (RFC 9113 §8.3.1).
fn fields(plan: &LoadPlan, url: &TargetUrl) -> Vec<(String, String)> {
    let find = |name: &str| plan.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
    let authority = find("host").map_or_else(|| url.authority(), |(_, value)| value.clone());
    let mut fields: Vec<(String, String)> = [
        (":method", plan.method.clone()),
        (":scheme", (if url.tls { "https" } else { "http" }).to_owned()),
        (":authority", authority),
        (":path", url.target.clone()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    if has_content(plan) && find("content-length").is_none() {
        fields.push(("content-length".to_owned(), plan.body.len().to_string()));
    }
    let others = plan.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host"));
    fields.extend(others.map(|(name, value)| (name.to_ascii_lowercase(), value.clone())));
    fields
}

/// The head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedHead {
    pub(crate) status: u16,
    /// The value of Content-Length.
    pub(crate) length: Option<u64>,
}

impl ReceivedHead {
    /// Whether another head follows (100, 103).
    pub(crate) fn is_interim(self) -> bool {
        self.status < 200
    }

    /// Checks the fields of a head.
    ///
    /// # Errors
    /// The reason why the response is malformed (RFC 9113 §8.1.1).
    pub(crate) fn parse(list: &FieldList) -> Result<ReceivedHead, &'static str> {
        if list.is_over() {
            return Err("the head is larger than 64 KiB, or has more than 128 fields");
        }
        let mut fields = list.iter();
        let status = match fields.next() {
            Some((b":status", &[hundreds @ b'1'..=b'5', tens @ b'0'..=b'9', ones @ b'0'..=b'9'])) => {
                let digits = [hundreds, tens, ones].map(|digit| u16::from(digit - b'0'));
                digits[0] * 100 + digits[1] * 10 + digits[2]
            }
            _ => return Err("the head does not begin with :status from 100 to 599"),
        };
        if status == 101 {
            return Err("status 101 does not exist in HTTP/2");
        }
        let mut length = None;
        for (name, value) in fields {
            check_name(name)?;
            if name == b"content-length" {
                let digits = std::str::from_utf8(value)
                    .ok()
                    .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                let number =
                    digits.and_then(|text| text.parse().ok()).ok_or("Content-Length is not a number")?;
                if length.replace(number).is_some_and(|before| before != number) {
                    return Err("the head has two different lengths");
                }
            }
        }
        Ok(ReceivedHead { status, length })
    }
}

/// Checks the fields after the content.
///
/// # Errors
/// The reason why the response is malformed.
pub(crate) fn check_trailers(list: &FieldList) -> Result<(), &'static str> {
    list.iter().try_for_each(|(name, _)| check_name(name))
}

/// Checks the name of a field that is not a pseudo-field (RFC 9113 §8.2).
fn check_name(name: &[u8]) -> Result<(), &'static str> {
    let is_wrong = |byte: &u8| matches!(byte, 0..=b' ' | b'A'..=b'Z' | b':' | 0x7f..);
    if name.is_empty() || name.iter().any(is_wrong) {
        return Err("the name of a field is not in lower case, or not a name");
    }
    // The shortest and longest of the forbidden names.
    if (7..=17).contains(&name.len()) && FORBIDDEN_FIELDS.iter().any(|other| other.as_bytes() == name) {
        return Err("the head has a field of connections of HTTP/1");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tenfold_wire::hpack::{Decoder, Encoder};

    use super::*;
    use crate::message::request::field;

    /// The fields of the first and of a later request on a connection, as a server decodes them, and their lengths in
    /// bytes.
    fn sent(plan: &LoadPlan, index: usize) -> [(Vec<String>, usize); 2] {
        let prepared = &PreparedRequest::all(plan)[index];
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
        let mut list = FieldList::new(LIST_LIMITS);
        [(); 2].map(|()| {
            let mut bytes = Vec::new();
            encoder.write(&prepared.constants, &prepared.block, &mut bytes);
            list.clear(LIST_LIMITS);
            decoder.decode(&bytes, true, &mut list).expect("our own block");
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let fields = list.iter().map(|(name, value)| format!("{}={}", text(name), text(value)));
            (fields.collect(), bytes.len())
        })
    }

    #[test]
    fn a_request_is_prepared_as_the_plan_says() {
        let mut plan = LoadPlan::new(vec!["https://h:8443/a?b".parse().expect("a URL")]);
        let [(first, _), (later, length)] = sent(&plan, 0);
        assert_eq!(first, later);
        assert_eq!(first, [":method=GET", ":scheme=https", ":authority=h:8443", ":path=/a?b"]);
        assert_eq!(length, 4, "each field is an index");
        plan.method = "POST".into();
        plan.body = b"x=1".to_vec();
        plan.headers = ["Host: other", "Accept: text/html"].map(|text| field(text).expect("a field")).into();
        let [(first, _), (later, _)] = sent(&plan, 0);
        assert_eq!(first, later);
        let mut sorted = first.clone();
        sorted.sort();
        let expected = [
            ":authority=other",
            ":method=POST",
            ":path=/a?b",
            ":scheme=https",
            "accept=text/html",
            "content-length=3",
        ];
        assert_eq!(sorted, expected);
        assert!(first[..4].iter().all(|field| field.starts_with(':')), "{first:?}");
    }

    #[test]
    fn requests_to_one_server_share_their_constant_fields() {
        let urls = ["http://h/a", "http://h/b", "http://other/"].map(|url| url.parse().expect("a URL"));
        let plan = LoadPlan::new(urls.into());
        let prepared = PreparedRequest::all(&plan);
        let lengths: Vec<_> = prepared.iter().map(|request| request.constants.len()).collect();
        assert_eq!(lengths, [1, 1, 1], "the authority; the path / is in the static table");
        assert!(sent(&plan, 1)[1].0.contains(&":path=/b".to_owned()));
    }

    #[test]
    fn malformed_heads_have_a_reason() {
        let parse = |fields: &[(&str, &str)]| {
            let mut block = Vec::new();
            for (name, value) in fields {
                block.extend([0, name.len() as u8]);
                block.extend(name.as_bytes());
                block.push(value.len() as u8);
                block.extend(value.as_bytes());
            }
            let mut list = FieldList::new(LIST_LIMITS);
            Decoder::new().decode(&block, true, &mut list).expect("literals");
            ReceivedHead::parse(&list)
        };
        let ok = (":status", "200");
        assert_eq!(
            parse(&[ok, ("content-length", "5"), ("x", "")]),
            Ok(ReceivedHead { status: 200, length: Some(5) })
        );
        for (fields, why) in [
            (&[][..], ":status"),
            (&[("x", ""), ok], ":status"),
            (&[(":status", "600")], ":status"),
            (&[(":status", "20")], ":status"),
            (&[(":status", "101")], "101"),
            (&[ok, ok], "not a name"),
            (&[ok, ("X", "")], "lower case"),
            (&[ok, ("connection", "close")], "HTTP/1"),
            (&[ok, ("content-length", "+5")], "not a number"),
            (&[ok, ("content-length", "5"), ("content-length", "6")], "two different"),
        ] {
            let said = parse(fields).expect_err(why);
            assert!(said.contains(why), "{fields:?}: {said}");
        }
    }
}
