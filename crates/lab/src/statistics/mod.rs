//! Statistics of paired trials, tested on synthetic data. Student's distribution and Holm's correction are in the load
//! generator.

pub mod decision;
pub mod effect;
#[cfg(test)]
pub(crate) mod simulation;
pub mod stages;
