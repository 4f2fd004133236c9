//! The settings: flags, variables and a file, each setting with one name.
//!
//! [`given`] collects the sources and builds [`values::Settings`]. A setting is one row of [`rows`]. [`tables`] has the
//! keys that only a file can have, and [`mod@file`] reads it.

pub(crate) mod counterparts;
pub(crate) mod file;
pub(crate) mod given;
pub(crate) mod log;
pub(crate) mod log_format;
pub(crate) mod members;
pub(crate) mod names;
pub(crate) mod problem;
pub(crate) mod row;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod tables;
pub(crate) mod units;
pub(crate) mod values;

#[cfg(test)]
mod tests;
