//! The cost of parsing a head, and of serving it: `cargo run --release --example parse_cost`.
//!
//! The least of many rounds is shown, as noise only ever adds.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tenfold_http::h1::parse_request;
use tenfold_http::script::Script;
use tenfold_http::{Answer, Connection, FieldValue, Limits, Request, ResponseWriter, Service};

const SMALL: &[u8] = b"GET /1k.html HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";

const BROWSER: &[u8] = b"GET /docs/engines/epoll.html?from=index HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
    Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nConnection: keep-alive\r\n\
    Upgrade-Insecure-Requests: 1\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\n\
    Sec-Fetch-Site: same-origin\r\nSec-Fetch-User: ?1\r\nPriority: u=0, i\r\n\
    If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\nIf-None-Match: \"5f2a-1a2b3c4d\"\r\n\r\n";

struct Empty;

impl Service for Empty {
    fn answer(&self, _: &Request<'_>, _: &Connection, response: &mut ResponseWriter<'_>) -> Answer {
        let mut head = response.head(200);
        head.content_type(FieldValue::constant("text/html; charset=utf-8"));
        head.content_length(0);
        Answer::Done
    }
}

/// The least time that `work` took, of many rounds of `count` each, per time.
fn least(count: u32, mut work: impl FnMut()) -> Duration {
    let round = |_| {
        let begin = Instant::now();
        (0..count).for_each(|_| work());
        begin.elapsed()
    };
    (0..200).map(round).min().expect("there are rounds") / count
}

fn main() {
    for (name, bytes) in [("small", SMALL), ("browser", BROWSER)] {
        let mut bytes = bytes.to_vec();
        let parse = least(1000, || parse_request(black_box(&mut bytes), |head| drop(black_box(head))));
        println!("{name}: find and parse {parse:?} ({} bytes)", bytes.len());
    }
    let requests = SMALL.repeat(1000);
    let limits = Limits { max_head: 1 << 20, ..Limits::default() };
    let serve = least(1, || {
        black_box(Script::new().sends(&requests).run(&Empty, &limits));
    });
    println!("serve it from a script, pipelined: {:?}", serve / 1000);
}
