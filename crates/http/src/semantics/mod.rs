//! Semantics that all versions share: conditions, ranges, content coding, and bodies of several parts.

pub mod condition;
pub mod multipart;
pub mod negotiate;
pub mod range;
