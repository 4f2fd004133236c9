//! Questions beyond published claims, answered by the same trials, records and statistics.

pub mod museum;
pub mod wall;
pub mod why;
pub mod words;
