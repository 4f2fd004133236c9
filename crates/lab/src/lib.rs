//! Published comparisons of servers, repeated on this machine.
//!
//! An [`experiment`] is a file: claims, cells, and the rule of each verdict. A [`plan`] is written before the first
//! [`trial`]; the [`runner`] carries it out and keeps a [`record`] of each trial. [`verdict`] applies the rules by
//! [`statistics`] to what was recorded, and [`report`] shows it. [`studies`] ask
//! other questions by the same trials. [`machine::doctor`] lists faults of the machine.

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
