//! Bounded maps of content, independent of sites.

pub(crate) mod clock;
pub(crate) mod encoded;
pub(crate) mod unsent;
