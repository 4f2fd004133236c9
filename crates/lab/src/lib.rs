//! Published comparisons of servers, repeated on this machine.
//!
//! An [`experiment`] is a file with claims, cells, and a rule for each verdict. A [`plan`] is written before the first
//! [`trial`]; the [`runner`] carries it out and keeps a [`record`] of each trial. [`verdict`] applies the rules and the
//! [`statistics`] to these records, and [`report`] writes the report. [`studies`] use the same trials for other
//! questions. [`machine::doctor`] lists faults of the machine.

#![forbid(unsafe_code)]

pub mod experiment;
pub mod machine;
pub mod measure;
pub mod plan;
pub mod record;
pub mod report;
pub mod runner;
pub mod statistics;
pub mod studies;
pub mod trial;
pub mod verdict;
