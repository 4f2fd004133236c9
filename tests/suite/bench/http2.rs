//! HTTP/2: closed and open loops, the limits of the server, and errors that only HTTP/2 has.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tenfold_engine::Engine;
use tenfold_tests::config::Config;
use tenfold_tests::launch::Launch;
use tenfold_tests::site;

use super::peer::{FaultyServer, ok};
use super::{expect_code, measured, number};

/// Types of frames (RFC 9113 §6).
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
/// END_STREAM and END_HEADERS of HEADERS.
const ENDS: u8 = 5;
const PREFACE: usize = 24;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A setting of the server, as a SETTINGS frame.
fn setting(name: u16, value: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
}

/// `:status: 200`, the 8th entry of the static table (RFC 7541 §A).
fn answer(stream: u32) -> Vec<u8> {
    frame(HEADERS, ENDS, stream, &[0x88])
}

/// A server that sends `first`. `on_frames` gets the type, the flags and the stream of all frames that arrive together, and
/// returns bytes to send.
fn http2(
    first: Vec<u8>,
    on_frames: impl Fn(&[(u8, u8, u32)]) -> Vec<u8> + Send + Sync + 'static,
) -> FaultyServer {
    FaultyServer::accept("127.0.0.1:0", move |mut stream: TcpStream| {
        let (mut received, mut buffer, mut begun) = (Vec::new(), [0; 64 << 10], false);
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            received.extend_from_slice(&buffer[..count]);
            if !begun && received.len() < PREFACE {
                continue;
            }
            let mut reply = Vec::new();
            if !begun {
                received.drain(..PREFACE);
                reply.extend_from_slice(&first);
                begun = true;
            }
            let mut frames = Vec::new();
            while let [a, b, c, kind, flags, id @ ..] = &received[..] {
                let length = 9 + u32::from_be_bytes([0, *a, *b, *c]) as usize;
                if received.len() < length {
                    break;
                }
                let id = u32::from_be_bytes(id[..4].try_into().expect("four bytes"));
                frames.push((*kind, *flags, id));
                received.drain(..length);
            }
            reply.extend(on_frames(&frames));
            if stream.write_all(&reply).is_err() {
                return;
            }
        }
    })
}

fn streams(frames: &[(u8, u8, u32)]) -> Vec<u32> {
    frames.iter().filter(|(kind, ..)| *kind == HEADERS).map(|(.., id)| *id).collect()
}

pub(super) fn http2_closed_and_open_loops_make_their_requests() {
    for tls in [false, true] {
        let config = Config::of(Engine::Epoll);
        let server = Launch::new(&if tls { config.over_tls() } else { config }, site::shared()).start();
        let url = format!("{}://{}/1k.html", if tls { "https" } else { "http" }, server.address);
        let mut common = vec!["--http", "2", "--streams", "8", "-c", "2", "--expect-length", "1024", &url];
        common.extend(tls.then_some("--insecure"));
        let closed = measured(&[&common[..], &["-n", "1001"]].concat());
        assert_eq!((number(&closed, "/answers"), &closed["errors"]), (1001.0, &json!({})), "{closed:#}");
        assert_eq!(number(&closed, "/connections/made"), 2.0, "{closed:#}");
        assert_eq!(number(&closed, "/http2/least_limit"), 100.0, "{closed:#}");
        let open = measured(&[&common[..], &["--rate", "400", "-n", "200"]].concat());
        assert_eq!((number(&open, "/answers"), &open["errors"]), (200.0, &json!({})), "{open:#}");
        assert_eq!(number(&open, "/latency_us/count"), 200.0, "{open:#}");
        server.stop().unwrap_or_else(|why| panic!("{why}"));
    }
}

pub(super) fn http2_needs_a_server_with_http2() {
    let http1 = FaultyServer::start(|stream, _| ok(stream, "HTTP/1.1"));
    let config = Config::of(Engine::Epoll).over_tls();
    let server = Launch::new(&config, site::shared()).flag("--http2", "off").start();
    for (url, why) in [
        (http1.address.to_string(), "use https or --http 1.1"),
        (format!("https://{}", server.address), "use another version with --http"),
    ] {
        let mut words = vec!["--http", "2", "-n", "5", "-c", "1", &url];
        words.extend(url.starts_with("https").then_some("--insecure"));
        expect_code(1, &words, &[&format!("cannot connect to {}", url.trim_start_matches("https://")), why]);
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The limit holds from the acknowledgement of SETTINGS; at most 100 streams precede it.
pub(super) fn http2_obeys_the_limits_of_the_server() {
    const MOST: usize = 3;
    let most = Arc::new(AtomicUsize::new(0));
    let (seen, acknowledged) = (Arc::clone(&most), AtomicUsize::new(0));
    let peer = http2(setting(3, MOST as u32), move |frames| {
        // The frames of the first flight have no limit, so they are answered first.
        let open = streams(frames);
        if acknowledged.load(Ordering::Relaxed) > 0 {
            seen.fetch_max(open.len(), Ordering::Relaxed);
        }
        if frames.iter().any(|(kind, flags, _)| *kind == SETTINGS && *flags == 1) {
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
        open.into_iter().flat_map(answer).collect()
    });
    let address = peer.address.to_string();
    let run = measured(&["--http", "2", "--streams", "8", "-c", "1", "-n", "200", &address]);
    assert_eq!((number(&run, "/answers"), &run["errors"]), (200.0, &json!({})), "{run:#}");
    assert_eq!(number(&run, "/http2/least_limit"), MOST as f64, "{run:#}");
    assert_eq!(most.load(Ordering::Relaxed), MOST, "concurrent streams");

    let peer = http2(setting(6, 100), |_| Vec::new());
    let address = peer.address.to_string();
    let words = ["--http", "2", "-n", "5", "-c", "1", &address];
    expect_code(1, &words, &["the server allows 100 (MAX_HEADER_LIST_SIZE)", "--header"]);
}

pub(super) fn http2_resets_and_goaways_are_errors_by_kind() {
    const REFUSED: u32 = 7;
    const CALM: u32 = 11;
    let begin = || frame(SETTINGS, 0, 0, &[]);
    // Every other stream is refused; the next one has no response.
    let peer = http2(begin(), |frames| {
        let reply = |id: u32| match id % 8 {
            1 => frame(RST_STREAM, 0, id, &REFUSED.to_be_bytes()),
            3 => frame(RST_STREAM, 0, id, &CALM.to_be_bytes()),
            _ => answer(id),
        };
        streams(frames).into_iter().flat_map(reply).collect()
    });
    let address = peer.address.to_string();
    let run = measured(&["--http", "2", "--streams", "4", "-c", "1", "-n", "400", &address]);
    assert_eq!(number(&run, "/answers"), 200.0, "{run:#}");
    assert_eq!(run["errors"], json!({ "stream_refused": 100, "stream_reset": 100 }), "{run:#}");
    assert_eq!(run["http2"]["resets"], json!({ "ENHANCE_YOUR_CALM": 100, "REFUSED_STREAM": 100 }), "{run:#}");

    // GOAWAY without an error after four streams: the others are repeated on the next connection.
    let goaway =
        |last: u32, code: u32| frame(GOAWAY, 0, 0, &[last.to_be_bytes(), code.to_be_bytes()].concat());
    let peer = http2(begin(), move |frames| {
        let served = streams(frames).into_iter().filter(|id| *id <= 7);
        let mut reply: Vec<u8> = served.clone().flat_map(answer).collect();
        if served.max() == Some(7) {
            reply.extend(goaway(7, 0));
        }
        reply
    });
    let address = peer.address.to_string();
    let run = measured(&["--http", "2", "--streams", "6", "-c", "1", "-n", "40", &address]);
    assert_eq!((number(&run, "/answers"), &run["errors"]), (40.0, &json!({})), "{run:#}");
    assert!(number(&run, "/http2/goaways/NO_ERROR") >= 9.0, "{run:#}");

    let peer =
        http2(begin(), move |frames| if streams(frames).is_empty() { Vec::new() } else { goaway(0, CALM) });
    let address = peer.address.to_string();
    let run = measured(&["--http", "2", "-c", "1", "-n", "10", &address]);
    assert_eq!(run["errors"], json!({ "goaway": 10 }), "{run:#}");
    assert!(run["examples"]["goaway"].to_string().contains("GOAWAY with ENHANCE_YOUR_CALM"), "{run:#}");
}
