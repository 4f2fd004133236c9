//! `asio-proactor`: the loop starts operations of Asio (`async_accept`, `async_read_some`, `async_write_some`), and
//! handlers report their completion.
//!
//! Asio uses edge-triggered epoll and not a ring of the kernel: it tries each operation at its start, and again when
//! the socket is ready. Handlers run one by one, and each is a tick of the loop. A read needs memory from its start: an
//! idle connection has 4 KiB.
//!
//! Asio has no operation for files: the loop reads, maps or sends them by its own calls, and waits for room by
//! `async_wait`.
//!
//! System calls of a request on a keep-alive connection: epoll_wait, recv, send, a second epoll_wait that does not
//! block, and a recv that returns EAGAIN.
//!
//! Loop: `crates/engine/src/drivers/completion/event_loop.rs`. Page: `docs/explanation/models/asio-proactor.md`.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use tenfold_sys::asio::{self, CompletionContext};
use tenfold_sys::completion::{Bytes, Completion, Readable};
use tenfold_sys::errno::EOPNOTSUPP;
use tenfold_sys::mapping::Mapped;
use tenfold_sys::socket::Socket;

use crate::drivers::completion::ring::{OperationQueue, forward};
use crate::drivers::completion::run::serve;
use crate::drivers::input::ReceiveBuffer;
use crate::plan::Plan;
use crate::protocol::Protocol;
use crate::worker::intake::Intake;

/// Serves until the server leaves.
pub(crate) fn run<P: Protocol>(plan: &Plan, intake: &Intake<'_>, protocol: &P) -> Result<(), String> {
    for listener in intake.listeners {
        let set = listener.set_nonblocking(true);
        set.map_err(|error| format!("cannot watch {}: {error}", listener.address()))?;
    }
    let proactor = CompletionContext::new().map_err(|error| format!("cannot make an io_context: {error}"))?;
    serve(proactor, plan, intake, protocol)
}

impl ReceiveBuffer for asio::ReceiveBuffer {
    fn consume(&mut self, count: usize) {
        asio::ReceiveBuffer::consume(self, count);
    }
}

impl OperationQueue for CompletionContext {
    type Buffer = asio::ReceiveBuffer;

    forward! { CompletionContext {
        accept(listener: RawFd, tag: u64);
        receive(number: RawFd, tag: u64);
        close(socket: Socket, tag: u64);
        discard(socket: Socket);
        poll_write(number: RawFd, tag: u64);
        poll_read(number: RawFd, tag: u64);
    } }

    fn accept_one(&mut self, listener: RawFd, tag: u64) {
        CompletionContext::accept(self, listener, tag);
    }

    fn cancel_accept(&mut self, listener: RawFd, _target: u64, _tag: u64) {
        CompletionContext::cancel_accept(self, listener);
    }

    fn receive_on(&mut self, number: RawFd, tag: u64) {
        CompletionContext::receive(self, number, tag);
    }

    /// Asio writes the sends of a socket one after the other, so all sends are linked.
    fn send(&mut self, number: RawFd, bytes: Bytes, more: bool, _linked: bool, tag: u64) {
        CompletionContext::send(self, number, bytes, more, tag);
    }

    fn send_held(&mut self, _number: RawFd, _mapped: Mapped, _more: bool, tag: u64) {
        CompletionContext::refuse(self, tag, EOPNOTSUPP);
    }

    fn read(&mut self, file: Readable, offset: u64, memory: Vec<u8>, tag: u64) {
        CompletionContext::read(self, &file, offset, memory, tag);
    }

    fn cancel(&mut self, number: RawFd, _target: u64, _tag: u64) {
        CompletionContext::cancel(self, number);
    }

    fn cancel_all(&mut self, number: RawFd, _tag: u64) {
        CompletionContext::cancel(self, number);
    }

    fn wait(
        &mut self,
        timeout: Option<Duration>,
        into: &mut Vec<Completion<asio::ReceiveBuffer>>,
    ) -> io::Result<()> {
        CompletionContext::wait(self, timeout, into)
    }
}
