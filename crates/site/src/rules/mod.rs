//! The configuration of a site, and its decision about a request.
//!
//! `settings` has all settings. `precheck` applies the rules in order: it parses the path, applies rewrites
//! and redirects, finds the policy of the path, and demands passwords.

pub(crate) mod access;
pub(crate) mod cache_control;
pub(crate) mod codings;
pub(crate) mod cors;
pub(crate) mod error_pages;
pub(crate) mod fields;
pub(crate) mod media_types;
pub(crate) mod password;
pub(crate) mod path;
pub(crate) mod pattern;
pub(crate) mod policy;
pub(crate) mod precheck;
pub(crate) mod realm;
pub(crate) mod redirect;
pub(crate) mod routes;
pub(crate) mod settings;
pub(crate) mod try_files;
