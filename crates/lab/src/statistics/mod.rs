//! Statistics of paired trials: pure functions, tested on data whose truth is known.

pub mod decision;
pub mod effect;
pub mod holm;
pub mod sample;
pub mod simulation;
pub mod stages;
pub mod student;
