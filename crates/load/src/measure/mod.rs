//! Measurements: histograms, the record that a worker keeps, and statistics over samples.

pub mod histogram;
pub mod record;
pub(crate) mod recorder;
pub mod statistics;
