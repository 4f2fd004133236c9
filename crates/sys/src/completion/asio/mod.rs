//! Asio (think-async.com), standalone or Boost's: readiness and completion through an `io_context`.
//!
//! `native/asio.cpp` has the few functions that are called. One thread runs an [`IoContext`]; others may begin waits.
//! Results are stored and reported after the run has returned: no code of ours runs below a C++ frame, and no exception
//! leaves one.

#[cfg(not(asio))]
mod absent;
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

#[cfg(not(asio))]
pub use absent::{
    AbsentBuffer as ReceiveBuffer, AbsentCompletions as CompletionContext, AbsentContext as IoContext,
    AbsentDescriptor as StreamDescriptor, version,
};
#[cfg(asio)]
pub use buffer::ReceiveBuffer;
#[cfg(asio)]
pub use context::{IoContext, StreamDescriptor, version};
#[cfg(asio)]
pub use proactor::CompletionContext;
