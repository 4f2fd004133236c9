//! Measurement: histograms, the record of a worker, and statistics.

pub mod histogram;
pub mod record;
pub(crate) mod recorder;
pub mod statistics;
