//! The machine: its environment, its faults, the kernel's counters, and disturbances of a trial.

pub mod counters;
pub mod doctor;
pub mod environment;
pub mod hosts;
pub mod noise;
pub mod processes;
