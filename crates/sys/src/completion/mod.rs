//! Mechanisms that complete operations, [`uring`] and Asio's proactor ([`asio::CompletionContext`]), and the types that
//! they share: the bytes and files of an operation, and its completion.

pub mod asio;
pub mod uring;

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;

use crate::memory::mapping::Mapped;
use crate::net::socket::Socket;

/// Bytes to send.
pub enum Bytes {
    /// The bytes of a vector from this index on.
    Owned(Vec<u8>, usize),
    /// A range of shared bytes.
    Shared(Arc<[u8]>, Range<usize>),
    /// Bytes of a mapped file.
    Mapped(Mapped),
}

impl Bytes {
    /// The number of bytes.
    #[allow(clippy::len_without_is_empty, reason = "nothing is not sent")]
    pub fn len(&self) -> usize {
        self.address().1
    }

    /// Their address and length. They are on the heap or mapped, so moving the owner does not move them.
    pub(crate) fn address(&self) -> (*const u8, usize) {
        match self {
            Bytes::Owned(bytes, from) => (bytes[*from..].as_ptr(), bytes.len() - from),
            Bytes::Shared(bytes, range) => (bytes[range.clone()].as_ptr(), range.len()),
            Bytes::Mapped(mapped) => mapped.mapping.address(&mapped.range),
        }
    }
}

/// A file that an operation can read.
pub type Readable = Arc<dyn AsFd + Send + Sync>;

/// An operation that has completed, or has an intermediate result. `B` is the buffer type of a receive.
pub struct Completion<B> {
    /// The tag of the operation.
    pub tag: u64,
    /// The result of the equivalent system call; an error is a negative number.
    pub result: i32,
    /// Whether the operation continues and completes again later.
    pub more: bool,
    /// The bytes of a receive.
    pub buffer: Option<B>,
    /// The memory of a send or read, for reuse.
    pub memory: Option<Vec<u8>>,
    /// The connection of an accept.
    pub socket: Option<Socket>,
    /// Set once the kernel no longer holds the bytes of [`crate::completion::uring::Ring::send_held`]: whether it
    /// copied them after all. Such a completion has no other result.
    pub released: Option<bool>,
}

#[cfg(asio)]
impl<B> Completion<B> {
    /// A completion with `result` and nothing else.
    pub(crate) fn plain(tag: u64, result: i32) -> Completion<B> {
        Completion { tag, result, more: false, buffer: None, memory: None, socket: None, released: None }
    }
}

/// The poll bits after which a send is worth a try: room, or an error.
pub const ROOM: i32 = (libc::POLLOUT | libc::POLLERR | libc::POLLHUP) as i32;
