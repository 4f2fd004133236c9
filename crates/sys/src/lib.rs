//! Linux as safe functions. This is the only crate with unsafe code; each block names the invariant that
//! it stands on.

pub mod eventfd;
pub mod file;
pub mod lifecycle;
