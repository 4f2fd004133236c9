//! What is in flight of a socket.

use std::collections::VecDeque;

use super::buffer::Completion;
use super::handles::Handle;
use crate::completion::Bytes;
use crate::net::socket::Socket;

/// A socket, or what is in flight of one that was given back.
#[derive(Default)]
pub(super) struct Stream {
    /// Before the memory: what is in flight is let go with it. None where the socket was given back.
    pub(super) handle: Option<Handle>,
    /// Operations that have not completed.
    pub(super) in_flight: u8,
    /// The receive in flight: its tag, and the memory that it fills.
    pub(super) reading: Option<(u64, Vec<u8>)>,
    /// Sends in their order, of which the first is in flight.
    pub(super) sends: VecDeque<Sending>,
    /// Who waits for room to write.
    pub(super) room: Option<u64>,
    /// Whether the library may wait for an event that does not come. It takes every write that left less than
    /// it was given for the end of the room, and then waits for the kernel to say that there is some again; a
    /// write from a mapping also ends early where the file has lost a page. It holds for the next send, too.
    pub(super) exhausted: bool,
    /// Whether the sends were cancelled. The library does not know of those whose result it has put aside.
    pub(super) cancelled: bool,
    /// Closes behind the sends.
    pub(super) close: Option<(u64, Socket)>,
}

/// Bytes that are being sent, in as many writes as it takes.
pub(super) struct Sending {
    pub(super) tag: u64,
    pub(super) bytes: Bytes,
    /// How many have left.
    pub(super) sent: usize,
    /// Whether more follows at once.
    pub(super) more: bool,
}

impl Sending {
    /// Where those are that have not left, and how many.
    pub(super) fn rest(&self) -> (*const u8, usize) {
        let (start, length) = self.bytes.address();
        (start.wrapping_add(self.sent), length - self.sent)
    }

    /// Whether a write of it that ends early says nothing about the room in the socket.
    pub(super) fn may_fault(&self) -> bool {
        matches!(self.bytes, Bytes::Mapped(_))
    }

    /// It has come to `result`; its memory goes back.
    pub(super) fn over(self, result: i32) -> Completion {
        let memory = if let Bytes::Owned(memory, _) = self.bytes { Some(memory) } else { None };
        Completion { memory, ..Completion::plain(self.tag, result) }
    }
}
