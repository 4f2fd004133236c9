//! Linux as safe functions. This is the only crate with unsafe code. Each block names its invariant, and no safe
//! function can cause undefined behaviour.
//!
//! Functions that register a descriptor, or begin an operation on it, take its number (`RawFd`). The socket's owner
//! moves between threads while it is registered, and the kernel looks the number up after the call has returned. So a
//! `BorrowedFd` would promise nothing. A closed number is an error, a reused one reaches another file of this process;
//! memory safety depends on neither.

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
pub use files::{directory, file, folder, inotify, links, location, resolved_path, stderr};
pub use memory::{mapping, shared};
pub use net::{connect, kernel_tls, messages, pipe, socket, zerocopy};
pub use process::{
    exec, landlock, lifecycle, limits, sacrifice, seccomp, signal, task, terminal, usage, user,
};
pub use readiness::{epoll, eventfd, libevent, poll, select, wait};
