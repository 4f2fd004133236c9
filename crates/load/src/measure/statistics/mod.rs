//! Statistics of runs. The laboratory uses them too.

pub mod estimate;
pub mod fairness;
pub mod holm;
pub mod sample;
pub mod student;
