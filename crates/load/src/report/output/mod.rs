//! What a report looks like: for people, and for programs.

mod csv;
mod hdr;
mod text;
pub(crate) mod units;

use crate::report::summary::Report;

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
