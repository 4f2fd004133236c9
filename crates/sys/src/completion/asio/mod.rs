//! Asio (think-async.com), standalone or Boost's: readiness and completion through an `io_context`.
//!
//! `native/asio.cpp` has the few functions that are called. A [`Context`] is run by one thread; waits may be
//! begun by others. What completes is put aside and handed out when the run has returned: no code of ours
//! runs below a frame of C++, and no exception leaves one.

#[cfg(not(asio))]
#[path = "absent.rs"]
mod context;
#[cfg(not(asio))]
use context as proactor;
#[cfg(asio)]
mod buffer;
#[cfg(asio)]
mod context;
#[cfg(asio)]
mod declared;
#[cfg(asio)]
mod handles;
#[cfg(asio)]
mod proactor;
#[cfg(asio)]
mod stream;
#[cfg(all(test, asio))]
mod tests;

#[cfg(asio)]
pub use buffer::{Buffer, Completion};
#[cfg(not(asio))]
pub use context::{Buffer, Completion};
pub use context::{Context, Watched, version};
pub use proactor::Proactor;
