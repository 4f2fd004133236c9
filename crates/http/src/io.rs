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
/// - Received bytes and output are borrowed together, so that a head is parsed where it lies.
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
    /// What was received and not yet consumed, and what is to be sent.
    fn split(&mut self) -> (&mut [u8], &mut Out);

    /// Drops the first `count` received bytes. Panics when there are fewer.
    fn consume(&mut self, count: usize);

    /// Returns the facts about the connection. They no longer change once there is a byte in hand.
    fn connection(&self) -> &Connection;

    /// Receives more bytes behind those in hand, until `by`. At most `room` bytes are held in all: where
    /// that many are in hand, the answer is [`Received::Full`].
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
        patience: Patience,
        by: Instant,
    ) -> Poll<Result<Received, IoError>>;

    /// Waits for nothing but the worst: ready when the peer is gone or `by` has passed. For the time in
    /// which an answer is prepared elsewhere. A peer that has only ended its output is not gone.
    fn poll_lost(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<IoError>;

    /// Sends what is in [`Out`], until `by`. Ready when the connection can take the next answer: a driver
    /// that owns bytes until the kernel is done with them (io_uring) is ready as soon as it owns them.
    fn poll_flush(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>>;

    /// Ends the connection's output after a flush: a layer sends its closing record; for
    /// [`Finish::Linger`] the socket is shut down for writing, so that the peer sees an end.
    fn poll_finish(&mut self, cx: &mut Context<'_>, how: Finish, by: Instant) -> Poll<()>;

    /// Bytes of output that have reached the peer, as far as the system knows, from some start that stays
    /// the same during a flush. What the kernel holds has not: a peer that reads slowly may take minutes
    /// for a full socket buffer. It is asked when a deadline has passed, and may cost a system call.
    fn delivered(&self) -> u64;

    /// Whether the server is leaving: the next answer says `Connection: close`.
    fn draining(&self) -> bool;
}

/// What a receive does when nothing is there and nothing is in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// It may answer [`Received::Idle`]: the connection rests between requests.
    Park,
    /// It waits: the connection is in the middle of something.
    Wait,
}

/// What [`Io::poll_receive`] brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// At least one more byte is in hand.
    Bytes,
    /// The peer has ended its output; what is in hand stays in hand.
    End,
    /// As many bytes as asked for are in hand already.
    Full,
    /// Nothing is there and nothing is in hand: the connection can be parked. Only with
    /// [`Patience::Park`]; a blocking driver, which has no parking, waits all the same and says this only
    /// when the server is leaving.
    Idle,
}

/// How a connection's output ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// Everything the peer sent has been read: closing loses nothing.
    Close,
    /// The peer may still be sending: shut down writing and drain before closing, so that a reset does
    /// not swallow the answer (RFC 9112 §9.6).
    Linger,
}

/// Why a connection cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoError {
    /// The deadline of this wait has passed.
    TimedOut,
    /// The peer is gone (ECONNRESET, EPIPE and their kin).
    Gone,
    /// A file became shorter than what was promised; the answer cannot be completed.
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
