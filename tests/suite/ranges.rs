//! Parts of files (RFC 9110 §14).

use tenfold_tests::cases;
use tenfold_tests::harness::Theme;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, MODIFIED_DATE};
use tenfold_tests::wire::{Wire, request};

pub(crate) const THEME: Theme = Theme {
    name: "ranges",
    cases: cases![
        Shared on SEMANTICS + ONE_TLS: parts_of_a_small_file, h34_a_range_past_the_end_is_416,
            h34_invalid_ranges_are_ignored, if_range_by_tag_and_by_date;
        Shared on SENDERS + TLS + ANOTHER_TLS: parts_of_a_large_file,
            h33_several_parts_of_a_file_and_too_many;
    ],
};

#[track_caller]
fn expect_part(wire: &mut Wire, target: &str, range: &str, whole: &[u8], first: usize, last: usize) {
    wire.send(request("GET", target, &[("Range", range)]));
    let response = wire.head();
    assert_eq!(response.status, 206, "{target} {range}");
    let part = format!("bytes {first}-{last}/{}", whole.len());
    assert_eq!(response.need("Content-Range"), part, "{target} {range}");
    assert_eq!(response.promised(), last - first + 1, "{target} {range}");
    wire.expect_body(&whole[first..=last]);
}

fn parts_of_a_small_file(server: &Server) {
    let whole = site::content("1k.html");
    let mut wire = server.connect();
    let parts = [
        ("bytes=0-0", 0, 0),
        ("bytes=1023-1023", 1023, 1023),
        ("bytes=10-19", 10, 19),
        ("bytes=1000-", 1000, 1023),
        ("bytes=-1", 1023, 1023),
        ("bytes=-100", 924, 1023),
        ("bytes=-5000", 0, 1023),
        ("bytes=500-99999", 500, 1023),
        ("bytes=0-18446744073709551615", 0, 1023),
    ];
    for (range, first, last) in parts {
        expect_part(&mut wire, "/1k.html", range, &whole, first, last);
    }
}

fn parts_of_a_large_file(server: &Server) {
    let whole = site::content("3m.bin");
    let mut wire = server.connect();
    expect_part(&mut wire, "/3m.bin", "bytes=0-0", &whole, 0, 0);
    expect_part(&mut wire, "/3m.bin", "bytes=4095-4097", &whole, 4095, 4097);
    expect_part(&mut wire, "/3m.bin", "bytes=1000001-2000000", &whole, 1_000_001, 2_000_000);
    expect_part(&mut wire, "/3m.bin", "bytes=-1", &whole, 3_000_000, 3_000_000);
    expect_part(&mut wire, "/3m.bin", "bytes=1-", &whole, 1, 3_000_000);
}

fn h33_several_parts_of_a_file_and_too_many(server: &Server) {
    let mut wire = server.connect();
    for (target, middle) in [("1k.html", 500), ("3m.bin", 1_500_000)] {
        let whole = site::content(target);
        let last = whole.len() - 1;
        let range = format!("bytes=-1,0-9,{middle}-{}", middle + 99);
        wire.send(request("GET", &format!("/{target}"), &[("Range", &range)]));
        let response = wire.response();
        assert_eq!(response.status, 206, "{target}");
        let media_type = response.need("Content-Type");
        let boundary = media_type.strip_prefix("multipart/byteranges; boundary=");
        let boundary = boundary.unwrap_or_else(|| panic!("{target} is not in parts: {media_type}"));
        wire.send(request("HEAD", &format!("/{target}"), &[]));
        let part_type = wire.head().need("Content-Type").to_owned();
        let mut expected = Vec::new();
        for (first, last) in [(last, last), (0, 9), (middle, middle + 99)] {
            let line = if expected.is_empty() { "--" } else { "\r\n--" };
            expected.extend(format!("{line}{boundary}\r\nContent-Type: {part_type}\r\n").bytes());
            expected.extend(format!("Content-Range: bytes {first}-{last}/{}\r\n\r\n", whole.len()).bytes());
            expected.extend(&whole[first..=last]);
        }
        expected.extend(format!("\r\n--{boundary}--\r\n").bytes());
        assert_eq!(response.body.escape_ascii().to_string(), expected.escape_ascii().to_string());
        let overlapping = vec!["0-"; 1000].join(",");
        wire.send(request("GET", &format!("/{target}"), &[("Range", &format!("bytes={overlapping}"))]));
        let response = wire.head();
        assert_eq!((response.status, response.promised()), (200, whole.len()), "{target}");
        wire.expect_body(&whole);
    }
}

fn h34_a_range_past_the_end_is_416(server: &Server) {
    let mut wire = server.connect();
    for range in ["bytes=1024-", "bytes=1024-2000", "bytes=99999999999-", "bytes=-0"] {
        wire.send(request("GET", "/1k.html", &[("Range", range)]));
        let response = wire.response();
        assert_eq!(response.status, 416, "{range}");
        assert_eq!(response.need("Content-Range"), "bytes */1024", "{range}");
    }
    wire.get("/1k.html");
    assert_eq!(wire.response().status, 200, "the connection goes on");
}

fn h34_invalid_ranges_are_ignored(server: &Server) {
    let mut wire = server.connect();
    for range in ["bytes=5-2", "bytes=a-b", "bytes=", "bytes=-", "lines=1-2", "1-2", "bytes=1-2-3"] {
        wire.send(request("GET", "/1k.html", &[("Range", range)]));
        let response = wire.response();
        assert_eq!((response.status, response.body.len()), (200, 1024), "{range}");
    }
    wire.send(request("HEAD", "/1k.html", &[("Range", "bytes=0-0")]));
    let response = wire.head();
    assert_eq!((response.status, response.promised()), (200, 1024), "a range means nothing to HEAD");
}

fn if_range_by_tag_and_by_date(server: &Server) {
    let mut wire = server.connect();
    wire.get("/1k.html");
    let tag = wire.response().need("ETag").to_owned();
    let weak = format!("W/{tag}");
    let earlier = "Mon, 13 Nov 2023 22:13:20 GMT";
    let later = "Wed, 15 Nov 2023 22:13:20 GMT";
    let outcomes = [
        (tag.as_str(), 206),
        (MODIFIED_DATE, 206),
        ("\"another\"", 200),
        (weak.as_str(), 200),
        (earlier, 200),
        (later, 200),
        ("neither", 200),
    ];
    for (validator, status) in outcomes {
        wire.send(request("GET", "/1k.html", &[("Range", "bytes=0-9"), ("If-Range", validator)]));
        let response = wire.response();
        let length = if status == 206 { 10 } else { 1024 };
        assert_eq!((response.status, response.body.len()), (status, length), "If-Range: {validator}");
    }
    wire.send(request("GET", "/1k.html", &[("Range", "bytes=5000-"), ("If-Range", "\"another\"")]));
    assert_eq!(wire.response().status, 200, "what has changed is sent whole, whatever was asked of it");
}
