//! The trait of the mechanism that executes the driver's operations.
//!
//! An operation is handed over with its tag and with everything that it works on; both come back with its
//! completion. Sockets are named by their numbers, and are open until [`OperationQueue::close`] or [`OperationQueue::discard`]. Of a
//! kind a socket has one operation in flight, but for its sends, which leave in the order in which they were
//! handed over.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use tenfold_sys::completion::{Bytes, Completion, Readable};
use tenfold_sys::mapping::Mapped;
use tenfold_sys::socket::Socket;

use crate::drivers::input::ReceiveBuffer;

pub(crate) trait OperationQueue {
    type Buffer: ReceiveBuffer;

    /// Accepts connections on `listener`; each completion brings one, and says whether the operation goes on.
    fn accept(&mut self, listener: RawFd, tag: u64);

    /// Accepts one connection on `listener`.
    fn accept_one(&mut self, listener: RawFd, tag: u64);

    /// Ends the accept on `listener` that was given `target` as its tag; it completes with ECANCELED.
    fn cancel_accept(&mut self, listener: RawFd, target: u64, tag: u64);

    /// Receives once.
    fn receive(&mut self, number: RawFd, tag: u64);

    /// Receives again and again, where the mechanism knows how to; else once.
    fn receive_on(&mut self, number: RawFd, tag: u64);

    /// Sends all of `bytes`. `more` says that more follows at once (`MSG_MORE`); `linked`, that the next
    /// operation on this socket begins when this one has succeeded, and is cancelled where it fails.
    fn send(&mut self, number: RawFd, bytes: Bytes, more: bool, linked: bool, tag: u64);

    /// Sends bytes of a mapped file without copying them; completes with EOPNOTSUPP where nobody can.
    fn send_held(&mut self, number: RawFd, mapped: Mapped, more: bool, tag: u64);

    /// Reads from `file` at `offset` into `memory`, as many bytes as it is long.
    fn read(&mut self, file: Readable, offset: u64, memory: Vec<u8>, tag: u64);

    /// Closes `socket`, behind the sends that are linked to it.
    fn close(&mut self, socket: Socket, tag: u64);

    /// Closes `socket`, which no operation names, without a word.
    fn discard(&mut self, socket: Socket);

    /// Says when there is room to write: as [`tenfold_sys::completion::ROOM`].
    fn poll_write(&mut self, number: RawFd, tag: u64);

    /// Says when there is something to read from an eventfd.
    fn poll_read(&mut self, number: RawFd, tag: u64);

    /// Ends the receive or the wait for room of `number` that was given `target` as its tag; it completes with
    /// ECANCELED. Where a mechanism cannot tell them apart, others of the socket may end with it.
    fn cancel(&mut self, number: RawFd, target: u64, tag: u64);

    /// Ends every operation that names the socket `number`.
    fn cancel_all(&mut self, number: RawFd, tag: u64);

    /// Begins what was handed over, waits for at least one completion or for `timeout` (none: for ever), and
    /// puts the completions into `into`. There may be none.
    ///
    /// # Errors
    /// The mechanism failed. A shortage ([`tenfold_sys::failure::is_shortage`]) loses nothing: the next wait
    /// goes on.
    fn wait(&mut self, timeout: Option<Duration>, into: &mut Vec<Completion<Self::Buffer>>)
    -> io::Result<()>;
}

/// Implements methods of [`OperationQueue`] by those of the same name that a mechanism has itself.
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
