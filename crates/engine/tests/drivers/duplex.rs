//! A protocol that receives and sends concurrently, on every engine: a loop waits for both directions, and a blocking
//! driver alternates between them.

use std::thread;
use std::time::Duration;

use tenfold_engine::Driver;
use tenfold_testkit::wire::Wire;

use crate::Statement;
use crate::configuration::{Configuration, any};
use crate::launch::Server;
use crate::mux::{Answers, BYTES, COUNT, ENDED, NOISE, NOTHING, TRIAL, WINDOW, ask, frame, grant};

pub(crate) const STATEMENTS: &[Statement] = statements![
    any: answers_come_in_pieces_and_out_of_order, a_window_holds_answers_back_across_rests,
        bytes_are_received_while_there_is_no_room, a_try_does_not_wait;
    sleeping_loops: a_loop_that_waits_in_both_directions_sleeps;
];

fn sleeping_loops(configuration: &Configuration) -> bool {
    configuration.driver() != Driver::Blocking && configuration.sleeps()
}

fn start(configuration: &Configuration) -> Server {
    Server::start_with(configuration, &[("protocol", "mux")])
}

/// Reads frames until `enough`.
fn hear(client: &mut Wire, answers: &mut Answers, enough: impl Fn(&Answers) -> bool) {
    while !enough(answers) {
        let head = client.take(4);
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let payload = client.take(length);
        answers.hear(head[0], head[1], &payload);
    }
}

fn answers_come_in_pieces_and_out_of_order(configuration: &Configuration) {
    let server = start(configuration);
    let mut client = server.connect();
    let asked = [(1, 300_000, 0), (2, 250_000, 0), (3, 10, 300), (4, 0, 0), (5, 2000, 100)];
    // One send has all requests, so the server receives all of them before it answers the first.
    let requests = asked.iter().flat_map(|&(stream, bytes, after)| ask(stream, bytes, after));
    client.send(grant(1 << 20).into_iter().chain(requests).collect::<Vec<_>>());
    let mut answers = Answers::default();
    hear(&mut client, &mut answers, |answers| answers.ended.len() == asked.len());
    for (stream, bytes, _) in asked {
        assert_eq!(answers.bytes.get(&stream).copied().unwrap_or(0), bytes, "stream {stream}");
    }
    let place = |stream| answers.ended.iter().position(|ended| *ended == stream);
    assert!(place(4) < place(2) && place(2) < place(1), "{:?}", answers.ended);
    let begins = |stream| answers.pieces.iter().position(|piece| *piece == stream);
    let last = answers.pieces.iter().rposition(|piece| *piece == 1);
    assert!(begins(2) < last, "one answer came behind the other");
    server.stop();
}

fn a_window_holds_answers_back_across_rests(configuration: &Configuration) {
    let server = start(configuration);
    let (mut client, mut answers) = (server.connect(), Answers::default());
    client.send(ask(1, WINDOW, 0));
    hear(&mut client, &mut answers, |answers| answers.ended.len() == 1);
    // The connection is idle, and its window is still used up.
    client.send([ask(2, 3000, 0), frame(COUNT, 0, b"")].concat());
    hear(&mut client, &mut answers, |answers| answers.noise.is_some());
    assert_eq!(answers.all(), WINDOW, "more came than the window allows");
    client.send(grant(1000));
    hear(&mut client, &mut answers, |answers| answers.all() == WINDOW + 1000);
    client.send(grant(5000));
    hear(&mut client, &mut answers, |answers| answers.ended == [1, 2]);
    client.end_output();
    let (rest, _) = client.rest();
    assert!(rest.is_empty(), "{} bytes more than was asked for", rest.len());
    server.stop();
}

/// The peer reads nothing and sends more than fits into the socket buffers. A server that only waited for room would
/// never receive it.
fn bytes_are_received_while_there_is_no_room(configuration: &Configuration) {
    const ANSWER: u32 = 8 << 20;
    const NOISES: u32 = 6000;
    let server = start(configuration);
    let mut client = server.connect();
    client.take_little();
    client.send([grant(ANSWER * 2), ask(1, ANSWER, 0), ask(2, 10, 50)].concat());
    let noise = frame(NOISE, 0, &[7; 2000]);
    for _ in 0..NOISES / 8 {
        client.send(noise.repeat(8));
    }
    client.send(frame(COUNT, 0, b""));
    // The first answer has no room until this is over, and the second one is ready before that.
    thread::sleep(Duration::from_millis(150));
    let mut answers = Answers::default();
    hear(&mut client, &mut answers, |answers| answers.ended.len() == 2 && answers.noise.is_some());
    assert_eq!((answers.all(), answers.noise), (ANSWER + 10, Some(NOISES * 2000)));
    assert_eq!(answers.ended, [2, 1]);
    server.stop();
}

fn a_loop_that_waits_in_both_directions_sleeps(configuration: &Configuration) {
    let server = start(configuration);
    let mut full = server.connect();
    full.take_little();
    full.send([grant(1 << 30), ask(1, 64 << 20, 0), ask(2, 10, 60_000)].concat());
    let mut held = server.connect();
    held.send(ask(1, 2 * WINDOW, 0));
    drop((full.take(1), held.take(1)));
    server.falls_asleep();
    server.stop();
}

fn a_try_does_not_wait(configuration: &Configuration) {
    let server = start(configuration);
    let tries = |client: &mut Wire| {
        let mut answers = Answers::default();
        hear(client, &mut answers, |answers| !answers.tries.is_empty());
        answers.tries
    };
    let mut client = server.connect();
    client.send(frame(TRIAL, 0, b""));
    assert_eq!(tries(&mut client), [NOTHING; 2]);
    // The first receive has no room for all of these.
    client.send([frame(TRIAL, 0, b""), frame(NOISE, 0, &[7; 2000]).repeat(4), frame(COUNT, 0, b"")].concat());
    let found = tries(&mut client);
    assert!(found.contains(&BYTES), "{found:?}");
    let mut answers = Answers::default();
    hear(&mut client, &mut answers, |answers| answers.noise == Some(8000));
    client.send(frame(TRIAL, 0, b""));
    client.end_output();
    assert_eq!(tries(&mut client)[1], ENDED);
    client.expect_end_of_stream();
    server.stop();
}
