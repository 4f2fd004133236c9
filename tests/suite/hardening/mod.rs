//! Attacks and accidents, by the numbers of `docs/internals/hardening.md`. Cases that belong to another theme are in
//! its file, and have the number in their name.

pub(crate) mod book;
pub(crate) mod files;
pub(crate) mod framing;
pub(crate) mod http2;
pub(crate) mod limits;
pub(crate) mod output;
pub(crate) mod sandbox;
