//! Idle connections: the engine closes them after the protocol's last bytes, and bytes that are no request do not prolong
//! the time for which they are idle.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tenfold_engine::Engine;
use tenfold_sys::signal::Signal;
use tenfold_testkit::time::{PATIENCE, becomes_true, eventually, not_before};
use tenfold_testkit::wire::{ConnectionEnd, Wire};

use crate::Statement;
use crate::bounds::sees_all_idle;
use crate::configuration::{Configuration, any};
use crate::launch::{Server, milliseconds};
use crate::mux::{END, FAREWELL, PIECE, PING, RELEASED, ask, frame};

pub(crate) const STATEMENTS: &[Statement] = statements![
    any: a_ping_does_not_prolong_the_idle_time, a_server_that_drains_takes_leave, states_are_released;
    gives_way: a_ping_does_not_keep_a_place;
];

/// The pause between two pings.
const PAUSE: Duration = Duration::from_millis(100);

fn gives_way(configuration: &Configuration) -> bool {
    sees_all_idle(configuration) || [Engine::Naive, Engine::Pool].contains(&configuration.engine)
}

fn start(configuration: &Configuration, more: &[(&str, &str)]) -> Server {
    Server::start_with(configuration, &[&[("protocol", "mux")], more].concat())
}

/// Receives a frame; `None` if the connection ends.
fn next_frame(client: &mut Wire) -> Option<(u8, Vec<u8>)> {
    let head = client.try_take(4)?;
    let payload = client.try_take(usize::from(u16::from_be_bytes([head[2], head[3]])))?;
    Some((head[0], payload))
}

/// Requests an answer. Returns whether it comes.
fn is_answered(client: &mut Wire) -> bool {
    // The server may close the connection meanwhile.
    let _ = client.try_send(&ask(1, 10, 0));
    let frames = [next_frame(client), next_frame(client)].map(|frame| frame.map(|(kind, _)| kind));
    frames == [Some(PIECE), Some(END)]
}

/// Pings until the server takes leave.
#[track_caller]
fn ping_to_the_end(client: &mut Wire) {
    loop {
        let _ = client.try_send(&frame(PING, 0, b""));
        match next_frame(client) {
            Some((PING, _)) => thread::sleep(PAUSE),
            Some((FAREWELL, _)) => return takes_leave(client),
            other => panic!("{other:?} came instead of a farewell"),
        }
    }
}

/// The server has taken leave, and closes.
#[track_caller]
fn takes_leave(client: &mut Wire) {
    let (rest, end) = client.rest();
    assert_eq!(rest, b"");
    // A ping that arrives after the farewell causes a reset.
    assert_ne!(end, ConnectionEnd::Cut, "there is no closing record");
}

fn a_ping_does_not_prolong_the_idle_time(configuration: &Configuration) {
    let deadline = Duration::from_millis(600);
    let server = start(configuration, &[("idle-timeout", &milliseconds(deadline)), ("slice", "1000")]);
    let mut client = server.connect();
    let begun = Instant::now();
    assert!(is_answered(&mut client));
    ping_to_the_end(&mut client);
    not_before(deadline, begun);
    assert!(begun.elapsed() < PATIENCE, "pings kept the connection open");
    server.stop();
}

/// The idle timeout is longer than the test.
fn a_ping_does_not_keep_a_place(configuration: &Configuration) {
    let settings =
        [("connections", "1"), ("pool-threads", "1"), ("idle-timeout", "600000"), ("slice", "1000")];
    let server = start(configuration, &settings);
    let mut pinging = server.connect();
    assert!(is_answered(&mut pinging));
    let over = Arc::new(AtomicBool::new(false));
    let ended = over.clone();
    let pinging = thread::spawn(move || {
        ping_to_the_end(&mut pinging);
        ended.store(true, Ordering::Relaxed);
    });
    let served = eventually(PATIENCE, "another connection gets the place", || {
        let mut client = server.connect().sends_early(!configuration.greets_at_once());
        is_answered(&mut client).then_some(client)
    });
    becomes_true(PATIENCE, "the pinging connection ends", || over.load(Ordering::Relaxed));
    pinging.join().expect("the server takes leave");
    drop(served);
    server.stop();
}

fn a_server_that_drains_takes_leave(configuration: &Configuration) {
    let server = start(configuration, &[]);
    let mut client = server.connect();
    assert!(is_answered(&mut client));
    server.tell(Signal::Quit);
    assert_eq!(next_frame(&mut client), Some((FAREWELL, Vec::new())));
    takes_leave(&mut client);
    let status = server.end(PATIENCE);
    assert!(status.success(), "{status}");
}

fn states_are_released(configuration: &Configuration) {
    let server = start(configuration, &[]);
    let mut client = server.connect();
    assert!(is_answered(&mut client));
    drop(client);
    becomes_true(PATIENCE, "the state is released", || {
        let mut client = server.connect();
        client.send(frame(RELEASED, 0, b""));
        let count = next_frame(&mut client).expect("the server answers").1;
        u64::from_be_bytes(count.try_into().expect("eight bytes")) > 0
    });
    server.stop();
}
