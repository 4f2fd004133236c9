//! A protocol that receives and sends concurrently, driven by scripts: every split of the bytes, pauses and failures at
//! every operation, and deadlines of each wait. `drivers/duplex.rs` has the same protocol on every engine.

#[path = "drivers/mux.rs"]
mod mux;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenfold_engine::offload::{Promise, promise};
use tenfold_http::script::{Outcome, Script};
use tenfold_http::{IoError, Next};
use tenfold_sys::shared::SharedRows;

use crate::mux::{Answers, COUNT, Memory, Mux, NOISE, PATIENCE, WINDOW, ask, frame, grant};

/// A server whose immediate answers are ready, and whose later answers are ready when the test keeps the promises.
fn server() -> (Mux, Arc<Mutex<Vec<Promise<()>>>>) {
    let promises = Arc::<Mutex<Vec<Promise<()>>>>::default();
    let waiting = promises.clone();
    let later = move |milliseconds| {
        let (kept, coming) = promise();
        match milliseconds {
            0 => kept.keep(()),
            _ => waiting.lock().expect("nobody panics").push(kept),
        }
        coming
    };
    let released = Arc::new(SharedRows::new(1, 1).expect("there is memory"));
    (Mux { idle: PATIENCE, released, later: Arc::new(later) }, promises)
}

fn keep_all(promises: &Mutex<Vec<Promise<()>>>) {
    promises.lock().expect("nobody panics").drain(..).for_each(|promise| promise.keep(()));
}

fn play(script: Script, mux: &Mux) -> (Answers, Outcome) {
    let mut memory = Memory::default();
    let outcome = script.drive(async |io| mux.multiplex(io, &mut memory).await);
    let (mut answers, mut rest) = (Answers::default(), &outcome.sent[..]);
    while let [kind, stream, high, low, behind @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let Some((payload, next)) = behind.split_at_checked(length) else { break };
        answers.hear(*kind, *stream, payload);
        rest = next;
    }
    (answers, outcome)
}

/// Requests for two answers that together exceed the window, followed by a query.
fn exchange() -> Vec<u8> {
    let noise = frame(NOISE, 0, &[7; 100]);
    [ask(1, 12_000, 0), ask(2, 9_000, 0), noise, frame(COUNT, 0, b""), grant(8_000)].concat()
}

fn assert_whole(answers: &Answers, how: &str) {
    assert_eq!(answers.bytes, [(1, 12_000), (2, 9_000)].into(), "{how}");
    assert_eq!((answers.ended.len(), answers.noise), (2, Some(100)), "{how}");
}

#[test]
fn answers_come_in_turn_and_the_shorter_one_ends_first() {
    let (answers, outcome) = play(Script::new().sends(exchange()).ends(), &server().0);
    assert_whole(&answers, "at once");
    assert_eq!((&answers.pieces[..4], &answers.ended[..]), (&[1, 2, 1, 2][..], &[2, 1][..]));
    assert_eq!(outcome.next, Next::Close);
}

#[test]
fn it_does_not_matter_how_the_bytes_are_cut_or_how_slowly_they_are_taken() {
    let gap = Duration::from_millis(10);
    for (taken, pause) in [(7, Duration::ZERO), (700, gap), (usize::MAX, gap)] {
        let (mux, _) = server();
        let script = || Script::new().drips(exchange(), gap).takes(taken, pause).ends();
        assert_whole(&play(script(), &mux).0, &format!("{taken} bytes every {pause:?}"));
        assert_whole(&play(script().blocking(), &mux).0, &format!("in turn, {taken} bytes every {pause:?}"));
    }
}

#[test]
fn a_pause_of_one_direction_holds_up_nobody_and_any_failure_ends_it() {
    let script =
        || Script::new().drips(exchange(), Duration::from_millis(1)).takes(3000, Duration::ZERO).ends();
    for script in [&script as &dyn Fn() -> Script, &|| script().blocking()] {
        let (_, outcome) = play(script(), &server().0);
        assert_whole(&play(script().pausing(), &server().0).0, "always");
        for operation in 0..outcome.operations {
            assert_whole(&play(script().pausing_at(operation), &server().0).0, &format!("at {operation}"));
            let (_, failed) = play(script().failing_at(operation, IoError::Gone), &server().0);
            assert_eq!(failed.next, Next::Close, "at {operation}");
        }
    }
}

#[test]
fn an_answer_waits_for_its_window_while_bytes_are_received() {
    let script = Script::new().sends(ask(1, WINDOW + 1000, 0)).waits(Duration::from_secs(5));
    let script = script.sends(frame(COUNT, 0, b"")).waits(Duration::from_secs(5)).sends(grant(1000)).ends();
    let (answers, outcome) = play(script, &server().0);
    assert_eq!((answers.all(), answers.noise), (WINDOW + 1000, Some(0)));
    assert_eq!(outcome.took, Duration::from_secs(10));
}

#[test]
fn bytes_are_received_while_there_is_no_room_and_an_answer_is_prepared() {
    // The peer receives 1000 bytes a second, and the server processes the peer's bytes immediately.
    let (mux, promises) = server();
    let (seen, all) = (Arc::<Mutex<Vec<u64>>>::default(), promises.clone());
    let script = Script::new().sends(ask(1, 16_000, 0)).takes(1000, Duration::from_secs(1));
    let script = script.waits(Duration::from_secs(2)).sends(ask(2, 500, 9)).waits(Duration::from_secs(2));
    let when = seen.clone();
    let script = script.meanwhile(move || {
        when.lock().expect("nobody panics").push(all.lock().expect("nobody panics").len() as u64);
        keep_all(&all);
    });
    let (answers, outcome) = play(script.sends(grant(1000)).ends(), &mux);
    assert_eq!(
        *seen.lock().expect("nobody panics"),
        [1],
        "the second request was received while others were sent"
    );
    assert_eq!((answers.all(), &answers.ended[..]), (16_500, &[1, 2][..]));
    assert!(outcome.took >= Duration::from_secs(15), "{:?}", outcome.took);
}

#[test]
fn a_deadline_is_of_its_own_wait() {
    // No byte arrives until the receive times out. The answer is still sent when it is ready.
    let (mux, promises) = server();
    let script = Script::new().sends(ask(1, 500, 9)).waits(PATIENCE + Duration::from_secs(5));
    let (answers, outcome) = play(script.meanwhile(move || keep_all(&promises)).ends(), &mux);
    assert_eq!((answers.all(), &answers.ended[..], answers.silences), (500, &[1][..], 1));
    assert_eq!(outcome.next, Next::Close);
    // Arriving bytes do not extend the deadline of a send that the peer does not accept.
    let noise = (0..60).fold(Script::new().sends(ask(1, 500, 0)).takes(0, Duration::ZERO), |script, _| {
        script.sends(frame(NOISE, 0, b"x")).waits(Duration::from_secs(1))
    });
    let (answers, outcome) = play(noise, &server().0);
    assert_eq!((answers, outcome.next), (Answers::default(), Next::Close));
    assert_eq!(outcome.took, PATIENCE);
}
