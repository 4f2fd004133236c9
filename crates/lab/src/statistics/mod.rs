//! Statistics of paired trials: pure functions, tested on data whose truth is known. Student's distribution and Holm's
//! correction are those of the load generator.

pub mod decision;
pub mod effect;
pub mod simulation;
pub mod stages;
