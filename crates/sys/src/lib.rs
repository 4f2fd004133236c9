//! Linux as safe functions. This is the only crate with unsafe code; each block names the invariant that
//! it stands on.

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
pub mod mapping;
pub mod memory;
pub mod pipe;
pub mod poll;
pub mod process;
pub mod readiness;
pub mod select;
pub mod shared;
pub mod signal;
pub mod socket;
pub mod uring;
pub mod user;
pub mod zerocopy;
