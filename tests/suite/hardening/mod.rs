//! What a hostile or unlucky peer may do, by the numbers of `docs/hardening.md`. Cases that belong to a theme
//! of their own stand there, with their number in their name.

pub(crate) mod book;
pub(crate) mod files;
pub(crate) mod framing;
pub(crate) mod limits;
pub(crate) mod output;
pub(crate) mod sandbox;
pub(crate) mod sharing;
