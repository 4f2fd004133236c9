//! A connection on a non-blocking socket: every call is tried before a wait.

use std::io::ErrorKind;
use std::sync::Arc;
use std::task::Poll;

use tenfold_http::{Finish, Instant, IoError, Patience, Peer, Received, clock};
use tenfold_sys::socket::Socket;

use super::link::{Signals, TaskLink};
use crate::drivers::connection::{ConnectionIo, Core, CoreOf, Transport};
use crate::drivers::input::{Input, NoBuffer};
use crate::plan::Plan;
use crate::senders::failure::{connection_error, interrupted};
use crate::senders::sender::Sent;

/// The `Io` of the readiness driver. It owns the socket while its connection is served.
pub(crate) type ReadinessIo = ConnectionIo<ReadinessTransport>;

/// Calls that do not block.
pub(crate) struct ReadinessTransport {
    link: Arc<TaskLink>,
}

impl ReadinessIo {
    pub(super) fn new(plan: &Plan) -> ReadinessIo {
        let transport = ReadinessTransport { link: Arc::new(TaskLink::new()) };
        ReadinessIo { core: Core::new(plan, Input::default()), transport }
    }

    /// Begins an activation.
    pub(super) fn begin(&mut self, socket: Socket, peer: Peer, listener: u16, ready: Signals) {
        self.core.begin(socket, peer, listener);
        self.transport.link.begin(ready);
    }

    /// Returns the resources of this thread, before another thread ends the activation.
    pub(super) fn give_back_memory(&mut self) {
        self.core.input.release();
    }

    pub(super) fn link(&self) -> &Arc<TaskLink> {
        &self.transport.link
    }
}

impl ReadinessTransport {
    fn wait<T>(
        &mut self,
        core: &mut CoreOf<Self>,
        signals: Signals,
        by: Instant,
    ) -> Poll<Result<T, IoError>> {
        if clock::now() >= by {
            return Poll::Ready(Err(IoError::TimedOut));
        }
        core.input.settle();
        self.link.wait_for(signals, by);
        Poll::Pending
    }

    /// Waits until the kernel has released the sent bytes, as reported in the socket's error queue.
    fn wait_for_release(&mut self, core: &mut CoreOf<Self>, by: Instant) -> Poll<Result<(), IoError>> {
        if self.link.is_ready(Signals::GONE) {
            return Poll::Ready(Err(IoError::Gone));
        }
        self.link.clear_ready(Signals::FAULT);
        self.wait(core, Signals::FAULT, by)
    }

    fn wait_for_bytes(
        &mut self,
        core: &mut CoreOf<Self>,
        patience: Patience,
        by: Instant,
    ) -> Poll<Result<Received, IoError>> {
        if patience == Patience::Park && core.input.is_empty() {
            return Poll::Ready(Ok(Received::Idle));
        }
        self.wait(core, Signals::READ, by)
    }
}

impl Transport for ReadinessTransport {
    type Socket = Socket;
    type Buffer = NoBuffer;

    fn poll_receive(
        &mut self,
        core: &mut CoreOf<Self>,
        room: usize,
        patience: Patience,
        by: Instant,
    ) -> Poll<Result<Received, IoError>> {
        let Some(socket) = &core.socket else { return Poll::Ready(Err(IoError::Gone)) };
        while self.link.is_ready(Signals::READ) {
            let into = core.input.room(room);
            if into.is_empty() {
                return Poll::Ready(Ok(Received::Full));
            }
            // A peer that sends as fast as it is served must not starve the others.
            if self.link.left() == 0 {
                return self.wait(core, Signals::AGAIN, by);
            }
            let asked = into.len();
            match socket.receive(into) {
                Ok(0) => return Poll::Ready(Ok(Received::End)),
                Ok(count) => {
                    core.input.filled(count);
                    self.link.moved(count);
                    // A short receive leaves nothing, except the peer's end if it arrived with the bytes: its edge was
                    // already reported.
                    if count < asked && !self.link.is_ready(Signals::ENDED) {
                        self.link.clear_ready(Signals::READ);
                    }
                    return Poll::Ready(Ok(Received::Bytes));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.link.clear_ready(Signals::READ),
                Err(error) if interrupted(&error) => {}
                Err(error) => return Poll::Ready(Err(connection_error(&error))),
            }
        }
        if core.input.len() >= room {
            return Poll::Ready(Ok(Received::Full));
        }
        self.wait_for_bytes(core, patience, by)
    }

    /// A mechanism that reports errors without interest (`POLLERR`, `POLLHUP`) wakes the task. `select` and `busy` do
    /// not: there the wait ends with its deadline.
    fn poll_lost(&mut self, core: &mut CoreOf<Self>, by: Instant) -> Poll<IoError> {
        if self.link.is_ready(Signals::GONE) {
            return Poll::Ready(IoError::Gone);
        }
        self.wait::<()>(core, Signals::default(), by).map(|waited| waited.err().unwrap_or(IoError::Gone))
    }

    fn poll_flush(&mut self, core: &mut CoreOf<Self>, by: Instant) -> Poll<Result<(), IoError>> {
        let Some(socket) = &core.socket else { return Poll::Ready(Err(IoError::Gone)) };
        if !core.out.is_empty() {
            core.cork.iter_mut().for_each(|cork| cork.put(socket));
        }
        while !core.out.is_empty() {
            if !self.link.is_ready(Signals::WRITE) {
                return self.wait(core, Signals::WRITE, by);
            }
            if self.link.left() == 0 {
                return self.wait(core, Signals::AGAIN, by);
            }
            match core.send(self.link.left()) {
                Ok(Sent::Some(count)) => self.link.moved(count),
                Ok(Sent::Nothing) => self.link.clear_ready(Signals::WRITE),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let Some(socket) = &core.socket else { return Poll::Ready(Err(IoError::Gone)) };
        core.cork.iter_mut().for_each(|cork| cork.pop(socket));
        if core.files.is_outstanding() {
            if core.files.holds(socket)? {
                return self.wait_for_release(core, by);
            }
            self.link.add_ready(Signals::MOVED);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_finish(&mut self, core: &mut CoreOf<Self>, how: Finish, _by: Instant) -> Poll<()> {
        if let (Finish::Linger, Some(socket)) = (how, &core.socket) {
            socket.shut_down_writing();
        }
        Poll::Ready(())
    }
}
