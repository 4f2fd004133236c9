//! Counters of workers, the report made of them, and the place of the control socket that sends it.

pub(crate) mod admin;
pub(crate) mod counters;
pub(crate) mod latency;
pub(crate) mod metrics;
pub(crate) mod numbers;
pub(crate) mod place;
pub(crate) mod report;
pub(crate) mod turns;
