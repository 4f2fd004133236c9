//! Asio (think-async.com), standalone or Boost's: readiness and completion through an `io_context`.
//!
//! `native/asio.cpp` has the few functions that are called. A [`Context`] is run by one thread; waits may be
//! begun by others. What completes is put aside and handed out when the run has returned: no code of ours
//! runs below a frame of C++, and no exception leaves one.

#[cfg(not(asio))]
#[path = "absent.rs"]
mod context;
#[cfg(asio)]
mod context;
#[cfg(asio)]
mod declared;

pub use context::{Context, Watched, version};
