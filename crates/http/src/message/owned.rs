//! Requests that outlive the bytes from which they were parsed.

use std::ops::Range;

use super::request::{Body, FieldSpan, Method, Request, Target, Version};

/// A copy of a request, for a response that is written after the received bytes are gone. It stores the parts
/// of the request as ranges of the copied bytes, and is not parsed again.
#[derive(Clone, Debug)]
pub struct OwnedRequest {
    bytes: Vec<u8>,
    method: Method,
    version: Version,
    body: Body,
    selective: bool,
    expects_continue: bool,
    target: Span,
    path: Span,
    query: Option<Span>,
    authority: Option<Span>,
    host: Option<Span>,
    fields: Box<[FieldSpan]>,
}

/// A range of the copied bytes.
type Span = Range<usize>;

impl Request<'_> {
    /// Returns a copy that borrows nothing.
    pub fn to_owned(&self) -> OwnedRequest {
        let mut bytes = self.bytes.to_vec();
        let mut span = |part: &[u8]| {
            let begin = part.as_ptr().addr().wrapping_sub(self.bytes.as_ptr().addr());
            if begin.saturating_add(part.len()) <= self.bytes.len() {
                return begin..begin + part.len();
            }
            // The part is a constant, such as the path of an absolute-form target without a path.
            bytes.extend_from_slice(part);
            bytes.len() - part.len()..bytes.len()
        };
        let Target { text, path, query, authority } = self.target;
        OwnedRequest {
            method: self.method,
            version: self.version,
            body: self.body,
            selective: self.selective,
            expects_continue: self.expects_continue,
            target: span(text.as_bytes()),
            path: span(path.as_bytes()),
            query: query.map(|query| span(query.as_bytes())),
            authority: authority.map(|authority| span(authority.as_bytes())),
            host: self.host.map(&mut span),
            fields: self.fields.into(),
            bytes,
        }
    }
}

impl OwnedRequest {
    /// Calls `use_it` with the request.
    pub fn read<T>(&self, use_it: impl FnOnce(&Request<'_>) -> T) -> T {
        use_it(&Request {
            method: self.method,
            target: Target {
                text: self.text(&self.target),
                path: self.text(&self.path),
                query: self.query.as_ref().map(|query| self.text(query)),
                authority: self.authority.as_ref().map(|authority| self.text(authority)),
            },
            version: self.version,
            body: self.body,
            selective: self.selective,
            expects_continue: self.expects_continue,
            host: self.host.as_ref().map(|host| &self.bytes[host.clone()]),
            fields: &self.fields,
            bytes: &self.bytes,
        })
    }

    fn text(&self, span: &Span) -> &str {
        std::str::from_utf8(&self.bytes[span.clone()]).expect("the original was text")
    }
}

#[cfg(test)]
mod tests {
    use crate::h1::parse_request;

    #[test]
    fn a_copy_is_the_request() {
        for text in [
            "GET /a?b HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1\r\n\r\n",
            "GET http://y:1?b HTTP/1.1\r\nHost: x\r\nRange:\r\n\r\n",
            "OPTIONS * HTTP/1.0\r\n\r\n",
            "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n",
        ] {
            let mut bytes = text.as_bytes().to_vec();
            let (original, copy) = parse_request(&mut bytes, |request| {
                let request = request.expect("the request is good");
                (format!("{request:?}"), request.to_owned())
            });
            drop(bytes);
            // The bytes of a copy may end with constants.
            let apart = |text: &str| text.split("bytes: ").next().map(str::to_owned);
            for _ in 0..2 {
                copy.read(|request| assert_eq!(apart(&format!("{request:?}")), apart(&original)));
            }
            let again = copy.read(|request| request.to_owned());
            again.read(|request| assert_eq!(apart(&format!("{request:?}")), apart(&original)));
        }
    }
}
