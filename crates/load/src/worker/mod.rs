//! A worker: one thread, and a share of the plan's connections. Its [`backend::Backend`] does their I/O: one epoll
//! instance, or one ring.

mod backend;
mod completion;
mod event_loop;
mod exchange;
mod life;
mod place;
mod readiness;
mod share;
mod state;

pub(crate) use self::completion::Completion;
pub(crate) use self::event_loop::run;
pub(crate) use self::readiness::Readiness;
pub(crate) use self::share::{Share, Targets};
pub(crate) use self::state::{WORDS, Word};
