//! Bounded maps that know nothing about sites.

pub(crate) mod clock;
pub(crate) mod encoded;
