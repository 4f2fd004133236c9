//! Published comparisons of servers, repeated on this machine.

#![forbid(unsafe_code)]

pub mod experiment;
pub mod measure;
pub mod statistics;
