//! The state that the completion driver shares with a connection's `Io`: arrived bytes, operations to hand over, and
//! waits. Both live on the ring's thread.

use std::cell::{Cell, RefCell};

use bitflags::bitflags;
use tenfold_http::{Instant, IoError};
use tenfold_sys::completion::{Bytes, Readable};
use tenfold_sys::mapping::Mapped;
use tenfold_sys::socket::Socket;

use crate::drivers::input::ReceiveBuffer;

bitflags! {
    /// The events that a task waits for.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct Wants: u8 {
        /// Bytes, an end, or an error have arrived.
        const RECEIVED = 1 << 0;
        /// All submitted bytes have been sent.
        const SENT = 1 << 1;
        /// There is room to write.
        const WRITABLE = 1 << 2;
        /// A file was read.
        const FILE_READ = 1 << 3;
        /// A request to be polled again after other tasks.
        const AGAIN = 1 << 4;
        /// The peer is gone.
        const LOST = 1 << 5;
        /// Not an event: the task has tried to receive, so bytes are received, and do not wake it.
        const TRIED = 1 << 6;
    }
}

/// A read that the `Io` requests.
pub(super) struct FileRead {
    pub(super) file: Readable,
    pub(super) offset: u64,
    pub(super) memory: Vec<u8>,
}

/// Bytes to submit.
pub(super) struct HandedBytes {
    pub(super) bytes: Bytes,
    /// Whether more bytes follow immediately.
    pub(super) more: bool,
    /// Whether to send them without copying. Such a piece gets its own operation.
    pub(super) held: bool,
}

pub(super) struct RingLink<B> {
    want: Cell<Wants>,
    /// Whether the task waits for anything in this poll.
    waits: Cell<bool>,
    /// The earliest deadline of the waits of the last poll that waited.
    deadline: Cell<Option<Instant>>,
    /// Bytes just received, in the ring's own buffer; valid for this tick.
    pub(super) current: RefCell<Option<B>>,
    /// Bytes that were received while the task did not read; the driver bounds their number.
    pub(super) inbox: RefCell<Vec<u8>>,
    /// The peer has ended its output.
    pub(super) ended: Cell<bool>,
    /// The connection has failed.
    pub(super) failed: Cell<Option<IoError>>,
    /// Bytes to submit after the poll, in order.
    pub(super) outgoing: RefCell<Vec<HandedBytes>>,
    /// Sends in flight.
    pub(super) sending: Cell<u8>,
    /// Bytes that completed sends have sent.
    pub(super) sent: Cell<u64>,
    /// The mapping of a zero-copy send in flight, and whether more bytes follow it.
    pub(super) held: RefCell<Option<(Mapped, bool)>>,
    pub(super) writable: Cell<bool>,
    /// Bytes that calls have sent in this poll.
    pub(super) called: Cell<usize>,
    pub(super) file_read: RefCell<Option<FileRead>>,
    /// Whether a read was submitted and has not completed.
    pub(super) reading: Cell<bool>,
    /// A completed read: its memory and its result.
    pub(super) file_done: RefCell<Option<(Vec<u8>, i32)>>,
    /// The socket of a task that panicked.
    pub(super) abandoned: Cell<Option<Socket>>,
    /// Staging memory, returned by completed sends.
    pub(super) spare: RefCell<Vec<Vec<u8>>>,
}

impl<B: ReceiveBuffer> RingLink<B> {
    pub(super) fn new() -> RingLink<B> {
        RingLink {
            want: Cell::default(),
            waits: Cell::default(),
            deadline: Cell::default(),
            current: RefCell::new(None),
            inbox: RefCell::default(),
            ended: Cell::default(),
            failed: Cell::default(),
            outgoing: RefCell::default(),
            sending: Cell::default(),
            sent: Cell::default(),
            held: RefCell::default(),
            writable: Cell::default(),
            called: Cell::default(),
            file_read: RefCell::default(),
            reading: Cell::default(),
            file_done: RefCell::default(),
            abandoned: Cell::default(),
            spare: RefCell::default(),
        }
    }

    pub(super) fn begin(&self, sending: u8) {
        self.ended.set(false);
        self.failed.set(None);
        self.sending.set(sending);
        self.sent.set(0);
        self.writable.set(true);
        self.deadline.set(None);
        // The previous connection started this read and ended before its completion.
        self.file_read.take();
        self.reading.set(false);
        self.file_done.take();
        self.held.take();
    }

    pub(super) fn wants(&self, wants: Wants) -> bool {
        self.want.get().intersects(wants)
    }

    /// Begins a poll of the task, and clears its waits.
    pub(super) fn begin_poll(&self) {
        self.want.set(Wants::default());
        self.waits.set(false);
        self.called.set(0);
    }

    /// Ends a poll: received bytes that the task did not take leave the ring's buffer.
    pub(super) fn end_poll(&self) {
        if let Some(buffer) = self.current.take() {
            self.inbox.borrow_mut().extend_from_slice(&buffer);
        }
    }

    /// The earliest deadline of the last waits of this activation, if there were any.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline.get()
    }

    /// Adds `wants` to the task's waits.
    pub(super) fn wait_for(&self, wants: Wants, by: Instant) {
        let waited = self.waits.replace(true);
        let before = self.deadline.get().filter(|_| waited);
        self.deadline.set(Some(before.map_or(by, |before| before.min(by))));
        self.add_wants(wants);
    }

    /// Adds `wants` without a deadline.
    pub(super) fn add_wants(&self, wants: Wants) {
        self.want.set(self.want.get() | wants);
    }

    /// Ends the output; submitted bytes may be sent until `by`.
    pub(super) fn finish_by(&self, by: Instant) {
        self.want.set(Wants::default());
        self.deadline.set(Some(by));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::input::NoBuffer;

    #[test]
    fn waits_of_one_poll_add_up_and_their_deadline_outlives_them() {
        let link = RingLink::<NoBuffer>::new();
        link.begin(0);
        assert_eq!(link.deadline(), None);
        for _ in 0..2 {
            link.begin_poll();
            link.wait_for(Wants::RECEIVED, Instant(70));
            link.wait_for(Wants::SENT, Instant(50));
            link.wait_for(Wants::LOST, Instant(60));
            assert_eq!(link.deadline(), Some(Instant(50)));
            assert!(link.wants(Wants::RECEIVED) && link.wants(Wants::SENT) && !link.wants(Wants::AGAIN));
        }
        // A poll without a wait ends the activation; the last bytes keep the deadline of the previous wait.
        link.begin_poll();
        assert!(!link.wants(Wants::RECEIVED | Wants::SENT) && link.deadline() == Some(Instant(50)));
        link.wait_for(Wants::SENT, Instant(90));
        assert_eq!(link.deadline(), Some(Instant(90)));
        link.finish_by(Instant(95));
        assert_eq!(link.deadline(), Some(Instant(95)));
    }
}
