//! Attacks and accidents, by the numbers of `docs/internals/hardening.md`. Cases of another theme are in its file, with their
//! number in their name.

pub(crate) mod book;
pub(crate) mod files;
pub(crate) mod framing;
pub(crate) mod limits;
pub(crate) mod output;
pub(crate) mod sandbox;
pub(crate) mod sharing;
