//! A connection as the protocol sees it.
//!
//! Three drivers implement [`Io`] (blocking, readiness, completion) and layers wrap it (TLS). A driver
//! knows nothing of HTTP; the protocol knows nothing of descriptors.

use std::fmt;
use std::task::{Context, Poll};

use crate::clock::Instant;
use crate::message::connection::Connection;
use crate::out::Out;

/// A connection: bytes received, bytes to send, and waits that end at a deadline.
///
/// The contract that every implementation keeps, and the tests hold it to:
///
/// - Received bytes and output are borrowed together, so that a head is parsed in place.
/// - Receiving and sending are polled independently. Within one poll of the task every method that answers
///   `Pending` adds to what the connection waits for: bytes, room, a loss, and whatever holds the task's waker.
///   The task is polled again when any of it happens, and each of its polls begins with waits for nothing: a
///   wait that goes on is polled again.
/// - A deadline belongs to one wait: each poll of that wait gives it, and the last one given counts. When it
///   has passed, that wait answers [`IoError::TimedOut`]; others go on, and the connection may still be
///   written to.
/// - A driver that blocks has one wait at a time. It does not run a protocol that needs both directions at once.
/// - After an error other than `TimedOut` only [`Io::poll_finish`] is of use.
pub trait Io {
    /// Returns the received bytes that are not consumed yet, and the output.
    fn split(&mut self) -> (&mut [u8], &mut Out);

    /// Drops the first `count` received bytes. Panics when there are fewer.
    fn consume(&mut self, count: usize);

    /// Returns the facts about the connection. They no longer change once there is a byte in hand.
    fn connection(&self) -> &Connection;

    /// Lends the facts to the part of the server that learns them from the first bytes: a PROXY header names the peer.
    fn connection_mut(&mut self) -> &mut Connection;

    /// Receives more bytes behind those in hand, until `by`. At most `room` bytes are held in all; with that many in
    /// hand, the result is [`Received::Full`].
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
        patience: Patience,
        by: Instant,
    ) -> Poll<Result<Received, IoError>>;

    /// Waits for the loss of the peer: ready when it is gone or `by` has passed. It is polled while a response is
    /// prepared elsewhere. A peer that has only ended its output is not gone.
    fn poll_lost(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<IoError>;

    /// Sends the output, until `by`. Ready when the connection can take the next response: a driver
    /// that owns bytes until the kernel is done with them (io_uring) is ready as soon as it owns them.
    fn poll_flush(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>>;

    /// Announces that [`Io::poll_finish`] follows the output in hand, so that a layer can send its closing record with it.
    fn end_output(&mut self) {}

    /// Ends the connection's output after a flush: a layer sends its closing record; for
    /// [`Finish::Linger`] the socket is shut down for writing, so that the peer sees an end.
    fn poll_finish(&mut self, cx: &mut Context<'_>, how: Finish, by: Instant) -> Poll<()>;

    /// Waits until the kernel has all output that was flushed.
    fn poll_submitted(&mut self, _cx: &mut Context<'_>, _by: Instant) -> Poll<Result<(), IoError>> {
        Poll::Ready(Ok(()))
    }

    /// Has the kernel seal all further output as records of TLS. All output has been flushed and submitted. Returns
    /// `None` if the kernel refuses.
    fn seal_in_kernel(&mut self, _parameters: &[u8]) -> Option<SealedOutput> {
        None
    }

    /// The output that the kernel has sealed, if it seals it. It costs system calls.
    fn sealed_output(&self) -> Option<SealedOutput> {
        None
    }

    /// Bytes of output that have reached the peer, as far as the system knows, from some start that stays
    /// the same during a flush. Bytes in the kernel's buffer have not: a slow reader may take minutes for a full one.
    /// It is called when a deadline has passed, and may cost a system call.
    fn delivered(&self) -> u64;

    /// Whether the server is draining: the next response carries `Connection: close`.
    fn draining(&self) -> bool;

    /// Whether idle connections are closed. A server that is replaced drains and lets them wait for their next request.
    fn closes_idle(&self) -> bool {
        self.draining()
    }
}

/// The behaviour of a receive if no bytes are there and none are in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// It may return [`Received::Idle`]: the connection is between requests.
    Park,
    /// It waits: the connection is in the middle of something.
    Wait,
}

/// The result of [`Io::poll_receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// At least one more byte is in hand.
    Bytes,
    /// The peer has ended its output; what is in hand stays in hand.
    End,
    /// The room is full.
    Full,
    /// No bytes are there and none are in hand: the connection can be parked. Only with [`Patience::Park`]. A
    /// blocking driver, which parks nothing, waits all the same, and returns this only while the server drains.
    Idle,
}

/// The end of a connection's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Everything the peer sent has been read: closing loses nothing.
    Close,
    /// The peer may still be sending: shut down writing and drain before closing, so that a reset does
    /// not lose the response (RFC 9112 §9.6).
    Linger,
}

/// Output that the kernel has sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedOutput {
    /// Bytes that have entered the socket's queue, from some start that stays the same.
    pub queued: u64,
    /// The number of the next record.
    pub record: u64,
}

/// The reason why a connection cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoError {
    /// The deadline of this wait has passed.
    TimedOut,
    /// The peer is gone (ECONNRESET, EPIPE and their kin).
    Gone,
    /// A file became shorter than the response promised; the response cannot be completed.
    Truncated,
    /// A file cannot be read, or another failure of the system, by its error number (`man 3 errno`).
    System(i32),
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IoError::TimedOut => f.write_str("the deadline has passed"),
            IoError::Gone => f.write_str("the peer is gone"),
            IoError::Truncated => f.write_str("the file became shorter while it was sent"),
            IoError::System(number) => std::io::Error::from_raw_os_error(*number).fmt(f),
        }
    }
}

impl std::error::Error for IoError {}
