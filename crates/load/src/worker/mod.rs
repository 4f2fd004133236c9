//! A worker: one thread with a share of the plan's connections. Its [`backend::Backend`] does their I/O by epoll or
//! io_uring.

mod backend;
mod completion;
mod event_loop;
mod life;
mod readiness;
mod share;
mod slot;
mod state;

pub(crate) use self::completion::UringBackend;
pub(crate) use self::event_loop::run;
pub(crate) use self::readiness::EpollBackend;
pub(crate) use self::share::{Share, Targets, slice_length};
pub(crate) use self::state::{LIVE_COUNTERS, LiveCounter};
