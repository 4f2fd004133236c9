//! Requests, written out once before a run, so that to send one is to send bytes that are there.

use crate::message::response::RequestTraits;
use crate::plan::url::TargetUrl;
use crate::plan::{LoadPlan, RequestVersion, ResponseEnd};

/// Bytes of copies of a request that lie one behind the other, for pipelining.
const MOST_COPIES: usize = 1 << 20;

/// A request, written out.
#[derive(Clone, Debug)]
pub struct EncodedRequest {
    bytes: Vec<u8>,
    length: usize,
}

impl EncodedRequest {
    /// Writes the request for `url` out, as often in a row as it can be pipelined.
    pub fn new(plan: &LoadPlan, url: &TargetUrl) -> EncodedRequest {
        let one = write(plan, url);
        let length = one.len();
        let copies = (plan.pipeline as usize).min((MOST_COPIES / length).max(1));
        EncodedRequest { bytes: one.repeat(copies), length }
    }

    /// Bytes of one.
    #[inline]
    pub fn length(&self) -> usize {
        self.length
    }

    /// How many can be sent as one piece.
    #[inline]
    pub fn copies(&self) -> usize {
        self.bytes.len() / self.length
    }

    /// `count` of them, without the first `offset` bytes.
    #[inline]
    pub fn piece(&self, offset: usize, count: usize) -> &[u8] {
        &self.bytes[offset..count * self.length]
    }
}

/// What responses of this plan depend on.
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
        field("Host", &url.server.authority());
    }
    let persistent = plan.per_connection() > 1 || plan.hold.is_some();
    match plan.version {
        _ if given("connection") => {}
        RequestVersion::Http11 if !persistent => field("Connection", "close"),
        RequestVersion::Http10 if persistent => field("Connection", "keep-alive"),
        _ => {}
    }
    let has_body = !plan.body.is_empty() || ["POST", "PUT", "PATCH"].contains(&plan.method.as_str());
    if has_body && !given("content-length") && !given("transfer-encoding") {
        field("Content-Length", &plan.body.len().to_string());
    }
    for (name, value) in &plan.headers {
        field(name, value);
    }
    let mut bytes = (head + "\r\n").into_bytes();
    bytes.extend_from_slice(&plan.body);
    bytes
}

/// Reads a field as it is typed: `Name: value`.
///
/// # Errors
/// In words, when it is none.
pub fn field(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once(':').ok_or_else(|| format!("{text:?} is no field; write 'Name: value'"))?;
    let value = value.trim();
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(format!("{name:?} is no name of a field"));
    }
    if value.bytes().any(|byte| byte != b'\t' && (byte < b' ' || byte == 0x7f)) {
        return Err(format!("the value of {name} holds a control character"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Reads a method.
///
/// # Errors
/// In words, when it is none, or one whose response is no response (CONNECT).
pub fn method(text: &str) -> Result<String, String> {
    let token = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    match text {
        "CONNECT" => {
            Err("CONNECT opens a tunnel and is answered by what is behind it; it is not measured".into())
        }
        _ if token => Ok(text.to_owned()),
        _ => Err(format!("{text:?} is no method")),
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
    fn a_request_is_written_as_it_was_asked_for() {
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
    fn several_lie_behind_each_other() {
        let url: TargetUrl = "h".parse().expect("a URL");
        let mut plan = LoadPlan::new(vec![url.clone()]);
        plan.pipeline = 3;
        let image = EncodedRequest::new(&plan, &url);
        assert_eq!(image.copies(), 3);
        assert_eq!(image.piece(2, 3).len(), 3 * image.length() - 2);
    }

    #[test]
    fn what_would_break_out_of_a_head_is_refused() {
        for wrong in ["Name", ": x", "a b: c", "a: b\r\nc: d", "a: \0"] {
            assert!(field(wrong).is_err(), "{wrong:?}");
        }
        for wrong in ["", "G ET", "GET\r\n", "CONNECT"] {
            assert!(method(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(field("A:  b c "), Ok(("A".into(), "b c".into())));
    }
}
