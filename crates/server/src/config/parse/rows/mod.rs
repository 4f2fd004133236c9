//! The table of settings, a file for each group.

mod content;
mod engine;
mod limits;
mod members;
mod process;
mod proxy;
mod read;
mod tls;

use super::row::SettingRow;

/// The groups, in the order of the help.
static GROUPS: &[&[SettingRow]] = &[
    content::SITE,
    content::CONTENT,
    engine::MODEL,
    engine::TCP,
    tls::ROWS,
    limits::TIME,
    limits::BOUNDS,
    proxy::ROWS,
    members::ROWS,
    process::ROWS,
    engine::EXPERIMENTS,
];

/// Every setting, in the order of the help.
pub(crate) fn rows() -> impl Iterator<Item = &'static SettingRow> {
    GROUPS.iter().copied().flatten()
}

/// The row of this name.
pub(crate) fn row(name: &str) -> Option<&'static SettingRow> {
    rows().find(|row| row.name == name)
}
