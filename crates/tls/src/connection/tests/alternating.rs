//! A protocol that alternates between both directions, as on a blocking driver.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use rustls::version::TLS13;
use tenfold_http::layer::LayeredIo;
use tenfold_http::script::{Outcome, Script, ScriptIo};
use tenfold_http::{Flushed, Instant, Io, IoError, Next, Patience, Received, clock};

use super::{Fixture, PatternFiles, TestClient, pattern};
use crate::connection::TlsServer;

type TestIo<'a> = LayeredIo<'a, ScriptIo, TlsServer, PatternFiles>;

/// Runs `script` with `serve`, which gets the connection when bytes have arrived or the peer has ended its output.
fn play(fixture: &Fixture, script: Script, mut serve: impl AsyncFnMut(&mut TestIo<'_>, Received)) -> Outcome {
    let mut state = None;
    script.blocking().drive(async |io| {
        let mut io = LayeredIo::new(io, &fixture.tls, &mut state, &fixture.files, &fixture.turns);
        let by = clock::now() + Duration::from_secs(60);
        if let Some(next) = io.begin(by).await {
            return next;
        }
        loop {
            let received = poll_fn(|cx| io.poll_receive(cx, 100, Patience::Park, by)).await;
            serve(&mut io, received.expect("the peer behaves")).await;
            if received == Ok(Received::End) {
                return io.end(Next::Close).await.expect("the connection ends");
            }
        }
    })
}

/// Tries to receive, and returns the number of bytes that are shown.
async fn attempt(io: &mut TestIo<'_>) -> Result<(Received, usize), IoError> {
    let polled = poll_fn(|cx| Poll::Ready(io.poll_receive(cx, 100, Patience::Try, Instant(0)))).await;
    let Poll::Ready(received) = polled else { panic!("a try waits") };
    Ok((received?, io.split().0.len()))
}

fn fixture() -> (Fixture, TestClient) {
    let fixture = Fixture::new(&TLS13);
    let client = fixture.client();
    (fixture, client)
}

#[test]
fn a_try_returns_plaintext_first_and_then_what_has_arrived() {
    let (fixture, client) = fixture();
    let writes = client.clone();
    let script = client.handshakes().responds(move |sent| {
        writes.read(sent);
        writes.write(&[7; 250]);
        writes.write(&[8; 30]);
        vec![writes.wire()]
    });
    let script = script.waits(Duration::from_secs(1)).responds(client.closes());
    let mut found = Vec::new();
    play(&fixture, script, async |io, first| {
        found.push((first, io.split().0.len()));
        while found.last().is_some_and(|(received, _)| *received == Received::Bytes) {
            let shown = io.split().0.len();
            io.consume(shown);
            found.push(attempt(io).await.expect("the peer behaves"));
        }
    });
    let bytes = [100, 100, 50, 30].map(|count| (Received::Bytes, count));
    assert_eq!(found, [&bytes[..], &[(Received::Idle, 0), (Received::End, 0)]].concat());
}

#[test]
fn bytes_and_key_updates_are_received_between_slices() {
    const LENGTH: u64 = 100_000;
    let (fixture, client) = fixture();
    let updates = client.clone();
    let script = client.handshakes().responds(client.answers(0, b"begin")).waits(Duration::from_millis(50));
    let script = script.responds(move |sent| {
        updates.read(sent);
        updates.connection(|connection| connection.refresh_traffic_keys().expect("the handshake is over"));
        vec![updates.wire()]
    });
    let script = script.waits(Duration::from_millis(50)).responds(client.answers(0, b"between"));
    let script = script.waits(Duration::from_secs(1)).responds(client.closes());
    let (mut slices, mut between) = (0, None);
    let outcome = play(&fixture, script.takes(5000, Duration::from_millis(10)), async |io, received| {
        let (input, out) = io.split();
        let count = input.len();
        if received == Received::End {
            return;
        }
        out.stage(&pattern(0..LENGTH));
        io.consume(count);
        let by = clock::now() + Duration::from_secs(60);
        while poll_fn(|cx| io.poll_send(cx, by)).await == Ok(Flushed::Part) {
            slices += 1;
            if attempt(io).await == Ok((Received::Bytes, b"between".len())) {
                between = Some(slices);
                io.consume(b"between".len());
            }
        }
    });
    client.read(&outcome.sent);
    assert_eq!(client.error(), None);
    assert_eq!(client.plaintext(), pattern(0..LENGTH));
    assert!(slices >= LENGTH / 5000, "{slices} slices");
    assert!(between.is_some_and(|slice| slice < slices), "{between:?} of {slices}");
}
