//! The three drivers. Each implements [`tenfold_http::Io`], and runs any protocol over it.

pub(crate) mod blocking;
pub(crate) mod completion;
mod connection;
pub(crate) mod farewell;
pub(crate) mod input;
mod linger;
mod prefetch;
pub(crate) mod readiness;
