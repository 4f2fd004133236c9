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

use tenfold_sys::socket::Listener;

use crate::handoff::Handoff;

/// Where a worker that serves many connections gets them.
pub(crate) enum Intake<'a> {
    /// It accepts them itself.
    Listeners(&'a [Listener]),
    /// Somebody accepts them, and hands them over.
    Handed(&'a Handoff),
}
