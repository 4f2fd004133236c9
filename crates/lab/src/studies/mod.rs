//! Questions beyond published claims, answered by the same trials, records and statistics.

pub mod wall;
pub mod why;
pub mod words;
