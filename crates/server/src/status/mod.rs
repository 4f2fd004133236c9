//! The counters of workers, the report with their sums, and the control socket that sends the report.

pub(crate) mod admin;
pub(crate) mod counters;
pub(crate) mod latency;
pub(crate) mod metrics;
pub(crate) mod place;
pub(crate) mod report;
pub(crate) mod turns;
