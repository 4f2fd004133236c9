//! Errors of system calls: their numbers, and what follows from them.

pub mod errno;
pub mod failure;
