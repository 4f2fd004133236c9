//! What a report looks like: for people, and for programs.

mod hdr;
mod text;
pub(crate) mod units;

use crate::report::metrics;
use crate::report::summary::LoadReport;

pub use hdr::hdr;
pub use text::text;

/// The report as JSON. Times in names that end with `_us` are microseconds, others seconds.
pub fn json(report: &LoadReport) -> String {
    let mut text = serde_json::to_string_pretty(report).expect("numbers and strings can be written");
    text.push('\n');
    text
}

/// Reads what [`json`] wrote.
///
/// # Errors
/// In words, when it is something else.
pub fn read_json(text: &str) -> Result<LoadReport, String> {
    let no = |why: &dyn std::fmt::Display| format!("this is no report of `tenfold bench --json`: {why}");
    let report: LoadReport = serde_json::from_str(text).map_err(|error| no(&error))?;
    if report.runs.is_empty() { Err(no(&"it has no run")) } else { Ok(report) }
}

/// The report as CSV: run, seconds, validity, then every number by its name; times in microseconds. A number
/// that a run does not carry is empty.
pub fn csv(report: &LoadReport) -> String {
    let names = metrics::names();
    let mut text = format!("run,elapsed,measured,valid,{}\n", names.join(","));
    for (number, run) in (1..).zip(&report.runs) {
        text += &format!("{number},{},{},{}", run.elapsed, run.measured, run.invalid.is_empty());
        for name in &names {
            text.push(',');
            if let Some(value) = metrics::value(run, name) {
                text += &value.to_string();
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::summary::RunSummary;

    #[test]
    fn every_line_has_as_many_fields_as_names() {
        let runs = vec![RunSummary { rate: 5.0, ..RunSummary::default() }; 2];
        let report = LoadReport { runs, ..LoadReport::default() };
        let text = csv(&report);
        let widths: Vec<_> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(widths.len(), 3);
        assert!(widths.iter().all(|width| *width == widths[0]));
        assert!(text.starts_with("run,elapsed,measured,valid,answers,rate,"));
    }
}
