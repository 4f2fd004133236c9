//! `compare A.json B.json`: ratios of B to A, with intervals.

use crate::measure::statistics::{self, Estimate};
use crate::report::output::units;
use crate::report::summary::{Batch, LoadReport, RunSummary};

/// The compared metrics, and whether a higher value is better.
const COMPARED: [(&str, bool); 4] = [("rate", true), ("mean", false), ("p50", false), ("p99", false)];

/// A metric in both reports.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedMetric {
    /// Its name.
    pub name: &'static str,
    /// The mean over the samples of report A.
    pub a: f64,
    /// The mean over the samples of report B.
    pub b: f64,
    /// The ratio of B to A.
    pub ratio: Estimate,
    /// Whether a higher value is better.
    pub more_is_better: bool,
}

impl ComparedMetric {
    /// Interprets the interval.
    pub fn verdict(&self) -> &'static str {
        let better = |more: bool| if more == self.more_is_better { "B is better" } else { "A is better" };
        match (self.ratio.low > 1.0, self.ratio.high < 1.0) {
            (true, _) => better(true),
            (_, true) => better(false),
            _ => "no measurable difference",
        }
    }
}

/// The comparison of each metric, or the reason why it is impossible.
fn compare(a: &LoadReport, b: &LoadReport) -> Vec<Result<ComparedMetric, String>> {
    let by_runs = a.runs.len() > 1 && b.runs.len() > 1;
    let line = |(name, more_is_better): (&'static str, bool)| {
        let (a, b) = (samples(a, name, by_runs), samples(b, name, by_runs));
        let ratio = statistics::ratio(&a, &b, 1).ok_or_else(|| {
            let unit = if by_runs { "runs" } else { "parts of a run" };
            match a.len().min(b.len()) < statistics::FEWEST_SAMPLES {
                true => format!(
                    "{name:<8}not compared: too few samples ({} {unit} in A, {} in B; {} needed); measure longer, or --repeat",
                    a.len(),
                    b.len(),
                    statistics::FEWEST_SAMPLES
                ),
                false => format!("{name:<8}not compared: it is 0 in one of the {unit}"),
            }
        })?;
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        Ok(ComparedMetric { name, a: mean(&a), b: mean(&b), ratio, more_is_better })
    };
    COMPARED.into_iter().map(line).collect()
}

/// The samples of a metric: runs, or the tenths of a single run. Tenths do not show how runs differ.
fn samples(report: &LoadReport, name: &str, by_runs: bool) -> Vec<f64> {
    let of_run = |run: &RunSummary| crate::report::metrics::value(run, name);
    let of_batch = |batch: &Batch| match name {
        "rate" => Some(batch.rate),
        "mean" => batch.mean,
        "p50" => batch.p50,
        _ => batch.p99,
    };
    match by_runs {
        true => report.runs.iter().filter_map(of_run).collect(),
        false => report.runs.iter().flat_map(|run| &run.batches).filter_map(of_batch).collect(),
    }
}

/// A line for each setting that differs. Reports of older versions have no settings.
fn differences(a: &LoadReport, b: &LoadReport) -> String {
    let differs = |(key, value): &(&String, &String)| b.settings.get(*key) != Some(*value);
    let mut text = String::new();
    if !b.settings.is_empty() {
        for (key, value) in a.settings.iter().filter(differs) {
            text += &format!(
                "differs  --{key}: {value} in A, {} in B\n",
                b.settings.get(key).map_or("unknown", String::as_str)
            );
        }
    }
    if a.io.means != b.io.means {
        text += &format!("differs  A: {}\ndiffers  B: {}\n", a.io, b.io);
    }
    text
}

/// The comparison as text.
pub fn text(a: &LoadReport, b: &LoadReport) -> String {
    let mut text = format!("A  {}: {}\nB  {}: {}\n", a.urls.join(" "), a.plan, b.urls.join(" "), b.plan);
    text += &differences(a, b);
    text.push('\n');
    text += &format!("{:<8}{:>12}{:>12}{:>8}  {:<16}\n", "", "A", "B", "B/A", "95 % interval");
    for line in compare(a, b) {
        let line = match line {
            Ok(line) => line,
            Err(why) => {
                text += &(why + "\n");
                continue;
            }
        };
        let shown = |value: f64| match line.name {
            "rate" => format!("{value:.0}/s"),
            _ => units::time(value),
        };
        text += &format!(
            "{:<8}{:>12}{:>12}{:>8.3}  {:<16}  {}\n",
            line.name,
            shown(line.a),
            shown(line.b),
            line.ratio.mean,
            format!("{:.3} .. {:.3}", line.ratio.low, line.ratio.high),
            line.verdict()
        );
    }
    let errors = |report: &LoadReport| report.runs.iter().map(RunSummary::errors).sum::<u64>();
    text += &format!("{:<8}{:>12}{:>12}\n", "errors", errors(a), errors(b));
    text += match a.runs.len() > 1 && b.runs.len() > 1 {
        true => "\nintervals: bootstrap over runs\n",
        false => {
            "\nintervals: bootstrap over the tenths of one run; they do not show how runs differ (use --repeat)\n"
        }
    };
    for (name, report) in [("A", a), ("B", b)] {
        for why in report.invalid() {
            text += &format!("{name} is invalid: {why}\n");
        }
    }
    if a.environment != b.environment
        && (&a.environment.kernel, &a.environment.processor)
            != (&b.environment.kernel, &b.environment.processor)
    {
        text += "A and B were measured on different machines or kernels\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::plan::io::ChosenIo;
    use crate::report::environment::Environment;

    fn report(rates: &[f64]) -> LoadReport {
        let run = |rate: &f64| RunSummary { rate: *rate, ..RunSummary::default() };
        let runs = rates.iter().map(run).collect();
        LoadReport {
            urls: vec!["u".into()],
            plan: "p".into(),
            settings: BTreeMap::new(),
            io: ChosenIo::default(),
            environment: Environment::default(),
            runs,
        }
    }

    #[test]
    fn a_number_with_too_few_samples_is_reported_as_not_compared() {
        let text = text(&report(&[100.0]), &report(&[100.0]));
        for name in ["rate", "mean", "p50", "p99"] {
            let reported =
                text.lines().any(|line| line.starts_with(name) && line.contains("too few samples"));
            assert!(reported, "{name} is missing:\n{text}");
        }
    }

    #[test]
    fn settings_that_differ_are_named() {
        let (mut a, mut b) = (report(&[100.0]), report(&[100.0]));
        a.settings = [("header", "none"), ("pipeline", "1")].map(|(a, b)| (a.into(), b.into())).into();
        assert!(!text(&a, &b).contains("differs"), "a report of an older version has no settings");
        b.settings =
            [("header", "Connection: close"), ("pipeline", "1")].map(|(a, b)| (a.into(), b.into())).into();
        let text = text(&a, &b);
        assert!(text.contains("differs  --header: none in A, Connection: close in B\n"), "{text}");
        assert!(!text.contains("--pipeline"), "{text}");
    }

    #[test]
    fn a_difference_is_distinguished_from_noise() {
        let (a, b) = (report(&[100.0, 101.0, 99.0, 100.0]), report(&[121.0, 119.0, 120.0, 120.0]));
        let compared = [compare(&a, &b), compare(&a, &a)].concat();
        let lines: Vec<ComparedMetric> = compared.into_iter().flatten().collect();
        assert_eq!((lines[0].name, lines[0].verdict()), ("rate", "B is better"));
        assert!((1.19..1.21).contains(&lines[0].ratio.mean));
        assert_eq!((lines[1].name, lines[1].verdict()), ("rate", "no measurable difference"));
        assert!(text(&a, &b).contains("over runs"));
    }
}
