//! One I/O model, one small file.

pub(crate) mod asio;
pub(crate) mod asio_proactor;
pub(crate) mod busy;
pub(crate) mod epoll;
pub(crate) mod fork;
pub(crate) mod libevent;
pub(crate) mod naive;
pub(crate) mod poll;
pub(crate) mod pool;
pub(crate) mod select;
pub(crate) mod thread;
mod threads;
pub(crate) mod uring;
