//! Requests, encoded once before a run.

use crate::message::response::RequestTraits;
use crate::plan::url::TargetUrl;
use crate::plan::{LoadPlan, RequestVersion, ResponseEnd};

/// The most bytes of consecutive copies of a request, for pipelining.
const MOST_COPIES: usize = 1 << 20;

/// An encoded request.
#[derive(Clone, Debug)]
pub struct EncodedRequest {
    bytes: Vec<u8>,
    length: usize,
}

impl EncodedRequest {
    /// Encodes the request for `url`, and repeats it for pipelining.
    pub fn new(plan: &LoadPlan, url: &TargetUrl) -> EncodedRequest {
        let one = write(plan, url);
        let length = one.len();
        let copies = (plan.pipeline as usize).min((MOST_COPIES / length).max(1));
        EncodedRequest { bytes: one.repeat(copies), length }
    }

    /// The length of one request.
    #[inline]
    pub fn length(&self) -> usize {
        self.length
    }

    /// The number of copies that one call can send.
    #[inline]
    pub fn copies(&self) -> usize {
        self.bytes.len() / self.length
    }

    /// `count` requests without the first `offset` bytes.
    #[inline]
    pub fn piece(&self, offset: usize, count: usize) -> &[u8] {
        &self.bytes[offset..count * self.length]
    }
}

/// The properties of this plan's requests that the framing of responses depends on.
pub fn traits(plan: &LoadPlan) -> RequestTraits {
    RequestTraits {
        head: plan.method == "HEAD",
        to_end: plan.completion == ResponseEnd::End,
        hash: plan.expect.hash.is_some(),
    }
}

fn write(plan: &LoadPlan, url: &TargetUrl) -> Vec<u8> {
    let given = |name: &str| plan.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    let version = if plan.version == RequestVersion::Http10 { "1.0" } else { "1.1" };
    let mut head = format!("{} {} HTTP/{version}\r\n", plan.method, url.target);
    let mut field = |name: &str, value: &str| head += &format!("{name}: {value}\r\n");
    if !given("host") {
        field("Host", &url.authority());
    }
    let persistent = plan.per_connection() > 1 || plan.hold.is_some();
    match plan.version {
        _ if given("connection") => {}
        RequestVersion::Http11 if !persistent => field("Connection", "close"),
        RequestVersion::Http10 if persistent => field("Connection", "keep-alive"),
        _ => {}
    }
    if has_content(plan) && !given("content-length") && !given("transfer-encoding") {
        field("Content-Length", &plan.body.len().to_string());
    }
    for (name, value) in &plan.headers {
        field(name, value);
    }
    let mut bytes = (head + "\r\n").into_bytes();
    match plan.transfer_coding() {
        Some(_) => write_chunks(&plan.body, &mut bytes),
        None => bytes.extend_from_slice(&plan.body),
    }
    bytes
}

/// Writes a body as chunks (RFC 9112 §7.1).
fn write_chunks(body: &[u8], bytes: &mut Vec<u8>) {
    if !body.is_empty() {
        bytes.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
        bytes.extend_from_slice(body);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
}

/// Whether requests have a length, even of an empty body (RFC 9110 §8.6).
pub(super) fn has_content(plan: &LoadPlan) -> bool {
    !plan.body.is_empty() || ["POST", "PUT", "PATCH"].contains(&plan.method.as_str())
}

/// Parses a header field as the user typed it: `Name: value`.
pub fn field(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once(':').ok_or_else(|| format!("{text:?} is not a header field; use 'Name: value'"))?;
    let value = value.trim();
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(format!("{name:?} is not a field name"));
    }
    if value.bytes().any(|byte| byte != b'\t' && (byte < b' ' || byte == 0x7f)) {
        return Err(format!("the value of {name} contains a control character"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Parses a method.
pub fn method(text: &str) -> Result<String, String> {
    let token = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match text {
        "CONNECT" => Err("CONNECT is not supported: it opens a tunnel to another server".into()),
        _ if token => Ok(text.to_owned()),
        _ => Err(format!("{text:?} is not a method")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(url: &str, change: impl FnOnce(&mut LoadPlan)) -> String {
        let url: TargetUrl = url.parse().expect("a URL");
        let mut plan = LoadPlan::new(vec![url.clone()]);
        change(&mut plan);
        String::from_utf8(EncodedRequest::new(&plan, &url).piece(0, 1).to_vec()).expect("it is text")
    }

    #[test]
    fn a_request_is_encoded_as_the_plan_says() {
        assert_eq!(written("http://h:8080/a?b", |_| {}), "GET /a?b HTTP/1.1\r\nHost: h:8080\r\n\r\n");
        assert_eq!(
            written("http://[::1]/", |plan| plan.requests_per_connection = Some(1)),
            "GET / HTTP/1.1\r\nHost: [::1]\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(
            written("h", |plan| plan.version = RequestVersion::Http10),
            "GET / HTTP/1.0\r\nHost: h\r\n\r\n"
        );
        assert_eq!(
            written("h", |plan| (plan.version, plan.keep_alive) = (RequestVersion::Http10, true)),
            "GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n"
        );
        assert_eq!(
            written("h", |plan| {
                plan.method = "POST".into();
                plan.body = b"x=1".to_vec();
                plan.headers = vec![field("host: other").expect("a field")];
            }),
            "POST / HTTP/1.1\r\nContent-Length: 3\r\nhost: other\r\n\r\nx=1"
        );
    }

    #[test]
    fn a_chunked_body_is_encoded() {
        let chunked = |body: &str| {
            written("h", |plan| {
                plan.method = "POST".into();
                plan.body = body.into();
                plan.headers = vec![field("transfer-encoding: chunked").expect("a field")];
            })
        };
        let head = "POST / HTTP/1.1\r\nHost: h\r\ntransfer-encoding: chunked\r\n\r\n";
        assert_eq!(chunked("0123456789abcdef"), format!("{head}10\r\n0123456789abcdef\r\n0\r\n\r\n"));
        assert_eq!(chunked(""), format!("{head}0\r\n\r\n"));
    }

    #[test]
    fn a_zone_is_not_sent() {
        let sent = written("http://[fe80::1%25eth0]:8080/", |_| {});
        assert_eq!(sent, "GET / HTTP/1.1\r\nHost: [fe80::1]:8080\r\n\r\n");
    }

    #[test]
    fn pipelined_copies_are_contiguous() {
        let url: TargetUrl = "h".parse().expect("a URL");
        let mut plan = LoadPlan::new(vec![url.clone()]);
        plan.pipeline = 3;
        let image = EncodedRequest::new(&plan, &url);
        assert_eq!(image.copies(), 3);
        assert_eq!(image.piece(2, 3).len(), 3 * image.length() - 2);
    }

    #[test]
    fn text_that_would_end_a_head_is_refused() {
        for wrong in ["Name", ": x", "a b: c", "a: b\r\nc: d", "a: \0"] {
            assert!(field(wrong).is_err(), "{wrong:?}");
        }
        for wrong in ["", "G ET", "GET\r\n", "CONNECT"] {
            assert!(method(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(field("A:  b c "), Ok(("A".into(), "b c".into())));
    }
}
