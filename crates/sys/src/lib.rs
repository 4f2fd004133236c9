//! Linux as safe functions. This is the only crate with unsafe code; each block names the invariant that
//! it stands on.

pub mod eventfd;
pub mod file;
pub mod lifecycle;
pub mod clock;
pub mod epoll;
pub mod memory;
pub mod socket;
pub mod limits;
pub mod process;
pub mod shared;
pub mod signal;
pub mod user;
pub mod uring;
