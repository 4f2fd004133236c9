//! The tables of the configuration file: the site, its hosts, and the policies of paths.
//!
//! Each key of a table is defined once, as a [`reader::TableKey`]. Reading, error messages and the schema for editors
//! use that definition. [`top`] has the tables at the top of the file, [`site`] the keys of a site and of a host,
//! [`policy`] the keys of paths, and [`access`] the keys of access control.

mod access;
mod policy;
pub(crate) mod reader;
pub(crate) mod site;
pub(crate) mod top;

#[cfg(test)]
mod tests;
