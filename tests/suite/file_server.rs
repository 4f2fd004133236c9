//! Expectations of users of other file servers: ranges, conditions, folders and names. The cases correspond to tests of
//! the file server in Go's standard library, with the results of RFC 9110.

use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::site::{self, MODIFIED_DATE, TempFolder};
use tenfold_tests::wire::{Wire, request};

pub(crate) const THEME: Theme = Theme {
    name: "file_server",
    cases: cases![
        Own on DRIVERS: ranges_of_a_short_file_and_of_a_long_one, conditions_alone_and_together,
            folders_indexes_and_names;
    ],
};

const SHORT: &[u8] = b"0123456789\n";
const LONG: usize = 10_000;

/// The response to a `Range`.
enum Expected {
    /// 200 with the whole file.
    Whole,
    /// 206 with the bytes from the first to the last.
    Part(usize, usize),
    /// 206 with this number of parts.
    Parts(usize),
    /// 416.
    Nothing,
}

use Expected::{Nothing, Part, Parts, Whole};

const OF_SHORT: &[(&str, Expected)] = &[
    ("bytes=0-4", Part(0, 4)),
    ("bytes=2-", Part(2, 10)),
    ("bytes=-5", Part(6, 10)),
    ("bytes=3-7", Part(3, 7)),
    ("bytes=0-10", Part(0, 10)),
    ("bytes=0-11", Part(0, 10)),
    ("bytes=5-1000", Part(5, 10)),
    ("bytes=10-", Part(10, 10)),
    ("bytes=10-11", Part(10, 10)),
    ("bytes=-11", Part(0, 10)),
    ("bytes=-15", Part(0, 10)),
    // Nearby parts are merged, and unsatisfiable parts are omitted.
    ("bytes=0-0,-2", Part(0, 10)),
    ("bytes=0-1,5-8", Part(0, 8)),
    ("bytes=15-,0-5", Part(0, 5)),
    ("bytes=0-,1-,2-,3-,4-", Part(0, 10)),
];

/// Ranges of which no part is in the short file.
const OUTSIDE: &[&str] =
    &["bytes=11-", "bytes=11-12", "bytes=12-12", "bytes=100-1000", "bytes=-0", "bytes=11-,12-13"];

/// Invalid ranges, which are ignored (RFC 9110 §14.2).
const INVALID: &[&str] = &[
    "",
    "foo",
    "bytes",
    "bytes=",
    "bytes=7",
    "bytes= 7 ",
    "bytes=5-4",
    "bytes=0-2,5-4",
    "bytes=2-5,4-3",
    "bytes=--5,4--3",
    "bytes=A-",
    "bytes=A-Z",
    "bytes= -Z",
    "bytes=5-Z",
    "bytes=Ran-dom, garbage",
    "bytes=0x01-0x02",
    "bytes=         ",
    "bytes= , , ,   ",
    "bytes=1 -2",
    "items=0-4",
    "bytes 0-4",
    "bytes=+1-2",
];

const OF_LONG: &[(&str, Expected)] = &[
    ("bytes=0-499", Part(0, 499)),
    ("bytes=500-999", Part(500, 999)),
    ("bytes=-500", Part(9500, 9999)),
    ("bytes=9500-", Part(9500, 9999)),
    ("bytes=0-0,-1", Parts(2)),
    ("bytes=500-600,601-999", Part(500, 999)),
    ("bytes=500-700,601-999", Part(500, 999)),
    ("bytes=0-0 ,2000-2000, 7000-", Parts(3)),
    ("bytes=-2 , 7-100", Parts(2)),
    ("bytes=9999-,0-0,10000-", Parts(2)),
];

fn ranges_of_a_short_file_and_of_a_long_one(config: &Config) {
    let folder = TempFolder::new("ranges");
    let long = site::bytes(LONG, 7);
    folder.write("short.txt", SHORT);
    folder.write("long.bin", &long);
    folder.write("empty.txt", "");
    let server = Launch::new(config, folder.path()).start();
    let mut wire = server.connect();
    let outside = OUTSIDE.iter().map(|range| (*range, &Nothing));
    let invalid = INVALID.iter().map(|range| (*range, &Whole));
    let of_short = OF_SHORT.iter().map(|(range, expected)| (*range, expected));
    for (range, expected) in of_short.chain(outside).chain(invalid) {
        expect(&mut wire, "/short.txt", SHORT, range, expected);
    }
    for (range, expected) in OF_LONG {
        expect(&mut wire, "/long.bin", &long, range, expected);
    }
    // A slicing cache requests the first bytes of every file.
    for range in ["bytes=0-0", "bytes=0-", "bytes=0-1023", "bytes=-5", "bytes=-0", "bytes=0-,5-"] {
        expect(&mut wire, "/empty.txt", b"", range, &Whole);
    }
}

#[track_caller]
fn expect(wire: &mut Wire, target: &str, whole: &[u8], range: &str, expected: &Expected) {
    wire.send(request("GET", target, &[("Range", range)]));
    let response = wire.response();
    let (status, size) = (response.status, whole.len());
    let content_range = response.field("Content-Range");
    match expected {
        Whole => {
            assert_eq!((status, content_range), (200, None), "{range:?}");
            assert!(response.body == whole, "{range:?}: another body");
        }
        Part(first, last) => {
            let said = format!("bytes {first}-{last}/{size}");
            assert_eq!((status, content_range), (206, Some(&said[..])), "{range:?}");
            assert!(response.body == whole[*first..=*last], "{range:?}: another part");
        }
        Parts(count) => {
            let kind = response.need("Content-Type");
            let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect("it is in parts");
            let body = String::from_utf8_lossy(&response.body).into_owned();
            assert_eq!(
                (status, body.matches(&format!("--{boundary}\r\n")).count()),
                (206, *count),
                "{range:?}"
            );
        }
        Nothing => {
            assert_eq!((status, content_range), (416, Some(&format!("bytes */{size}")[..])), "{range:?}");
            // These fields would describe a body that is not sent.
            for field in ["ETag", "Last-Modified", "Content-Encoding", "Cache-Control"] {
                assert_eq!(response.field(field), None, "{range:?}");
            }
        }
    }
}

const EARLIER: &str = "Mon, 13 Nov 2023 22:13:20 GMT";
const LATER: &str = "Wed, 15 Nov 2023 22:13:20 GMT";

fn conditions_alone_and_together(config: &Config) {
    let folder = TempFolder::new("conditions");
    folder.write("short.txt", SHORT);
    let server = Launch::new(config, folder.path()).start();
    let mut wire = server.connect();
    wire.get("/short.txt");
    let tag = wire.response().need("ETag").to_owned();
    let (weak, listed) = (format!("W/{tag}"), format!("\"a\", {tag}"));
    let range = ("Range", "bytes=0-4");
    let cases: &[(u16, &[(&str, &str)])] = &[
        (200, &[]),
        (304, &[("If-Modified-Since", MODIFIED_DATE)]),
        (304, &[("If-Modified-Since", LATER)]),
        (200, &[("If-Modified-Since", EARLIER)]),
        (200, &[("If-Modified-Since", "no date")]),
        (304, &[("If-None-Match", &tag)]),
        (304, &[("If-None-Match", &weak)]),
        (304, &[("If-None-Match", &listed)]),
        (304, &[("If-None-Match", "*")]),
        (200, &[("If-None-Match", "\"a\"")]),
        (200, &[("If-None-Match", "\"a\""), ("If-Modified-Since", MODIFIED_DATE)]),
        (304, &[("If-None-Match", &tag), ("If-Modified-Since", EARLIER)]),
        (200, &[("If-Match", &tag)]),
        (200, &[("If-Match", &listed)]),
        (200, &[("If-Match", "*")]),
        (412, &[("If-Match", "\"a\"")]),
        (412, &[("If-Match", &weak)]),
        (200, &[("If-Unmodified-Since", MODIFIED_DATE)]),
        (200, &[("If-Unmodified-Since", LATER)]),
        (412, &[("If-Unmodified-Since", EARLIER)]),
        (200, &[("If-Match", &tag), ("If-Unmodified-Since", EARLIER)]),
        (412, &[("If-Match", "\"a\""), ("If-None-Match", &tag)]),
        (304, &[("If-Match", &tag), ("If-None-Match", &tag)]),
        (206, &[range]),
        (206, &[range, ("If-Range", &tag)]),
        (206, &[range, ("If-Range", MODIFIED_DATE)]),
        (200, &[range, ("If-Range", "\"a\"")]),
        (200, &[range, ("If-Range", &weak)]),
        (200, &[range, ("If-Range", EARLIER)]),
        (200, &[range, ("If-Range", LATER)]),
        (206, &[range, ("If-Match", &tag)]),
        (412, &[range, ("If-Match", "\"a\"")]),
        (304, &[range, ("If-None-Match", &tag)]),
        (304, &[("Range", "bytes=100-"), ("If-None-Match", &tag)]),
        (416, &[("Range", "bytes=100-"), ("If-Range", &tag)]),
        (200, &[("Range", "bytes=100-"), ("If-Range", "\"a\"")]),
    ];
    for (status, fields) in cases {
        wire.send(request("GET", "/short.txt", fields));
        let response = wire.response();
        assert_eq!(response.status, *status, "{fields:?}");
        if matches!(status, 200 | 206 | 304) {
            assert_eq!(response.need("ETag"), tag, "{fields:?}");
        }
        let ranged = fields.iter().any(|(name, _)| *name == "Range");
        wire.send(request("HEAD", "/short.txt", fields));
        let head = wire.head();
        let expected = if ranged && matches!(status, 206 | 416) { 200 } else { *status };
        assert_eq!(head.status, expected, "HEAD with {fields:?}: a range means nothing to it");
    }
}

fn folders_indexes_and_names(config: &Config) {
    let folder = TempFolder::new("names");
    let names = ["simple", "\"'<>&", "?foo=bar#baz", "<combo>?foo", "foo:bar", "50% off", "a+b c"];
    for name in names {
        folder.write(&format!("names/{name}"), name);
    }
    folder.write("index.html", "the root\n");
    folder.write("dir/index.html", "a folder\n");
    folder.write("dir/file.txt", SHORT);
    folder.write("bare/file.txt", SHORT);
    let server = Launch::new(config, folder.path()).flag("--listing", "html").start();
    let mut wire = server.connect();
    let mut ask = |target: &str| {
        wire.get(target);
        wire.response()
    };
    for (target, body) in [
        ("/", "the root\n"),
        ("/index.html", "the root\n"),
        ("/dir/", "a folder\n"),
        ("/dir/index.html", "a folder\n"),
        ("//dir//", "a folder\n"),
        ("/dir/?query", "a folder\n"),
    ] {
        let response = ask(target);
        assert_eq!((response.status, &response.body[..]), (200, body.as_bytes()), "{target}");
        assert_eq!(response.need("Content-Type"), "text/html; charset=utf-8", "{target}");
    }
    for (target, place) in [("/dir", "/dir/"), ("/dir?a=b", "/dir/?a=b"), ("/bare", "/bare/")] {
        let response = ask(target);
        assert_eq!((response.status, response.need("Location")), (301, place), "{target}");
    }
    for (target, status) in [
        ("/none", 404),
        ("/dir/file.txt/", 404),
        ("/dir/file.txt/x", 404),
        ("/dir/../dir/file.txt", 404),
        ("/..", 404),
        ("/dir%00", 400),
        ("/dir%2ffile.txt", 404),
        ("/dir/%", 400),
    ] {
        assert_eq!(ask(target).status, status, "{target}");
    }
    let page = ask("/names/");
    let text = String::from_utf8_lossy(&page.body).into_owned();
    let links = text.split("href=\"./").skip(1).filter_map(|rest| rest.split('"').next());
    let links: Vec<_> = links.map(|link| link.replace("&#38;", "&").replace("&#39;", "'")).collect();
    assert_eq!(links.len(), names.len(), "{text}");
    for link in links {
        let body = String::from_utf8(ask(&format!("/names/{link}")).body).expect("names are text");
        assert!(names.contains(&&body[..]), "{link} leads to {body}");
    }
}
