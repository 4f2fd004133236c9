//! The table of settings, by the groups of the help.

mod content;
mod read;
mod server;
mod tls;

use super::row::SettingRow;

/// The groups, in the order of the help.
static GROUPS: &[&[SettingRow]] = &[
    content::SITE,
    content::CONTENT,
    server::MODEL,
    server::TCP,
    tls::ROWS,
    server::TIME,
    server::HTTP,
    server::BOUNDS,
    server::PROXY,
    server::MEMBERS,
    server::PROCESS,
    server::EXPERIMENTS,
];

/// Every setting, in the order of the help.
pub(crate) fn rows() -> impl Iterator<Item = &'static SettingRow> {
    GROUPS.iter().copied().flatten()
}

/// The row of this name.
pub(crate) fn row(name: &str) -> Option<&'static SettingRow> {
    rows().find(|row| row.name == name)
}
