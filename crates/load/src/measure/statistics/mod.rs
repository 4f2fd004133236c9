//! Statistics of runs: pure functions, which the laboratory shares.

pub mod estimate;
pub mod fairness;
pub mod holm;
pub mod sample;
pub mod student;
