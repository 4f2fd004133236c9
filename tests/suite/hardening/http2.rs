//! Attacks that only HTTP/2 permits: each ends with a code, and is counted.

use serde_json::Value;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::http2::{Http2Wire, block, frame};
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_wire::frame::header::{END_HEADERS, END_STREAM, PADDED};
use tenfold_wire::frame::{ErrorCode, FrameKind, MOST_31_BITS, Setting, write};

pub(crate) const THEME: Theme = Theme {
    name: "hardening",
    cases: cases![
        Own on DRIVERS: h102_h103_h107_work_without_responses_ends_the_connection,
            h104_h105_small_blocks_have_bounded_lists_and_tables, h106_streams_without_a_window_end,
            h108_open_requests_have_common_bounds, h106_files_without_a_window_leave_descriptors_to_others;
    ],
};

/// Appends HEADERS of a request. Flags besides END_HEADERS: `flags`.
fn ask(stream: u32, flags: u8, method: &str, path: &str, fields: &[(&str, &str)], to: &mut Vec<u8>) {
    let own = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "localhost")];
    let fields = block(&[&own[..], fields].concat());
    frame(FrameKind::HEADERS, END_HEADERS | flags, stream, &fields, to);
}

/// Appends a request whose response does not fit its window.
fn ask_much(stream: u32, to: &mut Vec<u8>) {
    ask(stream, END_STREAM, "GET", "/large.bin", &[], to);
}

/// Appends one step of a flood. Steps have the streams 1, 3, 5 and so on.
type Step = fn(u32, &mut Vec<u8>);

/// Floods whose steps get no complete response.
const FLOODS: &[(&str, Step)] = &[
    ("rapid resets", |stream, to| {
        ask_much(stream, to);
        write::reset_stream(stream, ErrorCode::CANCEL, to);
    }),
    ("malformed requests", |stream, to| ask(stream, END_STREAM, "GET", "/", &[("connection", "close")], to)),
    ("increments of 0", |stream, to| {
        ask_much(stream, to);
        frame(FrameKind::WINDOW_UPDATE, 0, stream, &[0; 4], to);
    }),
    ("windows above 2^31-1", |stream, to| {
        ask_much(stream, to);
        // After the first, the window may be full: the response may have used it.
        write::window_update(stream, MOST_31_BITS, to);
        write::window_update(stream, MOST_31_BITS, to);
    }),
    ("HEADERS after the end", |stream, to| {
        ask_much(stream, to);
        ask_much(stream, to);
    }),
    ("DATA after the end", |stream, to| {
        ask_much(stream, to);
        frame(FrameKind::DATA, 0, stream, &[0; 200], to);
    }),
    ("content above Content-Length", |stream, to| {
        ask(stream, 0, "POST", "/echo", &[("content-length", "1")], to);
        frame(FrameKind::DATA, 0, stream, &[0; 200], to);
    }),
    ("streams that depend on themselves", |stream, to| {
        ask_much(stream, to);
        let priority = [&stream.to_be_bytes()[..], &[0]].concat();
        frame(FrameKind::PRIORITY, 0, stream, &priority, to);
    }),
    ("empty CONTINUATION", |stream, to| match stream {
        1 => frame(FrameKind::HEADERS, END_STREAM, 1, b"", to),
        _ => frame(FrameKind::CONTINUATION, 0, 1, b"", to),
    }),
    ("a block without an end", |stream, to| match stream {
        1 => frame(FrameKind::HEADERS, END_STREAM, 1, &[0; 1000], to),
        _ => frame(FrameKind::CONTINUATION, 0, 1, &[0; 1000], to),
    }),
    ("PING", |_, to| write::ping([0; 8], false, to)),
    ("answers to no PING", |_, to| write::ping([0; 8], true, to)),
    ("SETTINGS", |_, to| write::settings(&[Setting::InitialWindowSize(1)], to)),
    ("acknowledged SETTINGS", |_, to| write::settings_ack(to)),
    ("table sizes", |_, to| {
        write::settings(&[Setting::HeaderTableSize(0), Setting::HeaderTableSize(u32::MAX)], to)
    }),
    ("PRIORITY", |stream, to| frame(FrameKind::PRIORITY, 0, stream, &[0, 0, 0, 0, 1], to)),
    ("PRIORITY_UPDATE", |stream, to| write::priority_update(stream, b"u=1", to)),
    ("unknown frames", |_, to| frame(FrameKind(0x40), 0, 0, b"", to)),
    ("GOAWAY", |stream, to| match stream {
        1 => ask_much(1, to),
        _ => write::goaway(0, ErrorCode::NO_ERROR, b"", to),
    }),
    ("requests after GOAWAY", |stream, to| {
        ask_much(stream, to);
        if stream == 1 {
            write::goaway(0, ErrorCode::NO_ERROR, b"", to);
        }
    }),
    ("increments of 1", |stream, to| match stream {
        1 => ask_much(1, to),
        _ => write::window_update(1, 1, to),
    }),
    ("empty DATA", |stream, to| match stream {
        1 => ask(1, 0, "POST", "/echo", &[], to),
        _ => frame(FrameKind::DATA, 0, 1, b"", to),
    }),
    ("padded DATA", |stream, to| match stream {
        1 => ask(1, 0, "POST", "/echo", &[], to),
        _ => frame(FrameKind::DATA, PADDED, 1, &[1, 0, 0], to),
    }),
];

fn start(config: &Config, send_timeout: &str) -> Server {
    Launch::new(config, site::shared())
        .flag("--echo", "/echo")
        .flag("--max-body", "64KiB")
        .flag("--send-timeout", send_timeout)
        .flag("--body-timeout", "300ms")
        .start()
}

fn connect(server: &Server) -> Http2Wire {
    Http2Wire::new(server.connect())
}

/// Waits until a counter of the status, at this pointer (RFC 6901), has a value.
#[track_caller]
fn counts(server: &Server, pointer: &str, expected: u64) {
    let value = || server.status().pointer(pointer).and_then(Value::as_u64);
    becomes_true(SOON, &format!("{pointer} is {expected}, not {:?}", value()), || value() == Some(expected));
}

fn h102_h103_h107_work_without_responses_ends_the_connection(config: &Config) {
    let server = start(config, "60s");
    for (at, (what, step)) in FLOODS.iter().enumerate() {
        // No response is complete.
        let mut bytes = Vec::new();
        write::settings(&[Setting::InitialWindowSize(1000)], &mut bytes);
        (0..1100).for_each(|number| step(2 * number + 1, &mut bytes));
        let mut attacker = connect(&server);
        // The server may refuse further bytes after its GOAWAY.
        let _ = attacker.wire().try_send(&bytes);
        let mut code = attacker.goaway().1;
        while code == ErrorCode::NO_ERROR {
            code = attacker.goaway().1;
        }
        assert_eq!(code, ErrorCode::ENHANCE_YOUR_CALM, "{what}");
        drop(attacker);
        counts(&server, "/http2/goaways/enhance-your-calm", at as u64 + 1);
        assert_eq!(connect(&server).ask("GET", "/1k.html", &[], b"").status, 200, "after {what}");
    }
    let status = server.status();
    let resets = |side: &str| status["http2"][side].as_u64();
    assert!(resets("client_resets") >= Some(190) && resets("server_resets") >= Some(6 * 90), "{status}");
}

fn h104_h105_small_blocks_have_bounded_lists_and_tables(config: &Config) {
    let server = start(config, "60s");
    let mut http2 = connect(&server);
    let own = [(":method", "GET"), (":scheme", "http"), (":path", "/1k.html"), (":authority", "localhost")];
    let mut large = block(&own);
    // A field of nearly the whole table is inserted, and then repeated by one byte each.
    let value = "v".repeat(4000);
    let inserted = large.len();
    large.extend(block(&[("x", &value)]));
    large[inserted] = 0x40;
    large.extend([0x80 | 62; 10_000]);
    // The literal field `a` without a value, and the indexed crumb of a cookie.
    let many = [&block(&own)[..], &block(&[("a", ""); 3000])].concat();
    let crumbs = [&block(&own)[..], &[0x80 | 32; 10_000]].concat();
    for (number, fields) in [large, many, crumbs].into_iter().enumerate() {
        let stream = http2.begin_with(&fields);
        assert_eq!(http2.response(stream).status, 431, "block {number}");
        assert_eq!(http2.ask("GET", "/1k.html", &[], b"").status, 200, "after block {number}");
    }
    counts(&server, "/refusals/head-too-large", 3);
    // The table of the server stays small, whatever the client permits.
    let mut bytes = Vec::new();
    write::settings(&[Setting::HeaderTableSize(u32::MAX)], &mut bytes);
    http2.send(bytes);
    for _ in 0..3 {
        assert_eq!(http2.ask("GET", "/1k.html", &[], b"").body, site::content("1k.html"));
    }
    let sizes: [(&str, &[u8]); 3] = [
        ("three changes of a size", &[0x20, 0x20, 0x20]),
        ("a size above 4096", &[0x3f, 0xe2, 0x1f]),
        ("an index without an entry", &[0x80 | 70]),
    ];
    for (at, (what, begin)) in sizes.into_iter().enumerate() {
        let mut http2 = connect(&server);
        http2.begin_with(&[begin, &block(&own)].concat());
        assert_eq!(http2.goaway().1, ErrorCode::COMPRESSION_ERROR, "{what}");
        counts(&server, "/http2/goaways/error", at as u64 + 1);
    }
}

fn h106_streams_without_a_window_end(config: &Config) {
    let server = start(config, "300ms");
    let mut http2 = connect(&server);
    let window = |size, http2: &mut Http2Wire| {
        let mut bytes = Vec::new();
        write::settings(&[Setting::InitialWindowSize(size)], &mut bytes);
        http2.send(bytes);
    };
    window(0, &mut http2);
    let paths = ["/1k.html", "/16k.bin", "/128k.bin", "/folder/"];
    let streams: Vec<_> = (0..100).map(|at| http2.begin("GET", paths[at % 4], &[], b"")).collect();
    // A byte is slower than `min-rate`.
    let mut bytes = Vec::new();
    write::window_update(streams[0], 1, &mut bytes);
    http2.send(bytes);
    for stream in streams {
        assert_eq!(http2.reset(stream), ErrorCode::CANCEL, "stream {stream}");
    }
    window(65_535, &mut http2);
    assert_eq!(http2.ask("GET", "/1k.html", &[], b"").status, 200);
    counts(&server, "/http2/server_resets", 100);
}

fn h108_open_requests_have_common_bounds(config: &Config) {
    let server = start(config, "60s");
    let mut http2 = connect(&server);
    let own = [(":method", "POST"), (":scheme", "http"), (":path", "/echo"), (":authority", "localhost")];
    let mut bytes = Vec::new();
    let fields = block(&own);
    let uploads: Vec<_> = (0..101).map(|_| http2.begin_open(&fields)).collect();
    assert_eq!(http2.reset(uploads[100]), ErrorCode::REFUSED_STREAM);
    // Half open, the uploads together hold `max-body`, and then end by their deadline.
    uploads[..100].iter().for_each(|stream| frame(FrameKind::DATA, 0, *stream, &[b'x'; 1000], &mut bytes));
    http2.send(bytes);
    let statuses: Vec<_> = uploads[..100].iter().map(|stream| http2.response(*stream).status).collect();
    let held = 65_536 / 1000;
    assert!(statuses[..held].iter().all(|status| *status == 408), "{statuses:?}");
    assert!(statuses[held..].iter().all(|status| *status == 413), "{statuses:?}");
    assert_eq!(http2.ask("POST", "/echo", &[], b"content").body, b"content");
    counts(&server, "/refusals/timed-out", held as u64);
    counts(&server, "/refusals/body-too-large", 100 - held as u64);
    counts(&server, "/http2/server_resets", 1);
}

fn h106_files_without_a_window_leave_descriptors_to_others(config: &Config) {
    if config.serial() || config.process_per_connection() {
        // Other connections do not share the descriptors.
        return;
    }
    let folder = TempFolder::new("many-files");
    // Larger files are not read into memory.
    (0..400).for_each(|at| {
        folder.write(&format!("{at}.bin"), vec![b'x'; 1 << 18]);
    });
    let server = Launch::new(config, folder.path()).descriptors(256 * config.workers() as u32).start();
    let mut zero = Vec::new();
    write::settings(&[Setting::InitialWindowSize(0)], &mut zero);
    let mut attackers = Vec::new();
    for number in 0..3 {
        let mut attacker = connect(&server);
        attacker.send(&zero);
        (0..100).for_each(|at| {
            attacker.begin("GET", &format!("/{}.bin", 100 * number + at), &[], b"");
        });
        let last = attacker.begin("GET", "/none", &[], b"");
        if number == 2 {
            assert_eq!(attacker.reset(last), ErrorCode::REFUSED_STREAM);
        }
        attackers.push(attacker);
    }
    for at in 300..310 {
        assert_eq!(server.get(&format!("/{at}.bin")).status, 200, "an HTTP/1 connection opens file {at}");
        let found = connect(&server).ask("GET", &format!("/{}.bin", 20 + at), &[], b"");
        assert_eq!(found.status, 200, "an HTTP/2 connection opens a file after {at}");
    }
}
