//! A small service that describes each request, and strict parsers of responses.
#![allow(dead_code, unreachable_pub, reason = "each suite is a program of its own and uses its part")]

use std::fs::File;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tenfold_http::script::{Outcome, Script};
use tenfold_http::{
    Answer, Connection, Limits, Method, OpenFile, PLAIN_TEXT, Part, Request, ResponseWriter, Service, clock,
    echo,
};

/// Responds to every request with a line that describes it; some paths are special:
///
/// - `/large`: [`LARGE`] bytes of a file
/// - `/shared`: bytes that are not copied
/// - `/image`: 65,535 bytes that are not copied, and that no other response has
/// - `/same`: the same number of bytes, which all responses share
/// - `/close`: closes the connection after the response
/// - `/later`: a deferred response, ready when the [`Gate`] opens
/// - `/soon`: a deferred response that is ready immediately
/// - `/slow`: a deferred response that takes a second of the thread
/// - `/copied`: a deferred response of [`COPIED`] bytes, ready when the [`Gate`] opens
/// - `/never`: a deferred response that is never ready
/// - `/echo`: the request body, of at most [`ECHOED`] bytes
/// - `/echo/later`: the same in a deferred response that is ready immediately
#[derive(Default)]
pub struct Site {
    /// Opens when `/later` may respond.
    pub gate: Gate,
    /// The targets of all requests that reached the service, in order.
    pub asked: Mutex<Vec<String>>,
}

/// Bytes of the body of `/large`.
pub const LARGE: u64 = 1_000_000;

/// The most bytes that `/echo` takes.
pub const ECHOED: u64 = 2000;

/// Bytes of the body of `/copied`.
pub const COPIED: usize = 32 * 1024;

/// The body of `/shared`.
pub const SHARED: &[u8] = b"bytes that several connections send";

impl Service for Site {
    fn answer(&self, request: &Request<'_>, _: &Connection, response: &mut ResponseWriter<'_>) -> Answer {
        self.asked.lock().expect("no test panics here").push(request.target.path.to_owned());
        let body = request.method != Method::Head;
        let begin = |response: &mut ResponseWriter<'_>, length: u64| {
            let mut head = response.head(200);
            head.content_type(PLAIN_TEXT);
            head.content_length(length);
        };
        let reply = move |response: &mut ResponseWriter<'_>| {
            begin(response, 6);
            response.body(b"later\n");
        };
        match request.target.path {
            "/large" => {
                begin(response, LARGE);
                if body {
                    let file = File::open("/dev/null").expect("/dev/null opens");
                    response.push(Part::File(Arc::new(OpenFile::new(file, LARGE)), 0..LARGE));
                }
            }
            "/shared" => {
                begin(response, SHARED.len() as u64);
                response.push(Part::Shared(SHARED.into(), 0..SHARED.len()));
            }
            path @ ("/image" | "/same") => {
                static SAME: LazyLock<Arc<[u8]>> = LazyLock::new(|| [b'i'; 65_535].into());
                let content = if path == "/same" { SAME.clone() } else { SAME.to_vec().into() };
                begin(response, content.len() as u64);
                response.push(Part::Shared(content, 0..65_535));
            }
            "/later" => {
                let kept = self.gate.clone();
                return Answer::later(async move {
                    kept.await;
                    tenfold_http::Response::of(reply)
                });
            }
            "/soon" => return Answer::later(std::future::ready(tenfold_http::Response::of(reply))),
            "/slow" => {
                return Answer::later(async move {
                    clock::set(clock::now() + SECOND, 0);
                    tenfold_http::Response::of(reply)
                });
            }
            "/copied" => {
                let kept = self.gate.clone();
                return Answer::later(async move {
                    kept.await;
                    tenfold_http::Response::of(|response| {
                        begin(response, COPIED as u64);
                        response.body(&[b'c'; COPIED]);
                    })
                });
            }
            "/echo" | "/echo/later" => return Answer::NeedBody { max: ECHOED },
            "/never" => {
                let guard = Dropped(self.gate.clone());
                return Answer::later(async move {
                    let _guard = guard;
                    std::future::pending().await
                });
            }
            _ => {
                let text = describe(request);
                begin(response, text.len() as u64);
                if body {
                    response.body(text.as_bytes());
                }
                if request.target.path == "/close" {
                    return Answer::Close;
                }
            }
        }
        Answer::Done
    }

    fn answer_body(
        &self,
        request: &Request<'_>,
        body: &[u8],
        _: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Answer {
        self.asked.lock().expect("no test panics here").push(format!("{} bytes", body.len()));
        if request.target.path == "/echo" {
            echo(request, body, response);
            return Answer::Done;
        }
        Answer::later(std::future::ready(tenfold_http::Response::of(|response| {
            response.head(200).content_length(body.len() as u64);
            response.body(body);
        })))
    }
}

/// Describes a request as the server understood it.
pub fn describe(request: &Request<'_>) -> String {
    format!(
        "{} {} {:?} host={} {:?}\n",
        request.method.as_str(),
        request.target.path,
        request.target.query,
        request.host().unwrap_or("none"),
        request.body,
    )
}

/// An event that happens when a test decides.
#[derive(Clone, Default)]
pub struct Gate(Arc<Mutex<(bool, Option<Waker>)>>);

impl Gate {
    pub fn keep(&self) {
        let mut state = self.0.lock().expect("no test panics here");
        state.0 = true;
        if let Some(waker) = state.1.take() {
            waker.wake();
        }
    }

    pub fn is_kept(&self) -> bool {
        self.0.lock().expect("no test panics here").0
    }
}

impl Future for Gate {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().expect("no test panics here");
        if state.0 {
            return Poll::Ready(());
        }
        state.1 = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// Opens its gate when dropped.
struct Dropped(Gate);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.keep();
    }
}

/// The limits of most tests: small, so that they are easily reached.
pub fn limits() -> Limits {
    Limits { max_head: 1024, max_headers: 16, max_target: 256, max_discard: 4096, ..Limits::default() }
}

pub const GET: &str = "GET /a HTTP/1.1\r\nHost: here\r\n\r\n";

/// A request that must not be read, sent after another.
pub const BEHIND: &str = "GET /smuggled HTTP/1.1\r\nHost: here\r\n\r\n";

pub const SECOND: Duration = Duration::from_secs(1);

/// Runs `script` with a new [`Site`] and [`limits`].
pub fn run(script: Script) -> Outcome {
    script.run(&Site::default(), &limits())
}

/// Sends `request`, which must get a response and leave the connection open. Returns the body: the request as
/// the server understood it.
#[track_caller]
pub fn understood(request: &str) -> String {
    let outcome = run(Script::new().sends(format!("{request}GET /next HTTP/1.1\r\nHost: a\r\n\r\n")));
    let found = responses(&outcome.sent);
    assert_eq!(found.len(), 2, "{request:?}: {}", found[0].text());
    assert_eq!(found[1].text(), "GET /next None host=a Empty\n");
    found[0].text().to_owned()
}

/// A POST request with these header lines.
pub fn post(fields: &str) -> String {
    format!("POST /a HTTP/1.1\r\nHost: here\r\n{fields}\r\n")
}

/// A response, parsed strictly.
#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn field(&self, name: &str) -> Option<&str> {
        let field = self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        field.map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is text")
    }
}

/// Parses all responses in `bytes`, none of which is to a HEAD request.
pub fn responses(mut bytes: &[u8]) -> Vec<Response> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (response, rest) = response_in(bytes, true);
        found.push(response);
        bytes = rest;
    }
    found
}

/// Reads the only response in `bytes`.
#[track_caller]
pub fn only_response(bytes: &[u8]) -> Response {
    let mut found = responses(bytes);
    assert_eq!(found.len(), 1, "{}", String::from_utf8_lossy(bytes));
    found.remove(0)
}

/// The status codes of all responses in `bytes`.
pub fn statuses(bytes: &[u8]) -> Vec<u16> {
    responses(bytes).iter().map(|response| response.status).collect()
}

/// Parses one response, with its body if `has_body`. Also returns the remaining bytes.
pub fn response_in(bytes: &[u8], has_body: bool) -> (Response, &[u8]) {
    let shown = || String::from_utf8_lossy(&bytes[..bytes.len().min(300)]);
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("a head without an end: {}", shown()));
    let head = std::str::from_utf8(&bytes[..end]).expect("the head is text");
    let mut lines = head.split("\r\n");
    let line = lines.next().expect("there is a first line");
    let status = line.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).expect("a status line");
    let fields: Vec<(String, String)> = lines
        .map(|line| line.split_once(": ").expect("a field"))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let length = fields.iter().find(|(name, _)| name == "Content-Length").expect("a length");
    let length = if has_body { length.1.parse().expect("a number") } else { 0 };
    let (body, rest) = bytes[end + 4..].split_at_checked(length).expect("a whole body");
    (Response { status: status.parse().expect("a status"), fields, body: body.to_vec() }, rest)
}

/// Short parts of requests, most of which make a request malformed.
pub const PIECES: [&str; 40] = [
    "GET ",
    "POST ",
    "/",
    "/a/b.html?c=d",
    "*",
    "http://b/c",
    "host:80",
    "%41",
    " HTTP/1.1\r\n",
    " HTTP/2.0\r\n",
    " HTTP/1.1",
    "Host:",
    "Content-Length: ",
    "Transfer-Encoding: ",
    "chunked",
    "\"v\"",
    "W/",
    "\n",
    "\r",
    "\r\n",
    " ",
    "\t",
    ":",
    ",",
    "-",
    "0",
    "1",
    "?",
    "99999999999999999999",
    "x",
    "\0",
    "\x7f",
    "\u{e4}",
    "@",
    "#",
    "[::1]",
    ".",
    ";",
    "=",
    "Sun, 06 Nov 1994 08:49:37 GMT",
];

/// Assembles the value of a header line from random choices; it is sometimes nearly valid.
pub fn assemble_small(choices: &[u8]) -> Vec<u8> {
    choices.iter().flat_map(|&choice| PIECES[choice as usize % PIECES.len()].bytes()).collect()
}
