//! Measurement: histograms, the record of a worker, and statistics.

mod foreign;
pub mod histogram;
pub mod record;
pub(crate) mod recorder;
pub mod statistics;
