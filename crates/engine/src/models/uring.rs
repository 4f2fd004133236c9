//! `uring`: the loop submits operations to `io_uring` in batches, once per tick.
//!
//! Each listener has one multishot accept. The first receive of a connection is one-shot; later, one multishot receive
//! fills buffers that the kernel takes from a ring. A response is one send. All operations of a tick cost one
//! `io_uring_enter(2)`. A new connection costs a `getpeername(2)` as well, because a multishot accept does not report
//! the peer. The ring has no sendfile operation: for large files, the loop waits for room and calls `sendfile(2)`.
//!
//! Loop: `crates/engine/src/drivers/completion/event_loop.rs`. Page: `docs/explanation/models/uring.md`.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

use tenfold_sys::completion::{Bytes, Readable};
use tenfold_sys::errno;
use tenfold_sys::limits;
use tenfold_sys::mapping::Mapped;
use tenfold_sys::socket::Socket;
use tenfold_sys::uring::{Ring, RingBuffer, RingCompletion, Sizes};

#[cfg(feature = "test-hooks")]
use crate::drivers::completion::faults;
use crate::drivers::completion::receiving::INBOX_BYTES;
use crate::drivers::completion::ring::{self, forward};
use crate::drivers::completion::run::serve;
use crate::drivers::input::ReceiveBuffer;
use crate::plan::Plan;
use crate::plan::choice::Sender;
use crate::plan::mechanism::Facility;
use crate::protocol::Protocol;
use crate::worker::confine::confine;
use crate::worker::intake::Intake;

/// The sizes of a worker's ring, probed before it runs. Buffers are small, because one client can fill all buffers:
/// [`UNREAD_BYTES`].
const SIZES: Sizes = Sizes { submissions: 1024, completions: 4096, buffers: 256, buffer_bytes: 1024 };

/// The most received bytes of a connection that its task has not read. A multishot receive is cancelled at
/// [`INBOX_BYTES`], but can fill all buffers before the kernel reports anything.
pub const UNREAD_BYTES: u64 = (SIZES.buffers as u64) * (SIZES.buffer_bytes as u64) + INBOX_BYTES as u64;

/// The bytes that a ring counts against the limit of locked memory (`ulimit -l`), rounded up: 64 bytes for each
/// submission entry, 16 for each completion entry, and the descriptors of the buffers.
pub(crate) const LOCKED_BYTES: u64 = 256 * 1024;

fn sizes() -> Sizes {
    #[cfg(feature = "test-hooks")]
    if let Some(sizes) = faults::rings() {
        return sizes;
    }
    SIZES
}

/// Serves until the server leaves.
pub(crate) fn run<P: Protocol>(plan: &Plan, intake: &Intake<'_>, protocol: &P) -> Result<(), String> {
    for listener in intake.listeners {
        // The ring waits for operations that would block. On a non-blocking descriptor, an accept would complete with
        // EAGAIN.
        let set = listener.set_nonblocking(false);
        set.map_err(|error| format!("cannot watch {}: {error}", listener.address()))?;
    }
    // Zero-copy sends to clients that do not read hold locked memory. New workers need some of this memory for their
    // rings, and for the ring that tries a zero-copy send.
    let (made, holds) = match plan.sender {
        Sender::Zerocopy => limits::halve_locked_memory(|| (Ring::restricted(sizes()), Ring::sends_held()))
            .map_err(|error| format!("cannot lower the limit of locked memory: {error}"))?,
        _ => (Ring::restricted(sizes()), Ok(true)),
    };
    let ring = made.map_err(|(what, error)| match error.raw_os_error() {
        Some(errno::ENOMEM) => format!(
            "{what}: {error}; a ring is locked memory of the user who serves: allow {} KiB for each worker \
             (ulimit -l), or choose another engine",
            LOCKED_BYTES / 1024
        ),
        _ => format!("{what}: {error}"),
    })?;
    if !holds.map_err(|error| format!("cannot try a zero-copy send: {error}"))? {
        return Err("sender zerocopy needs IORING_OP_SEND_ZC that reports what was copied (Linux 6.2)".into());
    }
    confine(plan, false)?;
    serve(ring, plan, intake, protocol)
}

/// Fails with the facility that this kernel lacks, and the system's error.
pub(crate) fn probe() -> Result<(), (Facility, String)> {
    Ring::restricted(SIZES).map(drop).map_err(|(_, error)| (Facility::Ring, error.to_string()))
}

impl ReceiveBuffer for RingBuffer {
    #[inline]
    fn consume(&mut self, count: usize) {
        RingBuffer::consume(self, count);
    }
}

/// The driver's operations are those of the ring.
impl ring::OperationQueue for Ring {
    type Buffer = RingBuffer;

    forward! { Ring {
        accept(listener: RawFd, tag: u64);
        accept_one(listener: RawFd, tag: u64);
        receive(number: RawFd, tag: u64);
        receive_on(number: RawFd, tag: u64);
        discard_input(number: RawFd, tag: u64);
        send(number: RawFd, bytes: Bytes, more: bool, linked: bool, tag: u64);
        send_held(number: RawFd, mapped: Mapped, more: bool, tag: u64);
        read(file: Readable, offset: u64, memory: Vec<u8>, tag: u64);
        close(socket: Socket, tag: u64);
        poll_write(number: RawFd, tag: u64);
        poll_read(number: RawFd, tag: u64);
        cancel_all(number: RawFd, tag: u64);
    } }

    #[inline]
    fn cancel_accept(&mut self, _listener: RawFd, target: u64, tag: u64) {
        Ring::cancel_accept(self, target, tag);
    }

    #[inline]
    fn discard(&mut self, socket: Socket) {
        drop(socket);
    }

    #[inline]
    fn cancel(&mut self, _number: RawFd, target: u64, tag: u64) {
        Ring::cancel(self, target, tag);
    }

    #[inline]
    fn wait(&mut self, timeout: Option<Duration>, into: &mut Vec<RingCompletion>) -> io::Result<()> {
        Ring::wait(self, timeout, into)
    }
}
