//! Times in ISO 8601 (RFC 3339), made from the HTTP date, which the clock formats in any case.

use tenfold_http::clock::{DATE_BYTES, format_date};

const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";

/// `2026-11-21T08:00:00Z` from `Sat, 21 Nov 2026 08:00:00 GMT`.
pub(crate) fn rfc3339(date: &[u8; DATE_BYTES]) -> [u8; 20] {
    let month = MONTHS.chunks(3).position(|name| name == &date[8..11]).map_or(0, |place| place as u8 + 1);
    let mut text = *b"0000-00-00T00:00:00Z";
    text[..4].copy_from_slice(&date[12..16]);
    (text[5], text[6]) = (b'0' + month / 10, b'0' + month % 10);
    text[8..10].copy_from_slice(&date[5..7]);
    text[11..19].copy_from_slice(&date[17..25]);
    text
}

/// A time in UTC, `2026-11-21T08:00:00Z`.
pub(crate) fn moment(unix_seconds: u64) -> String {
    String::from_utf8_lossy(&rfc3339(&format_date(unix_seconds))).into_owned()
}

/// The day of a time in UTC, `2026-11-21`.
pub(crate) fn of(unix_seconds: u64) -> String {
    let text = rfc3339(&format_date(unix_seconds));
    String::from_utf8_lossy(&text[..10]).into_owned()
}

/// Days since 1970-01-01, in UTC.
pub(crate) fn number(unix_seconds: u64) -> u64 {
    unix_seconds / SECONDS
}

/// The day with this number as text, `2026-11-21`.
pub(crate) fn of_number(number: u64) -> String {
    of(number.saturating_mul(SECONDS))
}

const SECONDS: u64 = 24 * 60 * 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_standards_want_it() {
        assert_eq!(&rfc3339(&format_date(1_795_248_000)), b"2026-11-21T08:00:00Z");
        assert_eq!(of(1_795_248_000), "2026-11-21");
        assert_eq!(of(951_782_400), "2000-02-29");
        assert_eq!((of(1_795_219_199), of(1_795_219_200)), ("2026-11-20".into(), "2026-11-21".into()));
        assert_eq!(of_number(number(1_795_248_000)), "2026-11-21");
        assert_eq!(number(1_795_219_200), number(1_795_219_199) + 1);
    }
}
