//! A ring on which operations fail, as if the kernel were short of memory or a signal interrupted them. The server
//! repeats operations if it can; otherwise it closes one connection. No truncated answer looks complete.

use tenfold_engine::{Engine, Sender, Topology};
use tenfold_testkit::wire::ConnectionEnd;

use crate::Statement;
use crate::configuration::Configuration;
use crate::launch::{Server, request};
use crate::pattern;
use crate::server::SMALL;

pub(crate) const STATEMENTS: &[Statement] = statements![
    on_a_ring: what_can_be_begun_again_is_and_nobody_notices, what_fails_ends_one_connection_and_no_answer_early,
        who_is_not_read_is_held_back_though_cancelling_fails;
    holding: what_can_not_be_held_is_copied_and_counted, a_last_word_that_is_late_is_counted_when_it_comes,
        without_a_last_word_connections_end_and_the_server_leaves;
];

fn on_a_ring(configuration: &Configuration) -> bool {
    let single = configuration.topology == Topology::Single && !configuration.tls;
    configuration.engine == Engine::Uring && single
}

/// Returns whether the kernel holds sent bytes until it reports their release.
fn holding(configuration: &Configuration) -> bool {
    on_a_ring(configuration) && configuration.sender == Sender::Zerocopy
}

/// The operation, the error, the interval between faults, and their number, in the format of [`crate::server`]. Numbers
/// of errors are those of `man 3 errno` on Linux.
const BEGUN_AGAIN: &[&str] = &[
    // ECANCELED, EINTR, ECONNABORTED, EPERM, ENOBUFS, EMFILE, and an end after the first.
    "accept:125:2:20",
    "accept:4:2:20",
    "accept:103:2:20",
    "accept:1:2:5",
    "accept:105:2:5",
    "accept:24:1:5",
    "accept:once:1:1000",
    // ENOBUFS, ECANCELED, EINTR, EAGAIN.
    "receive:105:2:50",
    "receive:125:2:50",
    "receive:4:2:50",
    "receive:11:3:50",
    "receive:once:1:1000",
    // ECANCELED, ENOMEM.
    "poll:125:2:50",
    "poll:12:3:50",
    "poll:once:1:1000",
    // EINTR, EAGAIN.
    "read:4:2:20",
    "read:11:3:20",
    "cancel:12:1:1000",
    "close:125:1:1000",
    // ENOMEM, ENOBUFS, EOPNOTSUPP, and a notification of released memory that comes late or never.
    "send-held:12:2:20",
    "send-held:105:1:1000",
    "send-held:95:3:20",
    "send-held:late:1:1000",
    "send-held:silent:2:1000",
];

const ENDS_ITS_CONNECTION: &[&str] = &[
    // ENOMEM, ECONNRESET, EIO.
    "receive:12:3:5",
    "receive:104:3:5",
    "receive:5:4:5",
    // EPIPE, ECONNRESET, ENOMEM, ENOBUFS, EINTR, ECANCELED, and half of the bytes.
    "send:32:3:6",
    "send:104:3:6",
    "send:12:4:6",
    "send:105:4:6",
    "send:4:5:6",
    "send:125:5:6",
    "send:short:3:6",
    // EIO, ENOMEM.
    "read:5:3:4",
    "read:12:3:4",
    // EPIPE, ECONNRESET, EINTR, ECANCELED, EFAULT, and half of the bytes.
    "send-held:32:3:6",
    "send-held:104:3:6",
    "send-held:4:4:6",
    "send-held:125:4:6",
    "send-held:14:3:6",
    "send-held:short:3:6",
];

/// The faults that apply to this configuration: only the sender `copy` reads through the ring, and only `zerocopy`
/// sends without copying.
fn concerning(configuration: &Configuration, faults: &[&'static str]) -> Vec<&'static str> {
    let does = |fault: &str| match fault.split(':').next() {
        Some("read") => configuration.sender == Sender::Copy,
        Some("send-held") => configuration.sender == Sender::Zerocopy,
        _ => true,
    };
    faults.iter().copied().filter(|fault| does(fault)).collect()
}

fn what_can_be_begun_again_is_and_nobody_notices(configuration: &Configuration) {
    for fault in concerning(configuration, BEGUN_AGAIN) {
        let server = Server::start_with(configuration, &[("faults", fault)]);
        for round in 0..4 {
            let mut client = server.connect();
            assert_eq!(client.fetch("/small").body, SMALL, "{fault}, round {round}");
            assert_eq!(client.fetch("/later?3").body, SMALL, "{fault}, round {round}");
            assert!(client.fetch("/shared?70000").body == pattern::bytes(70_000), "{fault}, round {round}");
            client.send(request("/small").repeat(16));
            (0..16).for_each(|_| assert_eq!(client.response().body, SMALL, "{fault}, round {round}"));
            let large = client.fetch("/large?900000").body;
            assert!(large == pattern::large()[..900_000], "{fault}, round {round}");
            client.end_output();
            client.expect_end_of_stream();
        }
        server.has_others(0);
        server.stop();
    }
}

fn what_fails_ends_one_connection_and_no_answer_early(configuration: &Configuration) {
    for fault in concerning(configuration, ENDS_ITS_CONNECTION) {
        let server = Server::start_with(configuration, &[("faults", fault)]);
        let whole = (0..40).filter(|_| is_whole(&server, fault)).count();
        assert!((1..40).contains(&whole), "{fault}: {whole} of 40 connections were answered");
        server.has_others(0);
        assert_eq!(server.count("panicked"), 0, "{fault}");
        server.stop();
    }
}

/// Requests a large and a small answer, and asserts that all received bytes are right. Returns whether both were
/// complete.
fn is_whole(server: &Server, fault: &str) -> bool {
    let mut client = server.connect();
    let last = String::from_utf8(request("/large?200000")).expect("a request is text");
    let last = last.replacen("\r\n", "\r\nConnection: close\r\n", 1);
    // The server may end the connection meanwhile.
    let _ = client.try_send(&[&request("/shared?70000")[..], last.as_bytes()].concat());
    let (bytes, end) = client.rest();
    let mut rest = &bytes[..];
    for length in [70_000, 200_000] {
        let Some(head) = rest.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
        rest = &rest[head + 4..];
        let here = rest.len().min(length);
        assert!(rest[..here] == pattern::large()[..here], "{fault}: these are not the bytes of the answer");
        if here < length {
            return false;
        }
        rest = &rest[length..];
    }
    assert_eq!((rest.len(), end), (0, ConnectionEnd::Closed), "{fault}: behind the last answer");
    true
}

fn who_is_not_read_is_held_back_though_cancelling_fails(configuration: &Configuration) {
    let (_server, mut client) = Server::with_client(configuration, &[("faults", "cancel:12:1:4")]);
    client.get("/never");
    let requests = request("/small").repeat(8192);
    let taken = client.send_while_taken(&requests, 128);
    assert!(taken < 64, "{} MiB were taken and not read", (taken * requests.len()) >> 20);
}

/// The number of answers with a file. Each needs two zero-copy sends.
const ROUNDS: u64 = 6;
const HELD: u64 = 2 * ROUNDS;

fn ask_for_files(server: &Server) {
    for _ in 0..ROUNDS {
        assert!(server.connect().fetch("/large?900000").body == pattern::large()[..900_000]);
    }
}

fn what_can_not_be_held_is_copied_and_counted(configuration: &Configuration) {
    for number in [12, 105, 95] {
        let server = Server::start_with(configuration, &[("faults", &format!("send-held:{number}:2:4"))]);
        ask_for_files(&server);
        assert!(server.count("substituted") >= 4, "error {number}");
        // The kernel itself may refuse some of the sends, because too much memory is held.
        server.has_counted("released", HELD - server.count("substituted"));
        assert!(server.count("released") <= HELD - 4, "error {number}: those that failed were not held");
        server.stop();
    }
}

fn a_last_word_that_is_late_is_counted_when_it_comes(configuration: &Configuration) {
    let server = Server::start_with(configuration, &[("faults", "send-held:late:1:1000")]);
    ask_for_files(&server);
    // A client that disconnects midway also leaves held memory.
    for _ in 0..4 {
        let mut client = server.connect();
        client.get("/large?900000");
        client.take(100_000);
    }
    server.has_others(0);
    server.has_counted("released", HELD - server.count("substituted"));
    assert_eq!(server.count("panicked"), 0);
    server.stop();
}

/// A send that is never released costs its memory and nothing else.
fn without_a_last_word_connections_end_and_the_server_leaves(configuration: &Configuration) {
    let server = Server::start_with(configuration, &[("faults", "send-held:silent:1:1000")]);
    ask_for_files(&server);
    server.has_others(0);
    assert_eq!(server.count("released"), 0);
    server.falls_asleep();
    server.stop();
}
