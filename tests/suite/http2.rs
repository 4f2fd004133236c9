//! HTTP/2 (RFC 9113): the same answers as HTTP/1.1.

use tenfold_tests::cases;
use tenfold_tests::harness::Theme;
use tenfold_tests::http2::Http2Wire;
use tenfold_tests::response::WireResponse;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, MODIFIED_DATE};
use tenfold_tests::wire::{Wire, request};

pub(crate) const THEME: Theme = Theme {
    name: "http2",
    cases: cases![
        Shared on SENDERS + TLS + ANOTHER_TLS: answers_are_those_of_http_1, a_large_file_arrives_beside_small_files;
    ],
};

/// A connection of HTTP/2 to a shared server.
fn connect(server: &Server) -> Http2Wire {
    let wire = Wire::connect(server.address);
    Http2Wire::new(if server.config.tls { wire.with_protocol("h2") } else { wire })
}

/// The status, the fields in lower case without those of the version and the date, and the body.
fn comparable(response: &WireResponse) -> (u16, Vec<String>, Vec<u8>) {
    let is_own = |line: &&str| !["date: ", "connection: "].iter().any(|name| line.starts_with(name));
    let lower = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        format!("{}: {value}", name.to_ascii_lowercase())
    };
    let lines: Vec<String> = response.head.lines().skip(1).map(lower).collect();
    let mut fields: Vec<String> =
        lines.iter().map(String::as_str).filter(is_own).map(str::to_owned).collect();
    // Constant fields come first in HTTP/2. The order of fields of different names has no meaning (RFC 9110 §5.3).
    fields.sort();
    (response.status, fields, response.body.clone())
}

fn answers_are_those_of_http_1(server: &Server) {
    let targets = [
        "/",
        "/1k.html",
        "/16k.bin",
        "/128k.bin",
        "/empty.txt",
        "/folder",
        "/folder/",
        "/folder/page.html?a=b",
        "/with%20space.txt",
        "/%C3%BCml%C3%A4ut.txt",
        "/missing",
        "/.hidden",
        "/../1k.html",
        "/%00",
        "/1k.html/",
        "/.well-known/hello.txt",
    ];
    let conditions: [&[(&str, &str)]; 9] = [
        &[],
        &[("if-modified-since", MODIFIED_DATE)],
        &[("if-none-match", "*")],
        &[("if-match", "\"another\"")],
        &[("range", "bytes=0-9")],
        &[("range", "bytes=-5, 2-3, 100-")],
        &[("range", "bytes=99999999-")],
        &[("accept-encoding", "gzip, br")],
        &[("cookie", "a=b"), ("cookie", "c=d")],
    ];
    let mut requests = Vec::new();
    for target in targets {
        for method in ["GET", "HEAD", "OPTIONS", "POST", "DELETE"] {
            let fields = if method == "GET" || method == "HEAD" { &conditions[..] } else { &conditions[..1] };
            requests.extend(fields.iter().map(|fields| (method, target, *fields)));
        }
    }
    // `naive` serves one connection at a time.
    let over_http1 = requests.iter().map(|(method, target, fields)| {
        let mut http1 = server.connect();
        http1.send(request(method, target, fields));
        if *method == "HEAD" { http1.head() } else { http1.response() }
    });
    let expected: Vec<WireResponse> = over_http1.collect();
    let mut http2 = connect(server);
    for ((method, target, fields), expected) in requests.into_iter().zip(&expected) {
        let found = http2.ask(method, target, fields, b"");
        assert_eq!(comparable(&found), comparable(expected), "{method} {target} {fields:?}");
    }
}

fn a_large_file_arrives_beside_small_files(server: &Server) {
    let mut http2 = connect(server);
    let large = http2.begin("GET", "/large.bin", &[], b"");
    for _ in 0..50 {
        let small = http2.ask("GET", "/1k.html", &[("priority", "u=0")], b"");
        assert!(small.body == site::content("1k.html"), "a small file differs");
    }
    let response = http2.response(large);
    assert!(
        response.body == site::content("large.bin"),
        "the large file differs: {} bytes",
        response.body.len()
    );
}
