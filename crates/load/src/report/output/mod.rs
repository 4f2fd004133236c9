//! The output of a report as text, HTML, JSON, CSV and HdrHistogram percentiles.

mod bars;
mod hdr;
mod html;
mod text;
pub(crate) mod units;

use crate::report::metrics;
use crate::report::summary::LoadReport;

pub use hdr::hdr;
pub use html::html;
pub use text::{brief, text};
pub use units::number;

/// Formats the report as JSON. Names that end with `_us` are microseconds, other times seconds.
pub fn json(report: &LoadReport) -> String {
    let mut text = serde_json::to_string_pretty(report).expect("numbers and strings can be written");
    text.push('\n');
    text
}

/// Parses the output of [`json`].
pub fn read_json(text: &str) -> Result<LoadReport, String> {
    let no = |why: &dyn std::fmt::Display| format!("not a report of `tenfold bench --json`: {why}");
    if text.trim_start().starts_with('<') {
        return Err(no(&"it is a page; run `tenfold bench --json URL > FILE`, and compare such files"));
    }
    let report: LoadReport = serde_json::from_str(text).map_err(|error| no(&error))?;
    if report.runs.is_empty() { Err(no(&"it has no runs")) } else { Ok(report) }
}

/// Formats the report as CSV: run, seconds, validity, then every metric, with times in microseconds. A metric that a
/// run lacks is empty.
pub fn csv(report: &LoadReport) -> String {
    let names = metrics::names();
    let mut text = format!("run,elapsed,measured,valid,{}\n", names.join(","));
    let crowded = !report.crowded().is_empty();
    for (number, run) in (1..).zip(&report.runs) {
        let valid = !crowded && run.invalid.is_empty();
        text += &format!("{number},{},{},{valid}", run.elapsed, run.measured);
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
    use crate::report::environment::Environment;
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

    #[test]
    fn every_output_of_a_crowded_machine_is_invalid() {
        let runs = vec![RunSummary { rate: 5.0, ..RunSummary::default() }];
        let environment = Environment { others: 156.0, online: 2, ..Environment::default() };
        let report = LoadReport { runs, environment, ..LoadReport::default() };
        assert!(report.invalid()[0].starts_with("other programs run: 156.0"));
        assert!(csv(&report).lines().nth(1).is_some_and(|line| line.starts_with("1,0,0,false,")));
        assert!(super::text(&report).contains("INVALID      other programs run"));
        assert!(html(&report, "").contains(">INVALID"));
        let read = read_json(&json(&report)).expect("our own report");
        assert_eq!(read.invalid(), report.invalid());
        assert!(read_json(&html(&report, "")).is_err_and(|why| why.contains("it is a page")));
    }
}
