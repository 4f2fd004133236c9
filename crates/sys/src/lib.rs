//! Linux as safe functions. This is the only crate with unsafe code; each block names the invariant that
//! it stands on, and no safe function, however it is called, can cause undefined behaviour.
//!
//! Functions that register a descriptor, or begin an operation on it, take its number (`RawFd`): the socket's owner moves
//! between threads while it is registered, and the kernel looks the number up after the call has returned, so a
//! `BorrowedFd` would promise nothing. A number that is closed, or another file's by now, is an error of the call or
//! reaches another file of this process; no memory depends on which.

pub mod asio;
pub mod clock;
pub mod completion;
pub mod connect;
pub mod directory;
pub mod epoll;
pub mod errno;
pub mod eventfd;
pub mod failure;
pub mod file;
pub mod inotify;
pub mod libevent;
pub mod lifecycle;
pub mod limits;
pub mod links;
pub mod location;
pub mod mapping;
pub mod memory;
pub mod pipe;
pub mod place;
pub mod poll;
pub mod process;
pub mod readiness;
pub mod seccomp;
pub mod select;
pub mod shared;
pub mod signal;
pub mod socket;
pub mod uring;
pub mod user;
pub mod zerocopy;
