//! Semantics that all versions share: conditions, ranges, content coding, multipart bodies, and forwarded
//! clients.

pub mod condition;
pub mod forwarded;
pub mod multipart;
pub mod negotiate;
pub mod range;
