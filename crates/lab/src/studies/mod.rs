//! Questions beyond published claims, answered by the same trials, records and statistics.

mod call_sites;
pub mod explain;
pub mod museum;
pub mod tune;
pub mod wall;
pub mod why;
pub mod words;
