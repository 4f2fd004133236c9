//! The report of a run: its summary, validity and output.

pub mod assertion;
pub mod compare;
pub mod environment;
pub mod metrics;
pub mod output;
pub(crate) mod summarize;
pub mod summary;
mod validity;
pub mod warmup;
