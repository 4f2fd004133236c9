//! One I/O model, one small file.

pub(crate) mod busy;
pub(crate) mod epoll;
pub(crate) mod fork;
pub(crate) mod naive;
pub(crate) mod poll;
pub(crate) mod pool;
pub(crate) mod select;
pub(crate) mod thread;
pub(crate) mod uring;
