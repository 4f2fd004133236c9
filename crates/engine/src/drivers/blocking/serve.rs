//! Serving one connection from its first byte to its close.

use std::future::Future;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tenfold_http::{Local, Next, Out, Peer};
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Socket;

use super::io::{BlockingIo, Idle, SLICE};
use crate::drivers::input::Input;
use crate::plan::{Bounds, Plan};
use crate::protocol::{Event, Protocol, read_clock};
use crate::senders::cork::Cork;
use crate::senders::failure::interrupted;
use crate::senders::sender::FileSender;

/// Serves a connection until it is to be closed, which is left to the caller. `idle` hears of its waits.
pub(crate) fn serve<P: Protocol>(
    socket: &Socket,
    peer: Option<SocketAddr>,
    listener: u16,
    plan: &Plan,
    protocol: &P,
    idle: &dyn Idle,
) {
    if peer.is_none() && socket.set_wait_slice(SLICE).is_err() {
        return;
    }
    let peer = peer.map_or(Peer::Unix, Peer::Internet);
    let local = Local { listener };
    let rest = || {
        protocol.rest();
    };
    let (input, out, files) = (Input::that_grows(), Out::new(), FileSender::new(plan));
    let mut cork = Cork::new(plan);
    cork.begin(&peer);
    let mut io = BlockingIo { socket, idle, rest: &rest, input, out, sent: 0, peer, local, files, cork };
    let mut memory = P::State::default();
    read_clock();
    loop {
        let before = io.sent;
        let next = catch_unwind(AssertUnwindSafe(|| block_on(protocol.serve(&mut io, &mut memory))));
        protocol.observe(Event::Sent(io.sent - before));
        io.files.report(|event| protocol.observe(event));
        io.files.clear();
        match next {
            Ok(Next::Park(by)) => {
                protocol.rest();
                let now = read_clock();
                if lifecycle::phase() != Phase::Serving || now >= by {
                    return;
                }
            }
            Ok(Next::Linger) => return linger(io.socket, &plan.bounds),
            Ok(Next::Close) => return,
            Err(_) => return protocol.observe(Event::Panicked),
        }
    }
}

/// Reads and throws away what still comes, within a bound, so that closing does not reset what was sent.
fn linger(socket: &Socket, bounds: &Bounds) {
    let (mut scratch, mut left) = ([0; 4096], bounds.linger_bytes);
    let by = read_clock() + bounds.linger_time;
    while left > 0 && read_clock() < by && lifecycle::phase() != Phase::Stopping {
        match socket.receive(&mut scratch) {
            Ok(0) => return,
            Ok(count) => left = left.saturating_sub(count as u64),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock || interrupted(&error) => {}
            Err(_) => return,
        }
    }
}

struct Unparker(Thread);

impl Wake for Unparker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    static WAKER: Waker = Waker::from(Arc::new(Unparker(thread::current())));
}

/// Runs `future` to its end on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = WAKER.with(Waker::clone);
    let mut cx = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
        thread::park_timeout(SLICE);
    }
}
