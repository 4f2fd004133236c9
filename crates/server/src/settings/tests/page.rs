//! The page of settings in the book.

use super::*;

#[test]
fn every_setting_is_on_the_page_of_settings() {
    let page = include_str!("../../../../../docs/reference/configuration.md");
    let named = |row: &&crate::settings::row::SettingRow| {
        let cell = format!("`{}`", row.name);
        page.lines().any(|line| line.split('|').nth(1).is_some_and(|names| names.contains(&cell)))
    };
    let missing: Vec<_> = rows().filter(|row| !named(row)).map(|row| row.name).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
