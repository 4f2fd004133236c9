//! The tables of the configuration file: what holds for the site, for each host and at each path.
//!
//! A table is read by its keys, and each key is defined once: [`reader::TableKey`]. Reading, the complaint about a wrong
//! value and the schema for editors come from that definition. [`top`] has the tables at the top of the file, [`site`]
//! the keys of a site and of a host, [`policy`] those that hold for paths, and [`access`] those of who may read.

mod access;
mod policy;
pub(crate) mod reader;
pub(crate) mod site;
pub(crate) mod top;

#[cfg(test)]
mod tests;
