//! The three drivers. Each implements [`tenfold_http::Io`] in its way, and runs whatever protocol over it.

pub(crate) mod blocking;
pub(crate) mod completion;
pub(crate) mod input;
pub(crate) mod readiness;
