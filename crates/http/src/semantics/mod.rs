//! Semantics that all versions share: conditions, ranges, content coding, bodies of several parts, and the
//! clients of proxies.

pub mod condition;
pub mod forwarded;
pub mod multipart;
pub mod negotiate;
pub mod range;
