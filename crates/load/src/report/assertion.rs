//! Assertions such as `--assert 'p99<5ms'`.

use std::fmt;
use std::str::FromStr;

use crate::report::metrics::{self, MetricUnit};
use crate::report::output::units;
use crate::report::summary::LoadReport;

/// A bound on a metric.
#[derive(Clone, Debug)]
pub struct Assertion {
    text: String,
    name: String,
    holds: Relation,
    bound: f64,
}

/// The relation of a value and its bound.
type Relation = fn(&f64, &f64) -> bool;

/// The relations by their signs. The longer signs precede their prefixes: `<=` begins with `<`.
const RELATIONS: [(&str, Relation); 7] = [
    ("<=", f64::le),
    (">=", f64::ge),
    ("==", f64::eq),
    ("!=", f64::ne),
    ("<", f64::lt),
    (">", f64::gt),
    ("=", f64::eq),
];

/// The result of an assertion.
#[derive(Clone, Debug, PartialEq)]
pub enum AssertionResult {
    /// The assertion holds in every run.
    Holds,
    /// It fails in a run; with the reason.
    Fails(String),
    /// A run lacks the metric; with the reason.
    Unknown(String),
}

impl Assertion {
    /// Checks every run of a report.
    pub fn check(&self, report: &LoadReport) -> AssertionResult {
        for run in &report.runs {
            let Some(value) = metrics::value(run, &self.name) else {
                let why = match metrics::fewest_samples(&self.name) {
                    Some(needed) => format!(
                        "too few samples for {} ({}; {} needed)",
                        self.name,
                        units::number(run.answers as f64),
                        units::number(needed)
                    ),
                    None => format!("the run has no {}", self.name),
                };
                return AssertionResult::Unknown(format!("{self}: {why}"));
            };
            if !(self.holds)(&value, &self.bound) {
                return AssertionResult::Fails(format!("{self}: {} is {}", self.name, self.shown(value)));
            }
        }
        AssertionResult::Holds
    }

    fn shown(&self, value: f64) -> String {
        match metrics::unit(&self.name) {
            Some(MetricUnit::Time) => units::time(value),
            _ => format!("{}", (value * 1e4).round() / 1e4),
        }
    }
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Assertion {
    type Err = String;

    fn from_str(text: &str) -> Result<Assertion, String> {
        let at = text.find(['<', '>', '=', '!']).ok_or_else(|| {
            format!("{text:?} is not an assertion; use a metric, a relation and a bound, as in 'p99<5ms' or 'errors==0'")
        })?;
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let (sign, holds) = RELATIONS
            .into_iter()
            .find(|(sign, _)| rest.starts_with(sign))
            .ok_or_else(|| format!("{text:?} has no relation; use one of < <= > >= == !="))?;
        let unit = metrics::unit(name)
            .ok_or_else(|| format!("{name:?} is not a metric; use one of {}", metrics::names().join(", ")))?;
        let bound = bound(rest[sign.len()..].trim(), unit)?;
        Ok(Assertion { text: text.to_owned(), name: name.to_owned(), holds, bound })
    }
}

fn bound(text: &str, unit: MetricUnit) -> Result<f64, String> {
    let units: &[(&str, f64)] = match unit {
        MetricUnit::Time => &[("ns", 1e-3), ("us", 1.0), ("ms", 1e3), ("s", 1e6)],
        MetricUnit::Number => &[("%", 0.01), ("", 1.0)],
    };
    let found = units.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, factor)));
    let value = found.and_then(|(number, factor)| Some(number.trim().parse::<f64>().ok()? * factor));
    value.filter(|value| value.is_finite()).ok_or_else(|| match unit {
        MetricUnit::Time => format!("{text:?} is not a time; use 5ms, 250us or 1.5s"),
        MetricUnit::Number => format!("{text:?} is not a number"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::summary::RunSummary;

    fn check(text: &str, runs: Vec<RunSummary>) -> AssertionResult {
        let report = LoadReport { runs, ..LoadReport::default() };
        text.parse::<Assertion>().expect(text).check(&report)
    }

    #[test]
    fn every_run_must_meet_an_assertion() {
        let run = |rate: f64| RunSummary { rate, answers: 500, ..RunSummary::default() };
        assert_eq!(check("rate >= 100", vec![run(100.0), run(101.0)]), AssertionResult::Holds);
        assert_eq!(
            check("rate>100", vec![run(101.0), run(100.0)]),
            AssertionResult::Fails("rate>100: rate is 100".into())
        );
        assert_eq!(check("errors==0", vec![run(1.0)]), AssertionResult::Holds);
        assert!(
            matches!(check("p99.99<1s", vec![run(1.0)]), AssertionResult::Unknown(why) if why.contains("too few samples for p99.99 (500; 100,000 needed)"))
        );
    }

    #[test]
    fn units_are_parsed_and_invalid_assertions_refused() {
        let bound = |text: &str| text.parse::<Assertion>().map(|assertion| assertion.bound);
        assert_eq!(bound("p99<5ms"), Ok(5_000.0));
        assert_eq!(bound("uncorrected.p50 <= 1.5s"), Ok(1_500_000.0));
        assert_eq!(bound("generator_cpu<80%"), Ok(0.8));
        for wrong in ["", "p99", "p98<1ms", "p99<5", "p99<xms", "errors==many", "rate<1s", "p99!5ms"] {
            assert!(wrong.parse::<Assertion>().is_err(), "{wrong}");
        }
    }
}
