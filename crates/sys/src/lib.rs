//! Linux as safe functions. This is the only crate with unsafe code; each block names the invariant that
//! it stands on, and no safe function, however it is called, can cause undefined behaviour.
//!
//! Functions that register a descriptor, or begin an operation on it, take its number (`RawFd`): the socket's owner moves
//! between threads while it is registered, and the kernel looks the number up after the call has returned, so a
//! `BorrowedFd` would promise nothing. A number that is closed, or another file's by now, is an error of the call or
//! reaches another file of this process; no memory depends on which.

pub mod clock;
pub mod completion;
mod errors;
mod files;
pub mod memory;
mod net;
pub mod process;
pub mod readiness;

pub use completion::{asio, uring};
pub use errors::{errno, failure};
pub use files::{directory, file, folder, inotify, links, location, place};
pub use memory::{mapping, shared};
pub use net::{connect, messages, pipe, socket, zerocopy};
pub use process::{landlock, lifecycle, limits, seccomp, signal, task, terminal, user};
pub use readiness::{epoll, eventfd, libevent, poll, select, wait};
