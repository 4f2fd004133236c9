//! Errors of system calls: their numbers, and reactions to them.

pub mod errno;
pub mod failure;
