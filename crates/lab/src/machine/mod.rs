//! The machine: what there is of it, what the kernel counts, and what disturbs a trial.

pub mod counters;
pub mod environment;
pub mod noise;
pub mod processes;
