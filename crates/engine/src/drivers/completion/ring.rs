//! The trait of the mechanism that executes the driver's operations.
//!
//! An operation is submitted with its tag and the memory that it uses; its completion returns both. Sockets are
//! named by their descriptor numbers, and stay open until [`OperationQueue::close`] or
//! [`OperationQueue::discard`]. A socket has at most one operation of a kind in flight, except sends, which run in
//! the order of submission.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use tenfold_sys::completion::{Bytes, Completion, Readable};
use tenfold_sys::mapping::Mapped;
use tenfold_sys::socket::Socket;

use crate::drivers::input::ReceiveBuffer;

pub(crate) trait OperationQueue {
    type Buffer: ReceiveBuffer;

    /// Accepts connections on `listener`. Each completion yields a connection, and shows whether the operation
    /// continues.
    fn accept(&mut self, listener: RawFd, tag: u64);

    /// Accepts one connection on `listener`.
    fn accept_one(&mut self, listener: RawFd, tag: u64);

    /// Cancels the accept on `listener` with the tag `target`; it completes with ECANCELED.
    fn cancel_accept(&mut self, listener: RawFd, target: u64, tag: u64);

    /// Receives once.
    fn receive(&mut self, number: RawFd, tag: u64);

    /// Receives repeatedly if the mechanism supports it, otherwise once.
    fn receive_on(&mut self, number: RawFd, tag: u64);

    /// Receives once and discards the bytes; the completion may have no buffer.
    fn discard_input(&mut self, number: RawFd, tag: u64) {
        self.receive(number, tag);
    }

    /// Sends all of `bytes`. `more`: more bytes follow immediately (`MSG_MORE`). `linked`: the next operation on
    /// this socket begins after this one succeeds, and is cancelled if this one fails.
    fn send(&mut self, number: RawFd, bytes: Bytes, more: bool, linked: bool, tag: u64);

    /// Sends bytes of a mapped file without copying them; completes with EOPNOTSUPP if that is not supported.
    fn send_held(&mut self, number: RawFd, mapped: Mapped, more: bool, tag: u64);

    /// Reads from `file` at `offset` until `memory` is full.
    fn read(&mut self, file: Readable, offset: u64, memory: Vec<u8>, tag: u64);

    /// Closes `socket` after the sends that are linked to the close.
    fn close(&mut self, socket: Socket, tag: u64);

    /// Closes `socket`, which no operation uses, without a completion.
    fn discard(&mut self, socket: Socket);

    /// Completes when there is room to write: as [`tenfold_sys::completion::ROOM`].
    fn poll_write(&mut self, number: RawFd, tag: u64);

    /// Completes when an eventfd is readable.
    fn poll_read(&mut self, number: RawFd, tag: u64);

    /// Cancels the receive or the wait for room of `number` with the tag `target`; it completes with ECANCELED. If the
    /// mechanism cannot distinguish operations, other operations of the socket may end as well.
    fn cancel(&mut self, number: RawFd, target: u64, tag: u64);

    /// Cancels all operations of the socket `number`.
    fn cancel_all(&mut self, number: RawFd, tag: u64);

    /// Starts the submitted operations, waits for at least one completion or for `timeout` (`None`: without limit), and
    /// appends the completions to `into`. A wait may end without one.
    ///
    /// # Errors
    /// The mechanism failed. A shortage ([`tenfold_sys::failure::is_shortage`]) loses nothing: the next wait
    /// continues.
    fn wait(&mut self, timeout: Option<Duration>, into: &mut Vec<Completion<Self::Buffer>>)
    -> io::Result<()>;
}

/// Implements methods of [`OperationQueue`] with the inherent methods of the same names.
macro_rules! forward {
    ($mechanism:ident { $($method:ident($($argument:ident: $kind:ty),*);)+ }) => {
        $(
            #[inline]
            fn $method(&mut self, $($argument: $kind),*) {
                $mechanism::$method(self, $($argument),*);
            }
        )+
    };
}

pub(crate) use forward;
