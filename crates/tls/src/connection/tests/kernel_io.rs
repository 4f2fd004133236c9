//! A driver that seals like the kernel, with rustls' client.

use std::cell::Cell;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::version::TLS13;
use tenfold_http::layer::LayeredIo;
use tenfold_http::script::{BEGIN, Outcome, Script, ScriptIo};
use tenfold_http::{
    Connection, Finish, Flushed, Instant, Io, IoError, Memory, OpenFile, Out, Patience, Received,
    SealedOutput, Session, serve_connection,
};

use super::kernel::seal;
use super::{Fixture, TestClient, TestService, pattern, request};
use crate::connection::KernelUse;

/// The kernel's state of a connection.
#[derive(Default)]
struct FakeKernel {
    rekeys: bool,
    /// The parameters of the next record; empty before the first key.
    parameters: Vec<u8>,
    queued: u64,
    /// The times at which the socket's queue gets room for another byte.
    held: Vec<Instant>,
    /// The number of reads of the output's position.
    asked: Cell<usize>,
}

impl FakeKernel {
    fn record(&self) -> u64 {
        u64::from_be_bytes(self.parameters[self.parameters.len() - 8..].try_into().expect("eight bytes"))
    }

    fn seal(&mut self, kind: u8, content: &[u8], to: &mut Out) {
        let sealed = seal(&self.parameters, kind, content);
        let (next, end) = (self.record() + 1, self.parameters.len());
        self.parameters[end - 8..].copy_from_slice(&next.to_be_bytes());
        self.queued += sealed.len() as u64;
        to.stage(&sealed);
    }
}

struct KernelIo<'a> {
    below: &'a mut ScriptIo,
    kernel: &'a mut FakeKernel,
    /// Output that is not sealed.
    out: Out,
}

impl KernelIo<'_> {
    fn seals(&self) -> bool {
        !self.kernel.parameters.is_empty()
    }
}

impl Io for KernelIo<'_> {
    fn split(&mut self) -> (&mut [u8], &mut Out) {
        let seals = self.seals();
        let (input, out) = self.below.split();
        (input, if seals { &mut self.out } else { out })
    }

    fn consume(&mut self, count: usize) {
        self.below.consume(count);
    }

    fn connection(&self) -> &Connection {
        self.below.connection()
    }

    fn connection_mut(&mut self) -> &mut Connection {
        self.below.connection_mut()
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
        patience: Patience,
        by: Instant,
    ) -> Poll<Result<Received, IoError>> {
        self.below.poll_receive(cx, room, patience, by)
    }

    fn poll_lost(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<IoError> {
        self.below.poll_lost(cx, by)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>> {
        let to = self.below.split().1;
        while !self.out.is_empty() {
            self.out.advance(0);
            if let Some((kind, content)) = self.out.record() {
                let content = content.to_vec();
                self.kernel.seal(kind, &content, to);
                self.out.advance(content.len() as u64);
            } else if let Some(memory) = self.out.pop_memory(Vec::new()) {
                let bytes = match &memory {
                    Memory::Staged(bytes, from) => &bytes[*from..],
                    Memory::Shared(bytes, range) => &bytes[range.clone()],
                };
                bytes.chunks(16_384).for_each(|content| self.kernel.seal(23, content, to));
            }
        }
        self.below.poll_flush(cx, by)
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<Flushed, IoError>> {
        self.poll_flush(cx, by).map(|flushed| flushed.map(|()| Flushed::All))
    }

    fn seal_in_kernel(&mut self, parameters: &[u8]) -> Option<SealedOutput> {
        assert!(self.below.split().1.is_empty() && self.out.is_empty(), "output has not been flushed");
        if self.seals() && !self.kernel.rekeys {
            return None;
        }
        self.kernel.parameters = parameters.to_vec();
        self.sealed_output()
    }

    fn sealed_output(&self) -> Option<SealedOutput> {
        self.kernel.asked.update(|asked| asked + 1);
        let held = self.kernel.held.iter().filter(|at| **at > tenfold_http::clock::now()).count() as u64;
        let kernel = &self.kernel;
        self.seals()
            .then(|| SealedOutput { queued: kernel.queued.saturating_sub(held), record: kernel.record() })
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>, how: Finish, by: Instant) -> Poll<()> {
        self.below.poll_finish(cx, how, by)
    }

    fn delivered(&self) -> u64 {
        self.below.delivered()
    }

    fn holds(&self, file: &OpenFile, size: u64) -> bool {
        self.below.holds(file, size)
    }

    fn draining(&self) -> bool {
        self.below.draining()
    }
}

fn play(fixture: &Fixture, kernel: &mut FakeKernel, script: Script) -> Outcome {
    let how = KernelUse { required: true, rekeys: kernel.rekeys };
    let tls = fixture.tls.clone().with_kernel(Some(how));
    let (mut state, mut session) = (None, Session::default());
    script.drive(async |io| {
        let mut io = KernelIo { below: io, kernel, out: Out::new() };
        let mut io = LayeredIo::new(&mut io, &tls, &mut state, &fixture.files, &fixture.turns);
        let by = tenfold_http::clock::now() + fixture.limits.head_timeout;
        if let Some(next) = io.begin(by).await {
            return next;
        }
        loop {
            let next = serve_connection(&mut io, &TestService, &fixture.limits, &mut session, None).await;
            if let Some(next) = io.end(next).await {
                return next;
            }
        }
    })
}

const CLOSING: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// The client demands a KeyUpdate, and requests `target`.
fn asks(client: &TestClient, target: &str) -> impl FnOnce(&[u8]) -> Vec<Vec<u8>> + Send + 'static {
    let (client, request) = (client.clone(), request(target));
    move |sent| {
        client.read(sent);
        client.connection(|connection| connection.refresh_traffic_keys().expect("the handshake is over"));
        client.write(&request);
        vec![client.wire()]
    }
}

#[test]
fn responses_after_a_key_update_use_the_new_key_or_close() {
    let fixture = Fixture::new(&TLS13);
    for rekeys in [true, false] {
        let client = fixture.client();
        let mut kernel = FakeKernel { rekeys, ..FakeKernel::default() };
        let second = Duration::from_secs(1);
        let script =
            Script::new().sends(client.wire()).responds(client.answers(0, &request("/"))).waits(second);
        let script = script.responds(asks(&client, "/40000")).waits(second);
        let script = match rekeys {
            true => script.responds(asks(&client, "/")).waits(second).responds(client.answers(0, CLOSING)),
            false => script,
        };
        let outcome = play(&fixture, &mut kernel, script);
        client.read(&outcome.sent);
        assert_eq!(client.error(), None, "rekeys: {rekeys}");
        let plaintext = client.plaintext();
        let text = String::from_utf8_lossy(&plaintext);
        assert_eq!(text.matches("HTTP/1.1 200 OK").count(), if rekeys { 4 } else { 2 });
        assert_eq!(text.matches("Connection: close").count(), 1);
        let large = pattern(0..40_000);
        assert!(plaintext.windows(large.len()).any(|window| window == large));
        assert!(client.closed(), "there is no closing record; rekeys: {rekeys}");
    }
}

/// Runs the last response of a connection. At each of the times `held`, the queue gets room for another byte.
/// Returns the duration of the server's wait, and the number of its reads.
fn wait_for_queue(held: &[u64]) -> (Duration, usize) {
    let (fixture, mut kernel) = (Fixture::new(&TLS13), FakeKernel::default());
    kernel.held = held.iter().map(|milliseconds| BEGIN + Duration::from_millis(*milliseconds)).collect();
    let client = fixture.client();
    let script = Script::new().sends(client.wire()).responds(client.answers(0, CLOSING));
    let outcome = play(&fixture, &mut kernel, script);
    client.read(&outcome.sent);
    assert!(client.closed(), "{:?}", client.error());
    (outcome.took, kernel.asked.get())
}

#[test]
fn the_kernel_is_asked_less_often_while_its_queue_does_not_move() {
    let (unheld, least) = wait_for_queue(&[]);
    assert_eq!(unheld, Duration::ZERO);
    let (took, asked) = wait_for_queue(&[30_000]);
    let seconds = took.as_secs_f64();
    assert!((30.0..=31.0).contains(&seconds), "{seconds} s");
    assert!((30..40).contains(&(asked - least)), "{} times in {seconds} s", asked - least);
    // The pauses add up to 1,260 and 2,260 ms. The second finds progress, so the next pause is short.
    let (took, _) = wait_for_queue(&[2_000, 2_270]);
    assert_eq!(took, Duration::from_millis(2_280));
}
