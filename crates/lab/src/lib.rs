//! Published comparisons of servers, repeated on this machine.

#![forbid(unsafe_code)]

pub mod experiment;
pub mod machine;
pub mod measure;
pub mod plan;
pub mod record;
pub mod statistics;
