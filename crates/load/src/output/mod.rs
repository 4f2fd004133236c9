//! What a report looks like: for people, and for programs.

mod csv;
mod hdr;
mod text;

use crate::summary::Report;

pub use csv::csv;
pub use hdr::hdr;
pub use text::text;

/// The report as JSON. Times in names that end with `_us` are microseconds, others seconds.
pub fn json(report: &Report) -> String {
    let mut text = serde_json::to_string_pretty(report).expect("numbers and strings can be written");
    text.push('\n');
    text
}

/// Reads what [`json`] wrote.
///
/// # Errors
/// In words, when it is something else.
pub fn read_json(text: &str) -> Result<Report, String> {
    let no = |why: &dyn std::fmt::Display| format!("this is no report of `tenfold bench --json`: {why}");
    let report: Report = serde_json::from_str(text).map_err(|error| no(&error))?;
    if report.runs.is_empty() { Err(no(&"it has no run")) } else { Ok(report) }
}

/// Microseconds with a unit that suits them.
pub(crate) fn time(microseconds: f64) -> String {
    let (value, unit) = match microseconds {
        value if value < 1e3 => (value, "us"),
        value if value < 1e6 => (value / 1e3, "ms"),
        value => (value / 1e6, "s"),
    };
    let digits = match value {
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// A number with its thousands apart.
pub(crate) fn number(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes with a unit that suits them.
pub(crate) fn bytes(value: f64) -> String {
    match value {
        value if value < 1e3 => format!("{value:.0} B"),
        value if value < 1e6 => format!("{:.1} kB", value / 1e3),
        value if value < 1e9 => format!("{:.1} MB", value / 1e6),
        value => format!("{:.2} GB", value / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_and_as_many_digits_as_help() {
        assert_eq!(time(0.5), "0.50 us");
        assert_eq!(time(12.34), "12.3 us");
        assert_eq!(time(2_345.0), "2.35 ms");
        assert_eq!(time(1_000_000.0), "1.00 s");
        assert_eq!(number(1_234_567.4), "1,234,567");
        assert_eq!(number(12.0), "12");
        assert_eq!(bytes(1_530_000.0), "1.5 MB");
    }
}
