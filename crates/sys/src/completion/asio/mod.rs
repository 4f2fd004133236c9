//! Asio (think-async.com), standalone or Boost's: readiness and completion through an `io_context`.
//!
//! `native/asio.cpp` has the few functions that are called. One thread runs a [`Context`]; others may begin waits.
//! Results are stored and reported after the run has returned: no code of ours runs below a C++ frame, and no exception
//! leaves one.

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
