//! The format of the manual's archive: a line with the path and the length of each file, then its text. The build
//! script packs it and the server reads it.

#![allow(dead_code, reason = "the build script uses one half of this file, and the server the other")]

use std::collections::BTreeMap;

/// Packs files, by path, into one text.
pub(crate) fn pack(files: &BTreeMap<String, String>) -> String {
    files.iter().map(|(path, text)| format!("{path} {}\n{text}", text.len())).collect()
}

/// Returns the path and the text of each file of an archive, in its order; `None` in place of a malformed rest.
pub(crate) fn unpack(archive: &str) -> impl Iterator<Item = Option<(&str, &str)>> {
    let mut rest = Some(archive).filter(|rest| !rest.is_empty());
    std::iter::from_fn(move || {
        let file = first(rest.take()?);
        rest = file.map(|(_, _, after)| after).filter(|after| !after.is_empty());
        Some(file.map(|(path, text, _)| (path, text)))
    })
}

/// Path and text of the first file, and everything after it.
fn first(archive: &str) -> Option<(&str, &str, &str)> {
    let (line, rest) = archive.split_once('\n')?;
    let (path, length) = line.rsplit_once(' ')?;
    let (text, after) = rest.split_at_checked(length.parse().ok()?)?;
    Some((path, text, after))
}
