//! How a server stops: it completes begun requests, closes idle connections, and accepts no new ones.

use std::fs::File;
use std::thread;
use std::time::{Duration, Instant};

use tenfold_engine::{Driver, Engine, Topology};
use tenfold_sys::signal::Signal;
use tenfold_testkit::folder::TempFolder;
use tenfold_testkit::time::{PATIENCE, becomes_true, not_before, with_deadlines};
use tenfold_testkit::wire::Wire;

use crate::Statement;
use crate::configuration::{Configuration, any, at_once};
use crate::endings::{LATE, REFUSED};
use crate::launch::{Server, milliseconds};
use crate::pattern;
use crate::server::SMALL;

pub(crate) const STATEMENTS: &[Statement] = statements![
    any: a_server_with_nothing_to_do_leaves_at_once, what_rests_is_closed,
        a_retiring_server_ends_connections_with_their_next_response,
        an_idle_connection_of_a_retiring_server_ends_at_its_deadline, what_comes_to_rest_meanwhile_is_closed,
        what_was_handed_over_arrives, nobody_new_is_let_in, a_server_that_stops_does_not_wait,
        a_server_that_stops_does_not_linger;
    at_once: what_was_begun_is_finished;
    blocks: a_call_that_waits_sees_the_end_within_its_second;
    forks: processes_that_have_ended_are_waited_for;
];

fn forks(configuration: &Configuration) -> bool {
    configuration.engine == Engine::Fork
}

fn blocks(configuration: &Configuration) -> bool {
    configuration.driver() == Driver::Blocking
        && configuration.topology == Topology::Single
        && !configuration.tls
}

fn leaves_well(server: Server) {
    let status = server.end(PATIENCE);
    assert!(status.success(), "{status}");
}

/// The server closes the connection without further bytes, and ends.
fn closes_and_leaves(server: Server, mut client: Wire) {
    let (rest, _) = client.rest();
    assert_eq!(rest, b"");
    leaves_well(server);
}

fn a_server_with_nothing_to_do_leaves_at_once(configuration: &Configuration) {
    let server = Server::start(configuration);
    assert_eq!(server.connect().fetch("/small").body, SMALL);
    server.tell(Signal::Quit);
    leaves_well(server);
}

fn what_rests_is_closed(configuration: &Configuration) {
    let (server, client) = Server::with_client(configuration, &[]);
    server.tell(Signal::Quit);
    closes_and_leaves(server, client);
}

fn a_retiring_server_ends_connections_with_their_next_response(configuration: &Configuration) {
    let (server, mut client) = Server::with_client(configuration, &[]);
    server.tell(Signal::Retire);
    // A request that arrives before the signal gets a normal response.
    becomes_true(PATIENCE, "a response announces the close", || {
        let response = client.fetch("/small");
        assert_eq!(response.body, SMALL);
        response.closes()
    });
    client.expect_end_of_stream();
    leaves_well(server);
}

fn an_idle_connection_of_a_retiring_server_ends_at_its_deadline(configuration: &Configuration) {
    with_deadlines(|deadline| {
        let server = Server::start_with(configuration, &[("idle-timeout", &milliseconds(deadline))]);
        let mut client = server.connect();
        let asked = Instant::now();
        assert_eq!(client.fetch("/small").body, SMALL);
        server.tell(Signal::Retire);
        let is_told_in_time = asked.elapsed() < deadline / 2;
        let (rest, _) = client.rest();
        assert_eq!(rest, b"");
        not_before(deadline, asked);
        leaves_well(server);
        is_told_in_time
    });
}

/// With the slice of a server, not that of other tests.
fn a_call_that_waits_sees_the_end_within_its_second(configuration: &Configuration) {
    let (server, client) = Server::with_client(configuration, &[("slice", "1000")]);
    server.tell(Signal::Quit);
    closes_and_leaves(server, client);
}

/// The signal arrives after the response was sent and before the task has ended.
fn what_comes_to_rest_meanwhile_is_closed(configuration: &Configuration) {
    let server = Server::start_with(configuration, &[("tarries", "200")]);
    let mut client = server.connect();
    // The second request extends the idle deadline. A loop that sleeps until the first deadline is not woken for that.
    assert_eq!(client.fetch("/small").body, SMALL);
    assert_eq!(client.fetch("/small").body, SMALL);
    server.tell(Signal::Quit);
    closes_and_leaves(server, client);
}

fn what_was_begun_is_finished(configuration: &Configuration) {
    let server = Server::start(configuration);
    let (mut download, mut upload, mut later) = (server.connect(), server.connect(), server.connect());
    download.take_little();
    download.get("/large?30000000");
    assert_eq!(download.head().promised(), 30_000_000);
    upload.send(b"GET /small HTTP/1.1\r\nHost: loc");
    later.get("/later?400");
    server.has_taken(&upload);
    server.has_taken(&later);
    server.tell(Signal::Quit);
    // The processes of `fork` get their signal from their parent.
    thread::sleep(Duration::from_millis(100));
    assert!(server.runs());
    upload.send(b"alhost\r\n\r\n");
    let response = upload.response();
    assert_eq!(response.body, SMALL);
    assert!(response.head.contains("Connection: close"), "{}", response.head);
    upload.expect_end_of_stream();
    let response = later.response();
    assert_eq!(response.body, SMALL);
    for part in pattern::large()[..30_000_000].chunks(1 << 20) {
        assert!(download.take(part.len()) == part, "a part of the file is another one");
    }
    let (rest, _) = download.rest();
    assert_eq!(rest, b"");
    drop(later);
    leaves_well(server);
}

fn what_was_handed_over_arrives(configuration: &Configuration) {
    let server = Server::start_with_little_room(configuration);
    let mut client = server.connect();
    client.take_next_to_nothing();
    client.get("/shared?120000");
    let head = client.head();
    server.tell(Signal::Quit);
    // The server leaves while most of the answer is in its kernel.
    thread::sleep(Duration::from_millis(50));
    let body = client.take(head.promised());
    assert!(body == pattern::bytes(120_000), "the answer is another one");
    closes_and_leaves(server, client);
}

fn nobody_new_is_let_in(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut client = server.connect();
    client.send(b"GET /small HTTP/1.1\r\nHost: loc");
    server.has_taken(&client);
    server.tell(Signal::Quit);
    // Soon after the signal, new connections stay in the queue of the listener, which another process may serve. Until
    // then, the server may still serve them.
    let begun = Instant::now();
    let _late = loop {
        let mut late = server.connect().sends_early(true);
        late.get("/small");
        if late.is_silent_for(Duration::from_millis(100)) {
            break late;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "a server that leaves takes nobody");
    };
    client.send(b"alhost\r\n\r\n");
    assert_eq!(client.response().body, SMALL);
    client.expect_end_of_stream();
    leaves_well(server);
}

fn a_server_that_stops_does_not_wait(configuration: &Configuration) {
    let folder = TempFolder::new("endless");
    let path = folder.at("file");
    File::create(&path).and_then(|file| file.set_len(64 << 30)).expect("a file may have holes");
    let server = Server::start_with(configuration, &[("sparse", &path.to_string_lossy())]);
    let mut client = server.connect();
    client.get("/sparse");
    client.head();
    let taker = thread::spawn(move || while client.discard() {});
    let _rests = configuration.at_once().then(|| {
        let mut client = server.connect();
        assert_eq!(client.fetch("/small").body, SMALL);
        client
    });
    server.tell(Signal::Interrupt);
    let status = server.end(Duration::from_secs(10));
    assert!(status.success(), "{status}");
    taker.join().expect("the reader sees an end");
}

fn a_server_that_stops_does_not_linger(configuration: &Configuration) {
    let server = Server::start_with(configuration, &LATE);
    let mut client = server.connect();
    client.send(REFUSED);
    assert_eq!(client.response().status, 400);
    server.tell(Signal::Interrupt);
    let status = server.end(Duration::from_secs(10));
    assert!(status.success(), "{status}");
}

fn processes_that_have_ended_are_waited_for(configuration: &Configuration) {
    let server = Server::start(configuration);
    for _ in 0..5 {
        assert_eq!(server.connect().fetch("/small").body, SMALL);
    }
    // No client connects after this.
    becomes_true(PATIENCE, "ended processes are waited for", || zombies(server.number()) == 0);
    server.stop();
}

/// Children of process `parent` that have ended and were not waited for.
fn zombies(parent: u32) -> usize {
    let processes = std::fs::read_dir("/proc").expect("there is /proc").flatten();
    let stats = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(&format!(" Z {parent} "))))
        .count()
}
