//! A connection, as the protocol uses it.
//!
//! Three drivers implement [`Io`] (blocking, readiness, completion), and a layer wraps it (TLS). Drivers do
//! not depend on HTTP, and the protocol does not use descriptors.

use std::task::{Context, Poll};

use crate::clock::Instant;
use crate::message::connection::Connection;
use crate::out::{OpenFile, Out};

/// A connection: bytes received, bytes to send, and waits that end at a deadline.
///
/// Every implementation keeps this contract, and the tests check it:
///
/// - Received bytes and output are borrowed together, so that a head is parsed in place.
/// - Receiving and sending are polled independently. Within one poll of the task, every method that returns
///   `Pending` adds to the events that the connection waits for: bytes, room, a loss, and any holder of the
///   task's waker. Any of these events makes the driver poll the task again. Each poll of the task begins
///   without waits: a wait that continues is polled again.
/// - A deadline belongs to one wait. Each poll of the wait passes it, and the last value counts. After the
///   deadline, the wait returns [`IoError::TimedOut`]. Other waits continue, and the connection can still
///   send.
/// - A blocking driver has one wait at a time ([`Io::blocks`]). With output to send, a protocol that needs both
///   directions alternates: [`Patience::Try`], then [`Io::poll_send`].
/// - After an error other than `TimedOut`, only [`Io::poll_finish`] may be called.
pub trait Io {
    /// Returns the received bytes that are not yet consumed, and the output.
    fn split(&mut self) -> (&mut [u8], &mut Out);

    /// Drops the first `count` received bytes. Panics if there are fewer.
    fn consume(&mut self, count: usize);

    /// Returns the facts about the connection. They are constant once a byte has been received.
    fn connection(&self) -> &Connection;

    /// Returns the facts for changes by the first bytes: a PROXY header names the peer.
    fn connection_mut(&mut self) -> &mut Connection;

    /// Receives more bytes until `by`. At most `room` bytes are held in total; if that many are held already,
    /// the result is [`Received::Full`].
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
        patience: Patience,
        by: Instant,
    ) -> Poll<Result<Received, IoError>>;

    /// Waits for the loss of the peer, until `by`. It is polled while a response is prepared elsewhere. A
    /// peer that has only ended its output is not lost.
    fn poll_lost(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<IoError>;

    /// Sends the output, until `by`. Ready when the connection can take the next response. A driver that owns
    /// bytes until the kernel has processed them (io_uring) is ready as soon as it owns them.
    fn poll_flush(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<(), IoError>>;

    /// Sends a slice of the output, until `by`: by one call, or by the operations that may be in flight. A call
    /// sends at most 64 KiB of a file, and waits at most a second in a blocking driver.
    fn poll_send(&mut self, cx: &mut Context<'_>, by: Instant) -> Poll<Result<Flushed, IoError>>;

    /// Announces that [`Io::poll_finish`] follows the present output, so that a layer can send its closing
    /// record with it.
    fn end_output(&mut self) {}

    /// Ends the output after a flush: a layer sends its closing record. For [`Finish::Linger`], the socket is
    /// shut down for writing, so that the peer receives an end.
    fn poll_finish(&mut self, cx: &mut Context<'_>, how: Finish, by: Instant) -> Poll<()>;

    /// Waits until the kernel has accepted all flushed output.
    fn poll_submitted(&mut self, _cx: &mut Context<'_>, _by: Instant) -> Poll<Result<(), IoError>> {
        Poll::Ready(Ok(()))
    }

    /// Makes the kernel seal all further output as TLS records. All output has been flushed and submitted
    /// before. Returns `None` if the kernel refuses.
    fn seal_in_kernel(&mut self, _parameters: &[u8]) -> Option<SealedOutput> {
        None
    }

    /// Returns the position of output that the kernel seals, if it seals output. Costs system calls.
    fn sealed_output(&self) -> Option<SealedOutput> {
        None
    }

    /// Returns the bytes of output that have reached the peer, as far as the system can report, from a start
    /// that is constant during a flush. Bytes in the kernel's buffer do not count: a slow reader may take
    /// minutes for them. It is called after a deadline, and may cost a system call.
    fn delivered(&self) -> u64;

    /// Whether `file` has at least `size` bytes now. Costs a system call.
    fn holds(&self, file: &OpenFile, size: u64) -> bool;

    /// Announces that responses share the output: few unsent bytes are kept in the kernel, so that a late urgent
    /// response does not wait for all of them. Costs a system call.
    fn share_output(&mut self) {}

    /// Whether each wait blocks the thread of the connection.
    fn blocks(&self) -> bool {
        false
    }

    /// Whether the server is draining: the next response carries `Connection: close`.
    fn draining(&self) -> bool;

    /// Whether idle connections are closed. A replaced server drains, and idle connections wait for their
    /// next request.
    fn closes_idle(&self) -> bool {
        self.draining()
    }
}

/// The behaviour of a receive without received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// The receive may return [`Received::Idle`], because the connection is between requests. Its deadline belongs
    /// to the last request: a wait with the deadline of the wait before it continues the same idle time.
    Park,
    /// The receive waits, because the connection is within a request.
    Wait,
    /// The receive returns without waiting, and ignores its deadline. It returns [`Received::Idle`] if no more
    /// bytes have arrived, or if it is the turn of another connection. A driver that owns receives (io_uring) tries
    /// what it has received, and goes on receiving.
    Try,
}

/// The result of [`Io::poll_receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// At least one more byte was received.
    Bytes,
    /// The peer has ended its output. Received bytes stay.
    End,
    /// The limit of held bytes is reached.
    Full,
    /// No more bytes are available. With [`Patience::Park`], no bytes are held either, so the connection can be
    /// parked. A blocking driver does not park: it waits, and returns this only if it closes the
    /// connection, because the server drains or another connection needs its place.
    Idle,
}

/// The result of [`Io::poll_send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// All output, as after [`Io::poll_flush`].
    All,
    /// A slice of the output; other output is left. In a blocking driver, a slice without room is empty.
    Part,
}

/// The end of a connection's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The peer's bytes have all been read, so closing loses nothing.
    Close,
    /// The peer may still be sending: shut down writing and drain before closing, so that a reset does not
    /// destroy the response (RFC 9112 §9.6).
    Linger,
}

/// The position in output that the kernel seals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealedOutput {
    /// Bytes that have entered the socket's queue, from a constant start.
    pub queued: u64,
    /// The number of the next record.
    pub record: u64,
}

/// The reason why a connection cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoError {
    /// The deadline of this wait has passed.
    TimedOut,
    /// The peer is lost (ECONNRESET, EPIPE or a similar error).
    Gone,
    /// A file became shorter than the response promised, so the response cannot be completed.
    Truncated,
    /// A file cannot be read, or the system failed otherwise; the error number (`man 3 errno`).
    System(i32),
}
