//! Readers of values as people write them. Every error names the legal values.

use std::ops::RangeInclusive;
use std::time::Duration;

use tenfold_site::Listing;

/// A whole number within bounds.
pub(crate) fn number<T>(text: &str, bounds: RangeInclusive<T>) -> Result<T, String>
where
    T: TryFrom<u64> + Into<u64> + Copy + PartialOrd + std::fmt::Display,
{
    let wrong = || format!("{text:?} is not a number from {} to {}", bounds.start(), bounds.end());
    let number = text.parse::<u64>().map_err(|_| wrong())?;
    let number = T::try_from(number).map_err(|_| wrong())?;
    if bounds.contains(&number) { Ok(number) } else { Err(wrong()) }
}

const DURATIONS: &[(&str, u64)] = &[("ms", 1), ("s", 1000), ("m", 60 * 1000), ("h", 60 * 60 * 1000)];

/// The unit of days: readers accept it, but output uses hours.
const DAY: (&str, u64) = ("d", 24 * 60 * 60 * 1000);

/// Reads a length of time with its unit, within bounds: `250ms`, `10s`, `2m`, `1h`, `30d`.
pub(crate) fn duration(text: &str, bounds: RangeInclusive<Duration>) -> Result<Duration, String> {
    let wrong = || {
        let (from, to) = (shown_duration(*bounds.start()), shown_duration(*bounds.end()));
        format!("{text:?} is not a duration from {from} to {to}, such as 250ms, 10s, 2m, 1h or 30d")
    };
    let (count, unit) = split(text).ok_or_else(wrong)?;
    let (_, scale) = DURATIONS.iter().chain([&DAY]).find(|(name, _)| *name == unit).ok_or_else(wrong)?;
    let duration = count.checked_mul(*scale).map(Duration::from_millis).ok_or_else(wrong)?;
    if bounds.contains(&duration) { Ok(duration) } else { Err(wrong()) }
}

/// A length of time in the largest unit without a fraction.
pub(crate) fn shown_duration(duration: Duration) -> String {
    let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let fits = |scale: u64| milliseconds != 0 && milliseconds.is_multiple_of(scale);
    let (unit, scale) = DURATIONS.iter().rev().find(|(_, scale)| fits(*scale)).unwrap_or(&DURATIONS[1]);
    format!("{}{unit}", milliseconds / scale)
}

/// Reads bytes within bounds: a bare number, or with `KiB`, `MiB` or `GiB`, or their first letter.
pub(crate) fn size(text: &str, bounds: RangeInclusive<u64>) -> Result<u64, String> {
    let wrong = || {
        let (from, to) = (shown_size(*bounds.start()), shown_size(*bounds.end()));
        format!("{text:?} is not a size from {from} to {to}, such as 4096, 16k, 64 KiB or 1 MiB")
    };
    let (count, unit) = split(text).ok_or_else(wrong)?;
    let power = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 1,
        "m" | "mib" => 2,
        "g" | "gib" => 3,
        _ => return Err(wrong()),
    };
    let size = count.checked_mul(1 << (10 * power)).ok_or_else(wrong)?;
    if bounds.contains(&size) { Ok(size) } else { Err(wrong()) }
}

/// Bytes in the largest unit without a fraction.
pub(crate) fn shown_size(size: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, scale)| size != 0 && size.is_multiple_of(*scale)) {
        Some((unit, scale)) => format!("{} {unit}", size / scale),
        None => format!("{size} bytes"),
    }
}

/// Reads `on` or `off`.
pub(crate) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" | "true" => Ok(true),
        "off" | "false" => Ok(false),
        _ => Err(format!("{text:?} is neither on nor off")),
    }
}

/// Reads a word of `words`.
pub(crate) fn word<T: Copy>(text: &str, what: &str, words: &[(&str, T)]) -> Result<T, String> {
    words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
        let all: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        match all.as_slice() {
            [only] => format!("there is no {what} {text:?}; there is {only}"),
            _ => format!("there is no {what} {text:?}; there are {}", all.join(", ")),
        }
    })
}

/// Reads the name of an index file.
pub(super) fn file_name(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(['/', '\0']) {
        true => Err(format!("{text:?} is not the name of a file, such as index.html")),
        false => Ok(text.to_owned()),
    }
}

/// Reads the form of folders without an index.
pub(super) fn listing(text: &str) -> Result<Listing, String> {
    let words = [("off", Listing::Off), ("html", Listing::Html), ("json", Listing::Json)];
    word(text, "listing", &words)
}

/// The number of slips of a keyboard between two words.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    strsim::damerau_levenshtein(a, b)
}

/// The word among `words` that `text` probably misspells.
pub(crate) fn meant<'a>(text: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let text = text.to_ascii_lowercase().replace('_', "-");
    let near = words.map(|word| (distance(&text, word), word));
    let (distance, word) = near.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + word.len() / 4).then_some(word)
}

/// A number and the text after it, without blanks.
fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (count, unit) = text.split_at(digits);
    Some((count.parse().ok()?, unit.trim_start_matches(' ')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    const TICK: Duration = Duration::from_millis(1);

    #[test]
    fn durations_have_units() {
        let read = |text| duration(text, TICK..=DAY);
        assert_eq!(read("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(read("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(read("2 m"), Ok(Duration::from_secs(120)));
        assert_eq!(read("24h"), Ok(DAY));
        assert_eq!(read("1d"), Ok(DAY));
        for wrong in ["", "10", "s", "-1s", "1.5s", "0s", "25h", "10 seconds", "99999999999999999999s"] {
            let message = read(wrong).expect_err(wrong);
            assert_eq!(
                message,
                format!("{wrong:?} is not a duration from 1ms to 24h, such as 250ms, 10s, 2m, 1h or 30d")
            );
        }
    }

    #[test]
    fn sizes_are_counted_by_1024() {
        let read = |text| size(text, 64..=1 << 30);
        assert_eq!(read("64"), Ok(64));
        assert_eq!(read("16k"), Ok(16 * 1024));
        assert_eq!(read("16 KiB"), Ok(16 * 1024));
        assert_eq!(read("1 MiB"), Ok(1024 * 1024));
        assert_eq!(read("1GiB"), Ok(1 << 30));
        for wrong in ["63", "2 GiB", "16 kilos", "64 KB", "", "18446744073709551615 GiB"] {
            let message = read(wrong).expect_err(wrong);
            assert_eq!(
                message,
                format!("{wrong:?} is not a size from 64 bytes to 1 GiB, such as 4096, 16k, 64 KiB or 1 MiB")
            );
        }
    }

    #[test]
    fn numbers_keep_to_their_bounds_exactly() {
        assert_eq!(number("1", 1..=256u32), Ok(1));
        assert_eq!(number("256", 1..=256u32), Ok(256));
        for wrong in ["0", "257", "-1", "1e2", " 1", "4294967296"] {
            let message = number(wrong, 1..=256u32).expect_err(wrong);
            assert_eq!(message, format!("{wrong:?} is not a number from 1 to 256"));
        }
    }

    #[test]
    fn units_are_shown_as_they_are_written() {
        assert_eq!(shown_duration(Duration::from_secs(75)), "75s");
        assert_eq!(shown_duration(Duration::from_secs(120)), "2m");
        assert_eq!(shown_duration(Duration::from_millis(1500)), "1500ms");
        assert_eq!(shown_size(16 * 1024), "16 KiB");
        assert_eq!(shown_size(1000), "1000 bytes");
    }

    #[test]
    fn a_slip_of_the_finger_is_understood_and_another_word_is_not() {
        let names = ["engine", "backlog", "idle-timeout"];
        assert_eq!(meant("enigne", names.into_iter()), Some("engine"));
        assert_eq!(meant("idle_timeout", names.into_iter()), Some("idle-timeout"));
        assert_eq!(meant("colour", names.into_iter()), None);
    }
}
