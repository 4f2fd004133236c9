//! The settings, a row each, a file for each heading of the help.

mod addresses;
mod bounds;
mod content;
mod members;
mod model;
mod process;
mod site;
mod tcp;
mod time;

use super::table::Row;
pub(super) use content::listing;

/// The groups, in the order of the help.
static GROUPS: &[&[Row]] = &[
    site::ROWS,
    content::ROWS,
    model::ROWS,
    tcp::ROWS,
    time::ROWS,
    bounds::ROWS,
    addresses::ROWS,
    members::ROWS,
    process::ROWS,
];

/// Every setting, in the order of the help.
pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
    GROUPS.iter().copied().flatten()
}
