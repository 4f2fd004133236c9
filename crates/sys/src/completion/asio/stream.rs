//! The operations in flight of a socket.

use std::collections::VecDeque;

use super::buffer::AsioCompletion;
use super::handles::StreamHandle;
use crate::completion::Bytes;
use crate::net::socket::Socket;

/// The operations of a socket, which may outlive its handle.
#[derive(Default)]
pub(super) struct StreamOperations {
    /// Declared before the memory: dropping it cancels the operations. `None` after the socket was given back.
    pub(super) handle: Option<StreamHandle>,
    /// Operations that have not completed.
    pub(super) in_flight: u8,
    /// The receive in flight: its tag, and the memory that it fills.
    pub(super) reading: Option<(u64, Vec<u8>)>,
    /// Queued sends; the first is in flight.
    pub(super) sends: VecDeque<QueuedSend>,
    /// The tag of a wait for room to write.
    pub(super) room: Option<u64>,
    /// Whether the library may wait for an event that does not come. After a partial write it assumes that the socket
    /// is full and waits for the kernel to report room. But a write from a mapping also ends early if the file has lost
    /// a page. This also holds for the next send.
    pub(super) exhausted: bool,
    /// Whether the sends were cancelled. The library does not cancel sends whose result it has already stored.
    pub(super) cancelled: bool,
    /// A close after the sends.
    pub(super) close: Option<(u64, Socket)>,
}

/// Bytes being sent, in one or more writes.
pub(super) struct QueuedSend {
    pub(super) tag: u64,
    pub(super) bytes: Bytes,
    /// Bytes already written.
    pub(super) sent: usize,
    /// Whether more follows immediately.
    pub(super) more: bool,
}

impl QueuedSend {
    /// The address and length of the unwritten bytes.
    pub(super) fn rest(&self) -> (*const u8, usize) {
        let (start, length) = self.bytes.address();
        (start.wrapping_add(self.sent), length - self.sent)
    }

    /// Whether a partial write may leave room in the socket.
    pub(super) fn may_fault(&self) -> bool {
        matches!(self.bytes, Bytes::Mapped(_))
    }

    /// Completes it with `result` and returns its memory.
    pub(super) fn over(self, result: i32) -> AsioCompletion {
        let memory = if let Bytes::Owned(memory, _) = self.bytes { Some(memory) } else { None };
        AsioCompletion { memory, ..AsioCompletion::plain(self.tag, result) }
    }
}
