//! `io_uring` (`man 7 io_uring`) as a ring that owns the memory of its operations.
//!
//! The caller of an operation gives its bytes and files away, and gets them back with the completion. So memory that
//! the kernel may still access is never freed or reused. A ring that is dropped with operations in flight keeps their
//! memory for ever.
//!
//! Sockets are named by their numbers (`RawFd`), because their owners move while operations are in flight. A closed or
//! reused number costs no memory safety: the kernel answers EBADF, or acts on another descriptor of this process, as
//! any call would. Callers keep a descriptor open until the completion of its operations.
//!
//! The files: the ring (`ring`), its operations (`operations`), connections that the ring itself makes and keeps in
//! slots instead of descriptors (`slots`), the submission of operations (`submission`) and their results
//! (`completion`), which name an operation by its user word (`word`); the memory that the kernel works on meanwhile
//! (`held`), and the buffers that it picks for receives (`buffers`).

mod address;
mod buffers;
mod completion;
#[cfg(any(test, feature = "test-hooks"))]
#[path = "tests/faults.rs"]
pub mod faults;
mod held;
mod operations;
mod ring;
mod slots;
mod submission;
#[cfg(test)]
mod tests;
mod word;

pub use self::address::Address;
pub use self::buffers::RingBuffer;
pub use self::completion::RingCompletion;
pub use self::ring::{Ring, Sizes};
pub use self::slots::SocketOption;
pub use self::word::TAG_BOUND;
pub use crate::completion::{Bytes, Readable};
