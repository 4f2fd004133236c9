//! The macro of rows, and the readers of values. Each reader returns the value or names the legal ones.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::config::parse::row::Text;
use crate::config::parse::units;

/// The settings under a heading of the help, with one value or many. Each setting has three parts: its name, the placeholder of its value, its
/// default and its properties; its field, and the reader of its text; its meaning.
macro_rules! rows {
    ($heading:tt: $(
        $kind:ident $name:literal $value:literal = $initial:expr $(, $property:ident)*;
        $($field:ident).+ = $read:expr;
        $about:literal;
    )*) => {
        &[$(
            $crate::config::parse::row::SettingRow {
                name: $name,
                value: $value,
                heading: $heading,
                initial: $initial,
                about: $about,
                fixed: false,
                null: true,
                set: $crate::config::parse::row::Set::$kind(|settings, given| {
                    settings.$($field).+ = $read(given)?;
                    Ok(())
                }),
            }$(.$property())*
        ),*]
    };
}
pub(super) use rows;

pub(super) fn number<T>(bounds: RangeInclusive<T>) -> impl Fn(Text<'_>) -> Result<T, String>
where
    T: TryFrom<u64> + Into<u64> + Copy + PartialOrd + std::fmt::Display,
{
    move |given| units::number(given.text, bounds.clone())
}

pub(super) fn count(bounds: RangeInclusive<u32>) -> impl Fn(Text<'_>) -> Result<usize, String> {
    move |given| number(bounds.clone())(given).map(|count| count as usize)
}

pub(super) fn size(bounds: RangeInclusive<u64>) -> impl Fn(Text<'_>) -> Result<u64, String> {
    move |given| units::size(given.text, bounds.clone())
}

/// Reads a size in memory.
pub(super) fn bytes(bounds: RangeInclusive<u64>) -> impl Fn(Text<'_>) -> Result<usize, String> {
    move |given| size(bounds.clone())(given).map(|size| size as usize)
}

pub(super) fn time(bounds: RangeInclusive<Duration>) -> impl Fn(Text<'_>) -> Result<Duration, String> {
    move |given| units::duration(given.text, bounds.clone())
}

pub(super) fn switch(given: Text<'_>) -> Result<bool, String> {
    units::switch(given.text)
}

pub(super) fn word<T: Copy>(what: &str, words: &[(&str, T)]) -> impl Fn(Text<'_>) -> Result<T, String> {
    move |given| units::word(given.text, what, words)
}

pub(super) fn name(given: Text<'_>) -> Result<Option<String>, String> {
    Ok(Some(given.text.to_owned()))
}

pub(super) fn path(given: Text<'_>) -> Result<PathBuf, String> {
    given.path()
}

pub(super) fn parsed<T: FromStr<Err = String>>(given: Text<'_>) -> Result<T, String> {
    given.text.parse()
}

/// Reads each of several values; only `off` means no values.
pub(super) fn each_or_off<T: FromStr<Err = String>>(given: &[Text<'_>]) -> Result<Vec<T>, String> {
    match given {
        [Text { text: "off", .. }] => Ok(Vec::new()),
        several => several.iter().map(|one| parsed(*one)).collect(),
    }
}

/// Reads a setting without a default in the table.
pub(super) fn some<T>(
    read: impl Fn(Text<'_>) -> Result<T, String>,
) -> impl Fn(Text<'_>) -> Result<Option<T>, String> {
    move |given| read(given).map(Some)
}

/// Names the unit of a rate in an error.
pub(super) fn per_second<T>(
    read: impl Fn(Text<'_>) -> Result<T, String>,
) -> impl Fn(Text<'_>) -> Result<T, String> {
    move |given| read(given).map_err(|why| format!("{why} per second"))
}

/// Reads `off` as `None`, and any other value with `read`.
pub(super) fn or_off<T>(
    read: impl Fn(Text<'_>) -> Result<T, String>,
) -> impl Fn(Text<'_>) -> Result<Option<T>, String> {
    move |given| match given.text {
        "off" => Ok(None),
        _ => read(given).map(Some).map_err(|why| format!("{why}, or off")),
    }
}
