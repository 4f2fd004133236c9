//! A line for each run, under a line of names.

use crate::report::metrics;
use crate::report::summary::Report;

/// The report as CSV: run, seconds, validity, then every number by its name; times in microseconds. A number
/// that a run does not carry is empty.
pub fn csv(report: &Report) -> String {
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
    use crate::report::summary::Summary;

    #[test]
    fn every_line_has_as_many_fields_as_names() {
        let runs = vec![Summary { rate: 5.0, ..Summary::default() }; 2];
        let report = Report { runs, ..Report::default() };
        let text = csv(&report);
        let widths: Vec<_> = text.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(widths.len(), 3);
        assert!(widths.iter().all(|width| *width == widths[0]));
        assert!(text.starts_with("run,elapsed,measured,valid,answers,rate,"));
    }
}
