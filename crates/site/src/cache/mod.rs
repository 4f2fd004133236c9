//! Bounded maps of content. They know nothing about sites.

pub(crate) mod clock;
pub(crate) mod encoded;
pub(crate) mod unsent;
