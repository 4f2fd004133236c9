//! One I/O model, one small file.

pub(crate) mod epoll;
pub(crate) mod fork;
pub(crate) mod naive;
pub(crate) mod uring;
