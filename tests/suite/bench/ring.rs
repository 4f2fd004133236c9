//! `tenfold bench --io uring`: the cases of epoll with a ring, and cases specific to a ring.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::thread;

use serde_json::json;
use tenfold_engine::Engine;
use tenfold_tests::config::Config;
use tenfold_tests::launch::Launch;
use tenfold_tests::site;

use super::peer::{FaultyServer, ok};
use super::{bench, counting, expect_code, measured, number, said};

thread_local! {
    /// The first arguments of the test on this thread.
    static BEFORE: Cell<&'static [&'static str]> = const { Cell::new(&[]) };
}

/// Arguments that come before all others.
pub(super) fn before() -> &'static [&'static str] {
    BEFORE.get()
}

/// Removes the arguments when dropped, because another test may follow on the same thread.
struct ArgumentsGuard;

impl Drop for ArgumentsGuard {
    fn drop(&mut self) {
        BEFORE.set(&[]);
    }
}

fn by_a_ring(case: fn()) {
    BEFORE.set(&["--io", "uring"]);
    let _typed = ArgumentsGuard;
    case();
}

macro_rules! by_a_ring {
    ($($name:ident: $case:ident),+ $(,)?) => {
        $(pub(super) fn $name() {
            by_a_ring(super::$case);
        })+
    };
}

by_a_ring! {
    ring_a_stall: a_stall_counts_from_the_due_time_of_requests,
    ring_starved_connections: starved_connections_are_counted,
    ring_wrong_answers: a_wrong_response_is_an_error,
    ring_framing: every_framing_is_parsed,
    ring_errors_by_kind: connections_that_fail_are_errors_by_kind,
    ring_a_number_of_requests: a_number_of_requests_is_made_exactly,
    ring_littles_law: a_known_server_agrees_with_littles_law,
    ring_order_of_urls: urls_are_requested_in_order_or_at_random,
    ring_connections_by_schedule: scheduled_connections_live_for_their_time,
    ring_an_interrupt: an_interrupt_prints_the_results_so_far,
    ring_a_request_without_room: a_request_without_room_is_sent_later,
    ring_an_endless_response: an_endless_response_does_not_outlast_the_run,
    ring_exit_codes: assertions_and_validity_are_exit_codes,
}

const EACH: [&str; 2] = ["--requests-per-connection", "1"];

/// The errors with a connection per request; other cases use persistent connections.
pub(super) fn ring_errors_of_connections_for_one_request() {
    for way in ["epoll", "uring"] {
        let measured = |words: &[&str]| measured(&[&["--io", way], &EACH[..], words].concat());
        let hangs_up = FaultyServer::start(|_, _| false);
        let run = measured(&["-n", "20", "-c", "2", &hangs_up.address.to_string()]);
        let errors: f64 = ["closed", "reset"].iter().filter_map(|kind| run["errors"][kind].as_f64()).sum();
        assert_eq!(errors, 20.0, "{run:#}");

        let silent = FaultyServer::start(|_, _| true);
        let run = measured(&["-n", "4", "-c", "2", "--timeout", "300ms", &silent.address.to_string()]);
        assert_eq!(number(&run, "/errors/timeout"), 4.0, "{run:#}");

        let short = FaultyServer::start(|stream, _| {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabcde");
            false
        });
        let run = measured(&["-n", "20", "-c", "2", &short.address.to_string()]);
        assert_eq!(number(&run, "/errors/closed"), 20.0, "{run:#}");

        // The server ends during the run: the first responses are correct, and later connects are refused.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let server = thread::spawn(move || {
            for _ in 0..5 {
                let (mut stream, _) = listener.accept().expect("it asks");
                let mut head = [0; 1024];
                let _ = stream.read(&mut head);
                ok(&mut stream, "x");
            }
        });
        let run = measured(&["-n", "9", "-c", "1", &address]);
        server.join().expect("it answered");
        assert_eq!(number(&run, "/answers"), 5.0, "{run:#}");
        let errors = ["refused", "reset", "closed"].iter().filter_map(|kind| run["errors"][kind].as_f64());
        assert_eq!(errors.sum::<f64>(), 4.0, "{run:#}");
        assert!(number(&run, "/errors/refused") >= 3.0, "{run:#}");
    }
}

/// The times of a connection differ: connect, send, response.
pub(super) fn ring_connect_and_first_byte_are_apart() {
    let peer = FaultyServer::start(|stream, _| {
        // The first byte and the last byte have times of their own.
        thread::sleep(std::time::Duration::from_millis(20));
        let begun = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\na").is_ok();
        // The last byte follows apart.
        thread::sleep(std::time::Duration::from_millis(20));
        begun && stream.write_all(b"bcde").is_ok()
    });
    let run =
        measured(&[&["--io", "uring", "-n", "20", "-c", "2", &peer.address.to_string()], &EACH[..]].concat());
    let least = |name: &str| number(&run, &format!("/{name}/min"));
    assert!(least("first_byte_us") >= 20_000.0 && least("latency_us") >= 40_000.0, "{run:#}");
    assert!(least("latency_us") - least("first_byte_us") >= 15_000.0, "{run:#}");
    assert_eq!((number(&run, "/connections/made"), &run["errors"]), (20.0, &json!({})), "{run:#}");
}

/// Long responses arrive in many pieces, and are discarded unless they are hashed.
pub(super) fn ring_long_bodies() {
    const LONG: usize = 3 << 20;
    let body: String = (0..LONG).map(|at| char::from(b'a' + (at % 23) as u8)).collect();
    let peer = FaultyServer::start(move |stream, _| ok(stream, &body));
    let address = peer.address.to_string();
    let words = ["--io", "uring", "-n", "12", "-c", "3", "--expect-length", "3145728", &address];
    let bytes = (12 * LONG) as f64;
    for more in [&[][..], &EACH[..]] {
        let run = measured(&[&words[..], more].concat());
        assert_eq!((number(&run, "/answers"), &run["errors"]), (12.0, &json!({})), "{run:#}");
        assert!(number(&run, "/bytes") > bytes, "{run:#}");
        let run = measured(&[&words[..], more, &["--expect-hash", HASH]].concat());
        assert_eq!((number(&run, "/answers"), &run["errors"]), (12.0, &json!({})), "{run:#}");
    }
}

/// The SHA-256 of the 3 MiB above, by sha256sum.
const HASH: &str = "de1cd32d15e879968b66f4f9eba25a9c8cf1c1342c21dad2154c93a1117f37e5";

pub(super) fn ring_idle_connections_are_counted_apart() {
    let server = Launch::new(&Config::of(Engine::Epoll), site::shared()).start();
    let url = format!("{}/1k.html", server.address);
    let run = measured(&["--io", "uring", "-d", "1s", "-c", "4", "--idle", "50", &url]);
    assert_eq!(number(&run, "/connections/idle_held"), 50.0, "{run:#}");
    assert_eq!(number(&run, "/connections/most_at_once"), 54.0, "{run:#}");
    assert_eq!(run["errors"], json!({}));
}

/// The report names the I/O. `auto` uses a ring only for a connection per request without unsupported settings.
pub(super) fn the_choice_of_io_is_reported() {
    let (peer, count) = counting(u64::MAX);
    let address = peer.address.to_string();
    let each = "each request has a connection of its own";
    for (words, means, why) in [
        (&[][..], "epoll", "connections persist"),
        (&EACH[..], "uring", each),
        (&["--completion", "end", "--http", "1.0", "--timeout", "1s"], "uring", each),
        (&["--requests-per-connection", "1", "--source", "127.0.0.2"], "epoll", "--source"),
        (&["--requests-per-connection", "1", "--slow-readers", "1"], "epoll", "slow"),
        (&["--requests-per-connection", "1", "--io", "epoll"], "epoll", "as requested"),
        (&["--io", "uring"], "uring", "as requested"),
        (&["--requests-per-connection", "1", "--processes", "2", "--threads", "2"], "uring", each),
    ] {
        let output = bench(&[&["-n", "8", "-c", "4", "--json", &address], words].concat());
        let report: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{words:?}: {}", said(&output)));
        assert_eq!(report["io"]["means"], json!(means), "{words:?}");
        assert!(report["io"]["why"].as_str().is_some_and(|said| said.contains(why)), "{words:?}: {report:#}");
    }
    assert!(count.load(Ordering::Relaxed) > 0);
    expect_code(
        0,
        &["-v", "-n", "5", "-c", "1", &address, "--io", "uring"],
        &["I/O by io_uring: as requested"],
    );
    for words in
        [&["unix:/s"][..], &["localhost", "--source", "127.0.0.2"], &["localhost", "--slow-readers", "1"]]
    {
        let output = expect_code(2, &[&["--io", "uring"], words].concat(), &["io_uring", "--io epoll"]);
        assert_eq!(said(&output).trim_end().lines().count(), 1, "{}", said(&output));
    }
}
