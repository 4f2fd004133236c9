//! Files that change during a response, and between two requests.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::time::Duration;

use tenfold_engine::{Dispatch, Sender};
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::wire::{ConnectionEnd, Wire, request};

pub(crate) const THEME: Theme = Theme {
    name: "changing",
    cases: cases![
        Own on SENDERS + TLS + ANOTHER_TLS: h48_h49_a_file_that_shrinks_ends_the_connection,
            h48_h49_a_file_that_shrank_unseen_ends_the_connection, h50_a_file_that_grows_is_sent_as_promised,
            h51_a_file_that_is_replaced_is_sent_in_one_version;
        Own on WORKERS: a_change_is_seen_soon;
        Own on DRIVERS + ANOTHER_CONCURRENT: a_watched_change_is_seen_everywhere;
        Own on EPOLL: the_page_of_the_book_holds;
    ],
};

/// More than the buffers of two sockets, so that the server is still sending.
const BYTES: usize = 24 << 20;

/// The size after the cut, not a multiple of the page size.
const CUT: usize = (14 << 20) + 1000;

/// Starts a server with a large file, requests it and reads the beginning; the rest waits.
fn begin(config: &Config, folder: &TempFolder) -> (Server, Wire, Vec<u8>) {
    let whole = site::bytes(BYTES, 24);
    folder.write("file.bin", &whole);
    let server = Launch::new(config, folder.path()).start();
    let mut wire = server.connect();
    rustix::net::sockopt::set_socket_recv_buffer_size(wire.socket(), 64 * 1024).expect("a socket of ours");
    wire.get("/file.bin");
    let response = wire.head();
    assert_eq!((response.status, response.promised()), (200, BYTES));
    wire.expect_body(&whole[..1 << 20]);
    (server, wire, whole)
}

/// The end of a connection whose file was cut. A layer sends copies, and no closing record.
fn cut_short(config: &Config) -> ConnectionEnd {
    if config.tls { ConnectionEnd::Cut } else { ConnectionEnd::Reset }
}

fn h48_h49_a_file_that_shrinks_ends_the_connection(config: &Config) {
    let folder = TempFolder::new("shrinks");
    let (server, mut wire, whole) = begin(config, &folder);
    let file = OpenOptions::new().write(true).open(folder.at("file.bin")).expect("our own file");
    file.set_len(CUT as u64).expect("our own file");
    let (rest, end) = wire.rest();
    let got = (1 << 20) + rest.len();
    assert!(got < BYTES, "{got} bytes came of a file that shrank to {CUT} bytes");
    // If the file is not copied, the kernel fills the rest of the last page with zeros.
    let right = if config.sender == Sender::Copy { got } else { got.min(CUT) };
    assert!(rest[..right - (1 << 20)] == whole[1 << 20..right], "what came is not what was in the file");
    assert_eq!(end, cut_short(config), "what waits in the socket may be zeros");
    drop(wire);
    folder.write("other.html", "still here\n");
    assert_eq!(server.get("/other.html").body, b"still here\n", "the server goes on");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The socket has room for the rest of the file, so no event of the peer wakes the server.
fn h48_h49_a_file_that_shrank_unseen_ends_the_connection(config: &Config) {
    const BYTES: usize = 6 << 20;
    const CUT: usize = (1 << 17) + 1000;
    let folder = TempFolder::new("shrank");
    let whole = site::bytes(BYTES, 48);
    // Each thread has its own cache. A thread of many that take turns has not checked the file within the last second.
    let launch = Launch::new(config, folder.path());
    let server = match config.dispatch {
        Dispatch::Inline => launch.start(),
        Dispatch::Reactor | Dispatch::Proactor => launch.flag("--pool-threads", 1).start(),
    };
    // An attempt takes seconds on a busy machine, and only some attempts hit the second without a check of the file.
    becomes_true(6 * SOON, "the file is cut between a look at it and its sending", || {
        folder.write("file.bin", &whole);
        let mut wire = server.connect();
        rustix::net::sockopt::set_socket_recv_buffer_size(wire.socket(), 64 * 1024)
            .expect("a socket of ours");
        wire.get("/file.bin");
        let first = wire.head();
        if (first.status, first.promised()) != (200, BYTES) {
            return false;
        }
        // The body exceeds the socket's buffer, so the server has waited for room.
        wire.expect_body(&whole);
        wire.send(request("HEAD", "/file.bin", &[]));
        wire.head();
        let file = OpenOptions::new().write(true).open(folder.at("file.bin")).expect("our own file");
        file.set_len(CUT as u64).expect("our own file");
        wire.get("/file.bin");
        if wire.head().promised() != BYTES {
            return false;
        }
        let (body, end) = wire.rest();
        let right = body.len().min(CUT);
        assert!(
            body.len() < BYTES && body[..right] == whole[..right],
            "what came is not what was in the file"
        );
        assert_eq!(end, cut_short(config), "what waits in the socket may be zeros");
        true
    });
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h50_a_file_that_grows_is_sent_as_promised(config: &Config) {
    let folder = TempFolder::new("grows");
    let (server, mut wire, whole) = begin(config, &folder);
    let mut file = OpenOptions::new().append(true).open(folder.at("file.bin")).expect("our own file");
    file.write_all(&[b'+'; 100_000]).expect("our own file");
    wire.expect_body(&whole[1 << 20..]);
    folder.write("other.html", "still here\n");
    wire.get("/other.html");
    assert_eq!(wire.response().body, b"still here\n", "the next response begins right behind");
    drop(wire);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h51_a_file_that_is_replaced_is_sent_in_one_version(config: &Config) {
    let folder = TempFolder::new("replaced");
    let (server, mut wire, whole) = begin(config, &folder);
    let new = site::bytes(1000, 99);
    folder.write("new.bin", &new);
    fs::rename(folder.at("new.bin"), folder.at("file.bin")).expect("our own files");
    wire.expect_body(&whole[1 << 20..]);
    becomes_true(SOON, "the new version is served", || {
        wire.get("/file.bin");
        let response = wire.response();
        assert!(response.body == new || response.body == whole, "a mixture of both versions");
        response.body == new
    });
    drop(wire);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn a_change_is_seen_soon(config: &Config) {
    let folder = TempFolder::new("changes");
    let page = folder.write("page.html", "the first\n");
    let server = Launch::new(config, folder.path()).start();
    let mut wire = server.connect();
    let mut ask = || {
        wire.get("/page.html");
        wire.response()
    };
    let first = ask();
    assert_eq!(first.body, b"the first\n");
    let bound = Duration::from_secs(5);

    fs::write(&page, "the other\n").expect("our own file");
    becomes_true(bound, "the change is seen", || ask().body == b"the other\n");
    assert_ne!(ask().need("ETag"), first.need("ETag"), "another version has another tag");

    fs::remove_file(&page).expect("our own file");
    becomes_true(bound, "the removal is seen", || ask().status == 404);

    fs::write(&page, "it is back\n").expect("our own file");
    becomes_true(bound, "the return is seen", || ask().body == b"it is back\n");
}

/// Unit tests of the site check the timing with a virtual clock; this case checks the whole server, with the additional
/// thread on each engine.
fn a_watched_change_is_seen_everywhere(config: &Config) {
    if config.process_per_connection() {
        return;
    }
    let folder = TempFolder::new("watched");
    let server = Launch::new(config, folder.path()).flag("--watch", "on").start();
    let mut wire = server.connect();
    let mut becomes = |target: &str, expected: Option<&str>| {
        becomes_true(SOON, target, || {
            wire.get(target);
            let response = wire.response();
            match expected {
                Some(body) => response.status == 200 && response.body == body.as_bytes(),
                None => response.status == 404,
            }
        });
    };
    for round in 0..5 {
        let body = format!("version {round}\n");
        folder.write("docs/page.html", &body);
        becomes("/docs/page.html", Some(&body));
        folder.write("new.html", &body);
        fs::rename(folder.at("new.html"), folder.at("docs/index.html")).expect("our own files");
        becomes("/docs/", Some(&body));
        fs::rename(folder.at("docs"), folder.at("other")).expect("our own folder");
        becomes("/docs/page.html", None);
        becomes("/other/page.html", Some(&body));
        fs::remove_dir_all(folder.at("other")).expect("our own folder");
        becomes("/other/page.html", None);
    }
    drop(wire);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The example of `docs/how-to/changes.md`.
fn the_page_of_the_book_holds(config: &Config) {
    let folder = TempFolder::new("book-changes");
    let page = folder.write("site/page.html", "the first\n");
    let file =
        folder.write("tenfold.toml", super::codings::example(include_str!("../../docs/how-to/changes.md")));
    let server = Launch::bare(config).flag("--config", file.display()).start();
    assert_eq!(server.get("/page.html").body, b"the first\n");
    fs::write(page, "the other\n").expect("our own file");
    becomes_true(SOON, "the change is seen", || server.get("/page.html").body == b"the other\n");
}
