//! Flags, variables and the file. A setting is one row of [`rows`]; [`tables`] has the keys that exist only in a file.

pub(crate) mod counterparts;
pub(crate) mod file;
pub(crate) mod given;
pub(crate) mod problem;
pub(crate) mod row;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod tables;
pub(crate) mod units;

#[cfg(test)]
mod tests;
