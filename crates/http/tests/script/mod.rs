//! A connection driven by a script, for tests: no socket, no thread, no real time.
//!
//! A [`Script`] lists the bytes that the peer sends and their times, the rate at which it receives, and the
//! operations of the driver that pause or fail. [`Script::run`] runs it against a [`Service`] on a virtual
//! clock, which jumps to the next event, and returns the outcome.

mod io;

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use io::{Pauses, Step};
pub use io::{ReadFile, Respond, ScriptIo};

use crate::clock::{self, Instant};
use crate::io::{Finish, IoError};
use crate::limits::Limits;
use crate::serve::http1::serve_connection;
use crate::serve::http2::parked::ParkedHttp2;
use crate::serve::session::{Next, Session};
use crate::service::Service;

/// The start of every script on the monotonic clock.
pub const BEGIN: Instant = Instant(1_000_000);

/// The start of every script in seconds since 1970: Sun, 06 Nov 1994 08:49:37 GMT.
pub const BEGIN_UNIX: u64 = 784_111_777;

/// An action outside the connection.
type Action = Box<dyn FnOnce() + Send>;

/// The events on a connection, in the order of time.
pub struct Script {
    io: ScriptIo,
    actions: VecDeque<(Instant, Action)>,
    at: Instant,
}

/// The outcome of a script.
#[derive(Debug)]
pub struct Outcome {
    /// The bytes that the peer received.
    pub sent: Vec<u8>,
    /// The last result of serving the connection; `Park` if nothing happened until the connection's idle
    /// deadline.
    pub next: Next,
    /// How the output was ended, if it was.
    pub finish: Option<Finish>,
    /// The state of the idle connection.
    pub session: Session,
    /// The number of times that the connection was parked and resumed.
    pub parked: usize,
    /// Receives that returned bytes.
    pub receives: usize,
    /// Completed flushes that sent bytes.
    pub flushes: usize,
    /// All driver operations, including those that returned `Pending`.
    pub operations: usize,
    /// The most bytes in the output at a flush.
    pub most_to_send: u64,
    /// The duration on the virtual clock.
    pub took: Duration,
}

impl Default for Script {
    fn default() -> Script {
        Script::new()
    }
}

impl Script {
    /// Returns the script of a peer that connects, receives without delay and sends nothing.
    pub fn new() -> Script {
        Script { io: ScriptIo::new(), actions: VecDeque::new(), at: BEGIN }
    }

    /// The peer sends `bytes` as a separate piece.
    #[must_use]
    pub fn sends(mut self, bytes: impl AsRef<[u8]>) -> Script {
        if !bytes.as_ref().is_empty() {
            self.io.steps.push_back((self.at, Step::Bytes(bytes.as_ref().to_vec())));
        }
        self
    }

    /// The peer sends the pieces that `respond` makes of all the bytes that it has received.
    #[must_use]
    pub fn responds(mut self, respond: impl FnOnce(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Script {
        self.io.steps.push_back((self.at, Step::Response(Box::new(respond))));
        self
    }

    /// The peer sends `bytes` one by one, with `gap` before each.
    #[must_use]
    pub fn drips(self, bytes: impl AsRef<[u8]>, gap: Duration) -> Script {
        bytes.as_ref().iter().fold(self, |script, &byte| script.waits(gap).sends([byte]))
    }

    /// The peer ends its output but still receives.
    #[must_use]
    pub fn ends(mut self) -> Script {
        self.io.steps.push_back((self.at, Step::End));
        self
    }

    /// The peer resets the connection.
    #[must_use]
    pub fn resets(mut self) -> Script {
        self.io.steps.push_back((self.at, Step::Reset));
        self
    }

    /// Nothing happens for `length`.
    #[must_use]
    pub fn waits(mut self, length: Duration) -> Script {
        self.at = self.at + length;
        self
    }

    /// Runs an action outside the connection, such as completing a deferred response.
    #[must_use]
    pub fn meanwhile(mut self, action: impl FnOnce() + Send + 'static) -> Script {
        self.actions.push_back((self.at, Box::new(action)));
        self
    }

    /// The server begins to drain.
    #[must_use]
    pub fn drains(mut self) -> Script {
        self.io.draining_from = self.at;
        self
    }

    /// The peer receives at most `bytes` at a time, with `gap` in between. With 0 bytes, it never receives.
    #[must_use]
    pub fn takes(mut self, bytes: usize, gap: Duration) -> Script {
        (self.io.takes, self.io.gap) = (bytes, gap);
        self
    }

    /// The peer is lost when it has received this many bytes.
    #[must_use]
    pub fn gone_after(mut self, bytes: usize) -> Script {
        self.io.gone_after = bytes;
        self
    }

    /// Every operation of the driver returns `Pending` once before it does anything.
    #[must_use]
    pub fn pausing(mut self) -> Script {
        self.io.pauses = Pauses::Always;
        self
    }

    /// The operation with this index returns `Pending` once.
    #[must_use]
    pub fn pausing_at(mut self, operation: usize) -> Script {
        self.io.pauses = Pauses::At(operation);
        self
    }

    /// The operation with this index fails.
    #[must_use]
    pub fn failing_at(mut self, operation: usize, error: IoError) -> Script {
        self.io.fault = Some((operation, error));
        self
    }

    /// The driver never parks the connection, like a blocking driver.
    #[must_use]
    pub fn blocking(mut self) -> Script {
        self.io.parks = false;
        self
    }

    /// `read` reads files. By default, each byte is its offset modulo 251.
    #[must_use]
    pub fn reading_files_with(mut self, read: ReadFile) -> Script {
        self.io.read = read;
        self
    }

    /// Runs the script to its end. Panics if the connection waits for an event that never comes, or breaks
    /// the contract of [`crate::Io`].
    pub fn run(self, service: &dyn Service, limits: &Limits) -> Outcome {
        let (mut session, parked) = (Session::default(), ParkedHttp2::default());
        let outcome =
            self.drive(async |io| serve_connection(io, service, limits, &mut session, Some(&parked)).await);
        Outcome { session, ..outcome }
    }

    /// Like [`Script::run`], for another protocol: `serve` serves one activation.
    pub fn drive(mut self, mut serve: impl AsyncFnMut(&mut ScriptIo) -> Next) -> Outcome {
        set_clock(BEGIN);
        let mut parked = 0;
        let next = loop {
            let next = {
                let serving = pin!(serve(&mut self.io));
                play(serving, &mut self.actions)
            };
            let Next::Park(by) = next else { break next };
            self.io.assert_empty();
            match self.io.next_step() {
                Some(at) if at < by => {
                    act(&mut self.actions, at);
                    set_clock(at.max(clock::now()));
                }
                _ => break next,
            }
            parked += 1;
        };
        Outcome {
            next,
            parked,
            finish: self.io.finish,
            session: Session::default(),
            receives: self.io.receives,
            flushes: self.io.flushes,
            operations: self.io.operations,
            most_to_send: self.io.most_to_send,
            took: clock::now().since(BEGIN),
            sent: self.io.into_sent(),
        }
    }
}

/// Sets the virtual clock of this thread. Both clocks advance by the same time.
fn set_clock(now: Instant) {
    clock::set(now, BEGIN_UNIX + now.since(BEGIN).as_secs());
}

/// Runs the actions up to `until`.
fn act(actions: &mut VecDeque<(Instant, Action)>, until: Instant) {
    while actions.front().is_some_and(|(at, _)| *at <= until) {
        let (at, action) = actions.pop_front().expect("the front was checked");
        set_clock(at.max(clock::now()));
        action();
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// Polls a future to its end. The clock jumps to the next event when no task is ready.
fn play(
    mut serving: Pin<&mut impl Future<Output = Next>>,
    actions: &mut VecDeque<(Instant, Action)>,
) -> Next {
    // No script needs more polls, so more of them are a busy loop.
    const MOST_POLLS: usize = 10_000_000;
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&woken));
    for _ in 0..MOST_POLLS {
        if woken.0.swap(false, Ordering::Acquire) {
            io::ALARM.set(Instant::NEVER);
            if let Poll::Ready(next) = serving.as_mut().poll(&mut Context::from_waker(&waker)) {
                return next;
            }
            continue;
        }
        let alarm = io::ALARM.get();
        let action = actions.front().map_or(Instant::NEVER, |(at, _)| *at);
        let next = alarm.min(action);
        assert!(next < Instant::NEVER, "the connection waits for an event that never comes");
        set_clock(next.max(clock::now()));
        act(actions, next);
        if alarm <= next {
            woken.0.store(true, Ordering::Release);
        }
    }
    panic!("the connection spins: {MOST_POLLS} polls without an end");
}
