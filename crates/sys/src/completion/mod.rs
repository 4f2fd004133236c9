//! Mechanisms that complete operations, [`uring`] and Asio's proactor ([`asio::Proactor`]), and the types that they
//! share: the bytes and files of an operation, and its completion.

pub mod asio;
pub mod uring;

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;

use crate::memory::mapping::Mapped;
use crate::net::socket::Socket;

/// Bytes that are sent.
pub enum Bytes {
    /// Those of the vector from this place on.
    Owned(Vec<u8>, usize),
    /// A range of shared bytes.
    Shared(Arc<[u8]>, Range<usize>),
    /// Those of a mapped file.
    Mapped(Mapped),
}

impl Bytes {
    /// How many they are.
    #[allow(clippy::len_without_is_empty, reason = "nothing is not sent")]
    pub fn len(&self) -> usize {
        self.address().1
    }

    /// Where they are, and how many. On the heap or mapped: moving their owner does not move them.
    pub(crate) fn address(&self) -> (*const u8, usize) {
        match self {
            Bytes::Owned(bytes, from) => (bytes[*from..].as_ptr(), bytes.len() - from),
            Bytes::Shared(bytes, range) => (bytes[range.clone()].as_ptr(), range.len()),
            Bytes::Mapped(mapped) => mapped.mapping.address(&mapped.range),
        }
    }
}

/// A file that is read.
pub type Readable = Arc<dyn AsFd + Send + Sync>;

/// An operation that has completed, or has one more result. `B` is what a receive brings its bytes in.
pub struct Completion<B> {
    /// The word that the operation was given.
    pub tag: u64,
    /// What the system call of the same name would have returned; an error as its negative number.
    pub result: i32,
    /// Whether the operation goes on, and has another result in time.
    pub more: bool,
    /// The bytes that a receive brought.
    pub buffer: Option<B>,
    /// The memory of a send or read, to be used again.
    pub memory: Option<Vec<u8>>,
    /// The connection that an accept brought.
    pub socket: Option<Socket>,
    /// Where the kernel says that it no longer holds the bytes of [`crate::completion::uring::Ring::send_held`]: whether it
    /// copied them after all. There is no other result then.
    pub released: Option<bool>,
}

impl<B> Completion<B> {
    /// Of an operation that has come to `result`, and brings nothing else.
    pub(crate) fn plain(tag: u64, result: i32) -> Completion<B> {
        Completion { tag, result, more: false, buffer: None, memory: None, socket: None, released: None }
    }
}

/// The bits of a result of waiting for room to write with which a send is worth a try: room, or an error.
pub const ROOM: i32 = (libc::POLLOUT | libc::POLLERR | libc::POLLHUP) as i32;
