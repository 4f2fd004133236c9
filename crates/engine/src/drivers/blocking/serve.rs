//! Serving one connection from its first byte to its close.

use std::future::Future;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tenfold_http::Next;
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::{Socket, wait_slice};

use super::io::{Blocking, BlockingIo, Idle, LINGERS};
use crate::drivers::connection::Core;
use crate::drivers::farewell::send_farewell;
use crate::drivers::input::Input;
use crate::drivers::linger::{self, Discarded, discard};
use crate::plan::{Bounds, Plan};
use crate::protocol::{Event, Protocol};
use crate::worker::intake::of_accepted;
use crate::worker::tick::read_clock;

/// Serves a connection until its end; the caller closes it. `idle` observes its waits.
pub(crate) fn serve<P: Protocol>(
    socket: &Socket,
    peer: Option<SocketAddr>,
    listener: u16,
    plan: &Plan,
    protocol: &P,
    idle: &dyn Idle,
) {
    if peer.is_none() && socket.set_wait_slice(wait_slice()).is_err() {
        return;
    }
    let before_wait = || {
        protocol.before_wait(false);
    };
    let mut core = Core::new(plan, Input::that_grows(), None);
    core.begin(socket, of_accepted(peer), listener);
    let mut io = BlockingIo { core, transport: Blocking::new(idle, &before_wait) };
    let mut state = P::State::default();
    serve_activations(&mut io, &mut state, socket, plan, protocol);
    protocol.release(state);
}

/// Serves a connection until its end.
fn serve_activations<P: Protocol>(
    io: &mut BlockingIo<'_>,
    state: &mut P::State,
    socket: &Socket,
    plan: &Plan,
    protocol: &P,
) {
    read_clock();
    loop {
        let before = io.core.sent;
        let next = catch_unwind(AssertUnwindSafe(|| block_on(protocol.serve(io, state))));
        protocol.observe(Event::Sent(io.core.sent - before));
        io.core.files.report(|event| protocol.observe(event));
        io.core.files.clear();
        match next {
            Ok(Next::Park(by)) => {
                protocol.before_wait(false);
                let now = read_clock();
                if io.transport.evicted || lifecycle::phase() >= Phase::Draining || now >= by {
                    return send_farewell(protocol, state, socket);
                }
            }
            Ok(Next::Linger) => return linger(socket, &plan.bounds, &io.transport),
            Ok(Next::Close) => return,
            Err(_) => return protocol.observe(Event::Panicked),
        }
    }
}

/// Discards received bytes until the peer has ended its output, or the connection gives way, within a bound of time.
fn linger(socket: &Socket, bounds: &Bounds, Blocking { idle, before_wait, .. }: &Blocking<'_>) {
    let mut looks = read_clock() + wait_slice();
    let begun = linger::now();
    let mut by = linger::deadline(begun, bounds);
    while read_clock() < by && lifecycle::phase() != Phase::Stopping {
        match discard(socket) {
            Discarded::Some => by = linger::deadline(begun, bounds),
            Discarded::Nothing => {}
            Discarded::Over => return,
        }
        if read_clock() >= looks {
            looks = looks + wait_slice();
            before_wait();
            if idle.gives_way(LINGERS) {
                return;
            }
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
        thread::park_timeout(wait_slice());
    }
}
