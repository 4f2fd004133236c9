//! The tables of the configuration file: what holds for the site, for each host and at each path.
//!
//! A table is read by its keys, and each key is defined once: [`Key`]. Reading, what is said of a wrong value
//! and the schema for editors come from that definition. [`site`] has the keys of a site and of a host,
//! [`policy`] those that hold for paths, and [`access`] those of who may read.

mod access;
pub(crate) mod policy;
mod reader;
pub(crate) mod site;

use super::Settings;
pub(super) use reader::{Given, Key, Keys, Reader, Wrong};
pub(crate) use reader::{Keyed, Shape};
pub(crate) use site::SiteTable;

/// The tables that stand at the top of the file.
pub(crate) static TOP: Keys<Settings> = Keys {
    of: "the file",
    own: &[
        Key {
            name: "site",
            shape: Shape::Table(&site::SITE),
            about: "what holds for every host, and for requests to none of them",
            set: |settings, given, reader| {
                site::SITE.read(given.table()?, &mut settings.site, reader);
                Ok(())
            },
        },
        Key {
            name: "host",
            shape: Shape::Tables(&site::HOST),
            about: "a virtual host: a site for requests that name it",
            set: site::read_hosts,
        },
    ],
    policy: None,
};

#[cfg(test)]
mod tests;
