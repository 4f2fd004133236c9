//! A connection on a socket that does not block: every call is tried first.

use std::io::ErrorKind;
use std::sync::Arc;
use std::task::{Context, Poll};

use tenfold_http::{Finish, Instant, Io, IoError, Local, Out, Patience, Peer, Received, clock};
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Socket;

use super::link::{Link, Signals};
use crate::drivers::input::Input;
use crate::plan::Plan;
use crate::senders::cork::Cork;
use crate::senders::failure::{connection_error, interrupted};
use crate::senders::sender::{FileSender, Sent, send_some};

/// Memory of the output that is kept from one activation to the next.
const KEPT_OUT: usize = 32 * 1024;

/// The `Io` of the readiness driver. It owns the socket while its connection is served.
pub(crate) struct ReadinessIo {
    socket: Option<Socket>,
    link: Arc<Link>,
    input: Input,
    out: Out,
    sent: u64,
    peer: Peer,
    local: Local,
    files: FileSender,
    cork: Cork,
    /// Bytes of a turn, and those that are left of this one.
    turn_bytes: usize,
    left: usize,
}

impl ReadinessIo {
    pub(crate) fn new(plan: &Plan) -> ReadinessIo {
        let turn_bytes = plan.bounds.turn_bytes;
        ReadinessIo {
            socket: None,
            link: Arc::new(Link::new()),
            input: Input::default(),
            out: Out::new(),
            sent: 0,
            peer: Peer::Unix,
            local: Local { listener: 0 },
            files: FileSender::new(plan),
            cork: Cork::new(plan),
            turn_bytes,
            left: turn_bytes,
        }
    }

    /// Begins an activation.
    pub(crate) fn begin(&mut self, socket: Socket, peer: Peer, listener: u16, ready: Signals) {
        self.socket = Some(socket);
        (self.peer, self.local) = (peer, Local { listener });
        self.cork.begin(&peer);
        self.sent = 0;
        self.left = self.turn_bytes;
        self.link.begin(ready);
    }

    /// Ends it: gives the socket back, and all memory but a little.
    pub(crate) fn end(&mut self) -> Option<Socket> {
        self.input.release();
        self.out.clear(KEPT_OUT);
        self.files.clear();
        self.socket.take()
    }

    /// Gives back what this thread has lent, before another one ends the activation.
    pub(crate) fn give_back_memory(&mut self) {
        self.input.release();
    }

    /// What the sender of files has counted in this activation.
    pub(crate) fn files(&mut self) -> &mut FileSender {
        &mut self.files
    }

    /// Bytes that the kernel has taken in this activation.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.link
    }

    fn wait<T>(&mut self, signals: Signals, by: Instant) -> Poll<Result<T, IoError>> {
        if clock::now() >= by {
            return Poll::Ready(Err(IoError::TimedOut));
        }
        self.input.settle();
        self.left = self.turn_bytes;
        self.link.wait_for(signals, by);
        Poll::Pending
    }

    /// The kernel holds what was sent, and says so when it does no more, in the socket's error queue.
    fn wait_for_release(&mut self, by: Instant) -> Poll<Result<(), IoError>> {
        if self.link.is_ready(Signals::GONE) {
            return Poll::Ready(Err(IoError::Gone));
        }
        self.link.clear_ready(Signals::FAULT);
        self.wait(Signals::FAULT, by)
    }

    fn wait_for_bytes(&mut self, patience: Patience, by: Instant) -> Poll<Result<Received, IoError>> {
        if patience == Patience::Park && self.input.is_empty() {
            return Poll::Ready(Ok(Received::Idle));
        }
        self.wait(Signals::READ, by)
    }
}

impl Io for ReadinessIo {
    fn split(&mut self) -> (&mut [u8], &mut Out) {
        (self.input.bytes(), &mut self.out)
    }

    fn consume(&mut self, count: usize) {
        self.input.consume(count);
    }

    fn peer(&self) -> &Peer {
        &self.peer
    }

    fn local(&self) -> &Local {
        &self.local
    }

    fn poll_receive(
        &mut self,
        _cx: &mut Context<'_>,
        room: usize,
        patience: Patience,
        by: Instant,
    ) -> Poll<Result<Received, IoError>> {
        let Some(socket) = &self.socket else { return Poll::Ready(Err(IoError::Gone)) };
        while self.link.is_ready(Signals::READ) {
            let into = self.input.room(room);
            if into.is_empty() {
                return Poll::Ready(Ok(Received::Full));
            }
            // Who sends as fast as it is served leaves others their turn.
            if self.left == 0 {
                return self.wait(Signals::AGAIN, by);
            }
            let asked = into.len();
            match socket.receive(into) {
                Ok(0) => return Poll::Ready(Ok(Received::End)),
                Ok(count) => {
                    self.input.filled(count);
                    self.left = self.left.saturating_sub(count);
                    self.link.add_ready(Signals::MOVED);
                    // After a short receive nothing is left, unless the end came with the bytes: its
                    // edge has been reported already.
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
        if self.input.len() >= room {
            return Poll::Ready(Ok(Received::Full));
        }
        self.wait_for_bytes(patience, by)
    }

    /// A mechanism that reports a loss without any interest (`POLLERR`, `POLLHUP`) wakes the task. `select` does
    /// not, and `busy` asks nobody: there the deadline is what ends the wait.
    fn poll_lost(&mut self, _cx: &mut Context<'_>, by: Instant) -> Poll<IoError> {
        if self.link.is_ready(Signals::GONE) {
            return Poll::Ready(IoError::Gone);
        }
        self.wait::<()>(Signals::default(), by).map(|waited| waited.err().unwrap_or(IoError::Gone))
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>> {
        let Some(socket) = &self.socket else { return Poll::Ready(Err(IoError::Gone)) };
        if !self.out.is_empty() {
            self.cork.put(socket);
        }
        while !self.out.is_empty() {
            if !self.link.is_ready(Signals::WRITE) {
                return self.wait(Signals::WRITE, by);
            }
            if self.left == 0 {
                return self.wait(Signals::AGAIN, by);
            }
            match send_some(socket, &mut self.out, &mut self.files, self.left) {
                Ok(Sent::Some(count)) => {
                    self.sent += count as u64;
                    self.link.add_ready(Signals::MOVED);
                    self.left = self.left.saturating_sub(count);
                }
                Ok(Sent::Nothing) => self.link.clear_ready(Signals::WRITE),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        self.cork.pop(socket);
        if self.files.is_outstanding() {
            if self.files.holds(socket)? {
                return self.wait_for_release(by);
            }
            self.link.add_ready(Signals::MOVED);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>, how: Finish, _by: Instant) -> Poll<()> {
        if let (Finish::Linger, Some(socket)) = (how, &self.socket) {
            socket.shut_down_writing();
        }
        Poll::Ready(())
    }

    fn delivered(&self) -> u64 {
        self.socket.as_ref().and_then(Socket::acknowledged).unwrap_or(self.sent)
    }

    fn draining(&self) -> bool {
        lifecycle::phase() != Phase::Serving
    }
}
