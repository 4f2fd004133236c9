//! `compare A.json B.json`: ratios of B to A, with intervals; or a ranked table of more reports.

use std::collections::BTreeSet;

use crate::measure::statistics::estimate::{self, Estimate, FEWEST_SAMPLES};
use crate::measure::statistics::holm;
use crate::measure::statistics::sample::{ALPHA, moments};
use crate::report::output::units;
use crate::report::summary::{AgentEnvironment, LoadReport, RunSummary};
use crate::report::{metrics, validity};

/// The compared metrics, and whether a higher value is better.
const COMPARED: [(&str, bool); 4] = [("rate", true), ("mean", false), ("p50", false), ("p99", false)];

/// The conclusion if the interval excludes 1, but the p-value for all lines together is too large.
const UNDECIDED: &str = "undecided: too little for a conclusion about all lines";

/// A metric of two reports.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedMetric {
    /// The name of the metric in reports.
    pub name: &'static str,
    /// The geometric mean over the runs of report A that have the metric, if there are any.
    pub a: Option<f64>,
    /// The same of report B.
    pub b: Option<f64>,
    /// The ratio of B to A. It is absent if a report has the metric of a part of its connections.
    pub ratio: Option<f64>,
    /// The comparison, or the reason why there is none.
    pub comparison: Result<Comparison, String>,
}

/// A ratio of two reports, and its conclusion.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The ratio of B to A.
    pub ratio: Estimate,
    /// The p-value of equality, adjusted for all compared metrics.
    pub adjusted_p: f64,
    /// Whether a higher value is better.
    pub more_is_better: bool,
}

impl Comparison {
    /// Names the better report, if there is a difference.
    pub fn verdict(&self) -> &'static str {
        match self.adjusted_p <= ALPHA {
            true if (self.ratio.mean > 1.0) == self.more_is_better => "B is better",
            true => "A is better",
            false if self.ratio.low > 1.0 || self.ratio.high < 1.0 => UNDECIDED,
            false => "no measurable difference",
        }
    }
}

/// The comparison of each metric. The chance that it names a better report between equal servers is at most 5 % for
/// all metrics together.
fn compare(a: &LoadReport, b: &LoadReport) -> Vec<ComparedMetric> {
    let mut lines: Vec<ComparedMetric> = COMPARED.into_iter().map(|metric| line(metric, a, b)).collect();
    let compared: Vec<&mut Comparison> =
        lines.iter_mut().filter_map(|line| line.comparison.as_mut().ok()).collect();
    let p_values: Vec<f64> = compared.iter().map(|comparison| comparison.adjusted_p).collect();
    for (comparison, adjusted) in compared.into_iter().zip(holm::adjust(&p_values)) {
        comparison.adjusted_p = adjusted;
    }
    lines
}

/// The comparison of one metric; its p-value is not adjusted yet.
fn line((name, more_is_better): (&'static str, bool), a: &LoadReport, b: &LoadReport) -> ComparedMetric {
    let samples = |report: &LoadReport| -> Vec<f64> {
        report.runs.iter().filter_map(|run| metrics::value(run, name)).collect()
    };
    let (of_a, of_b) = (samples(a), samples(b));
    let sides = [("A", a), ("B", b)];
    let partial = sides.iter().find_map(|(side, report)| partial(name, side, report));
    let invalid = sides.iter().find(|(_, report)| !report.invalid().is_empty());
    let (a, b) = (middle(&of_a), middle(&of_b));
    let ratio = a.zip(b).map(|(a, b)| b / a).filter(|ratio| ratio.is_finite() && partial.is_none());
    // The first reason stays true on a quiet machine, so it precedes the validity.
    let comparison = match partial.or_else(|| invalid.map(|(side, _)| format!("{side} is invalid"))) {
        Some(why) => Err(format!("not comparable: {why}")),
        None => estimate::ratio(&of_a, &of_b)
            .map(|(ratio, adjusted_p)| Comparison { ratio, adjusted_p, more_is_better })
            .ok_or_else(|| missing(&of_a, &of_b)),
    };
    ComparedMetric { name, a, b, ratio, comparison }
}

/// The reason why a report has a metric of a part of its connections.
fn partial(name: &str, side: &str, report: &LoadReport) -> Option<String> {
    let partial = report.runs.iter().find_map(validity::without_latency).filter(|_| name != "rate");
    partial.map(|why| format!("in {side}, {why}"))
}

/// The reason why samples have no ratio.
fn missing(a: &[f64], b: &[f64]) -> String {
    match a.len().min(b.len()) < FEWEST_SAMPLES {
        true => format!(
            "not compared: too few runs have it ({} in A, {} in B; {FEWEST_SAMPLES} needed); use --repeat, or measure longer",
            a.len(),
            b.len()
        ),
        false => "not compared: it is 0 in one of the runs".to_owned(),
    }
}

/// The geometric mean; zero if a sample is zero.
fn middle(samples: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = samples.iter().map(|value| value.ln()).collect();
    (!logs.is_empty()).then(|| moments(&logs).0.exp())
}

/// A line for each setting that differs.
fn differences(reports: &[(&str, &LoadReport)]) -> String {
    let keys: BTreeSet<&String> = reports.iter().flat_map(|(_, report)| report.settings.keys()).collect();
    let first = reports.first().map(|(_, report)| *report);
    let differ = |of: &dyn Fn(&LoadReport) -> Option<String>| {
        reports.iter().any(|(_, report)| of(report) != first.and_then(of))
    };
    let mut text = String::new();
    for key in keys {
        let of = |report: &LoadReport| report.settings.get(key).cloned();
        if differ(&of) {
            let shown = |(name, report): &(&str, &LoadReport)| {
                format!("{} in {name}", of(report).unwrap_or_else(|| "unknown".to_owned()))
            };
            text +=
                &format!("differs  --{key}: {}\n", reports.iter().map(shown).collect::<Vec<_>>().join(", "));
        }
    }
    let machines = |report: &LoadReport| -> Vec<String> {
        let found = |agent: &AgentEnvironment| {
            let here = &agent.environment;
            format!("{} x {}, Linux {}", here.processors, here.processor, here.kernel)
        };
        report.agents.iter().map(found).collect()
    };
    let has_agents = reports.iter().all(|(_, report)| !report.agents.is_empty());
    if has_agents && differ(&|report| Some(machines(report).join("; "))) {
        for (name, report) in reports {
            text += &format!("differs  agents of {name}: {}\n", machines(report).join("; "));
        }
    }
    if differ(&|report| Some(format!("{:?}", report.io.means))) {
        for (name, report) in reports {
            text += &format!("differs  {name}: {}\n", report.io);
        }
    }
    text
}

/// A report in a ranked table.
struct RankedReport<'a> {
    name: &'a str,
    report: &'a LoadReport,
    rates: Vec<f64>,
    /// The ratio of its rate to the highest, and the adjusted p-value of equality; or the reason why there is none.
    relative: Result<(Estimate, f64), String>,
}

/// A table of several reports by name, the highest rate first. Invalid reports come last and have a ratio, but neither a
/// rank nor a conclusion.
pub fn ranked(reports: &[(&str, &LoadReport)]) -> String {
    let samples = |report: &LoadReport| report.runs.iter().map(|run| run.rate).collect::<Vec<f64>>();
    let mut rows: Vec<RankedReport<'_>> = reports
        .iter()
        .map(|&(name, report)| {
            let relative = Err(missing_interval(report));
            RankedReport { name, report, rates: samples(report), relative }
        })
        .collect();
    let is_invalid = |row: &RankedReport<'_>| !row.report.invalid().is_empty();
    rows.sort_by(|a, b| {
        let rate = |row: &RankedReport<'_>| middle(&row.rates).unwrap_or_default();
        is_invalid(a).cmp(&is_invalid(b)).then(rate(b).total_cmp(&rate(a)))
    });
    // If all are invalid, the ratios are to the first.
    let best = rows.first().map(|row| row.rates.clone());
    for row in rows.iter_mut().skip(1).filter(|row| !is_invalid(row)) {
        if let Some((ratio, p)) = best.as_ref().and_then(|best| estimate::ratio(best, &row.rates)) {
            row.relative = Ok((ratio, p));
        }
    }
    let compared: Vec<&mut f64> =
        rows.iter_mut().filter_map(|row| Some(&mut row.relative.as_mut().ok()?.1)).collect();
    let p_values: Vec<f64> = compared.iter().map(|p| **p).collect();
    for (p, adjusted) in compared.into_iter().zip(holm::adjust(&p_values)) {
        *p = adjusted;
    }
    table(reports, &rows, best.as_deref())
}

/// The reason why a report has no interval.
fn missing_interval(report: &LoadReport) -> String {
    match report.runs.len() < FEWEST_SAMPLES {
        true => "no interval: one run does not show how runs differ (use --repeat)".to_owned(),
        false => "no interval: the rate is 0 in a run".to_owned(),
    }
}

fn table(reports: &[(&str, &LoadReport)], rows: &[RankedReport<'_>], best: Option<&[f64]>) -> String {
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default().max(6);
    let mut text = differences(reports);
    if !text.is_empty() {
        text.push('\n');
    }
    text += &format!(
        "    {:<width$}{:>12}{:>10}{:>10}{:>9}{:>10}  {:<16}\n",
        "report", "rate", "p50", "p99", "errors", "relative", "95 % interval"
    );
    for (place, row) in (1..).zip(rows) {
        let invalid = row.report.invalid();
        let rank = if invalid.is_empty() { format!("{place:>2}") } else { " -".to_owned() };
        let of = |name: &str| {
            let samples: Vec<f64> =
                row.report.runs.iter().filter_map(|run| metrics::value(run, name)).collect();
            value(name, middle(&samples))
        };
        let relative = best.and_then(middle).zip(middle(&row.rates)).map(|(best, own)| own / best);
        let relative = relative.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
        let errors: u64 = row.report.runs.iter().map(RunSummary::errors).sum();
        let name = row.name;
        text += &format!(
            "{rank}  {name:<width$}{:>12}{:>10}{:>10}{errors:>9}{relative:>10}",
            of("rate"),
            of("p50"),
            of("p99")
        );
        text += &match (&row.relative, place) {
            _ if !invalid.is_empty() => format!("  invalid: {}\n", invalid.join("; ")),
            (_, 1) => "\n".to_owned(),
            (Ok((ratio, p)), _) => {
                let interval = format!("{:.3} .. {:.3}", ratio.low, ratio.high);
                let verdict = match *p <= ALPHA {
                    true => "slower",
                    false if ratio.high < 1.0 => UNDECIDED,
                    false => "no measurable difference",
                };
                format!("  {interval:<16}  {verdict}\n")
            }
            (Err(why), _) => format!("  {why}\n"),
        };
    }
    text + "\nrelative: the rate as a part of the highest; intervals: Student's t over the logarithms of runs; \
            conclusions: 5 % for all lines together (Holm)\n"
}

/// The comparison as text.
pub fn text(a: &LoadReport, b: &LoadReport) -> String {
    let title = |report: &LoadReport| {
        let label = report.label.as_ref().map_or_else(String::new, |label| format!("{label}: "));
        format!("{label}{}: {}", report.urls.join(" "), report.plan)
    };
    let mut text = format!("A  {}\nB  {}\n", title(a), title(b));
    text += &differences(&[("A", a), ("B", b)]);
    text.push('\n');
    text += &format!("{:<8}{:>12}{:>12}{:>8}  {:<16}\n", "", "A", "B", "B/A", "95 % interval");
    compare(a, b).iter().for_each(|line| text += &shown(line));
    let errors = |report: &LoadReport| report.runs.iter().map(RunSummary::errors).sum::<u64>();
    text += &format!("{:<8}{:>12}{:>12}\n", "errors", errors(a), errors(b));
    text += match a.runs.len().min(b.runs.len()) < FEWEST_SAMPLES {
        true => {
            "\none run does not show how runs differ, so it has no interval and no conclusion (use --repeat)\n"
        }
        false => {
            "\nintervals: Student's t over the logarithms of runs; conclusions: 5 % for all lines together (Holm)\n"
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

/// Formats a rate or a time.
fn value(name: &str, value: Option<f64>) -> String {
    match (value, name) {
        (None, _) => "-".to_owned(),
        (Some(value), "rate") => format!("{value:.0}/s"),
        (Some(value), _) => units::time(value),
    }
}

fn shown(line: &ComparedMetric) -> String {
    let values = format!("{:<8}{:>12}{:>12}", line.name, value(line.name, line.a), value(line.name, line.b));
    match &line.comparison {
        Ok(comparison) => {
            let ratio = &comparison.ratio;
            let interval = format!("{:.3} .. {:.3}", ratio.low, ratio.high);
            format!("{values}{:>8.3}  {interval:<16}  {}\n", ratio.mean, comparison.verdict())
        }
        Err(why) => {
            let ratio = line.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
            format!("{values}{ratio:>8}  {why}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::plan::io::ChosenIo;
    use crate::report::environment::Environment;
    use crate::report::summary::Distribution;

    fn report(rates: &[f64]) -> LoadReport {
        let run = |rate: &f64| RunSummary { rate: *rate, ..RunSummary::default() };
        let runs = rates.iter().map(run).collect();
        LoadReport {
            label: None,
            urls: vec!["u".into()],
            plan: "p".into(),
            settings: BTreeMap::new(),
            io: ChosenIo::default(),
            environment: Environment::default(),
            agents: Vec::new(),
            runs,
        }
    }

    #[test]
    fn a_number_with_too_few_runs_is_reported_as_not_compared() {
        let text = text(&report(&[100.0]), &report(&[100.0]));
        for name in ["rate", "mean", "p50", "p99"] {
            let reported = text.lines().any(|line| line.starts_with(name) && line.contains("too few runs"));
            assert!(reported, "{name} is missing:\n{text}");
        }
        assert!(text.contains("rate           100/s       100/s   1.000  not compared"), "{text}");
    }

    #[test]
    fn settings_that_differ_are_named() {
        let (mut a, mut b) = (report(&[100.0]), report(&[100.0]));
        a.settings = [("header", "none"), ("pipeline", "1")].map(|(a, b)| (a.into(), b.into())).into();
        b.settings =
            [("header", "Connection: close"), ("pipeline", "1")].map(|(a, b)| (a.into(), b.into())).into();
        let text = text(&a, &b);
        assert!(text.contains("differs  --header: none in A, Connection: close in B\n"), "{text}");
        assert!(!text.contains("--pipeline"), "{text}");
    }

    fn verdicts(a: &LoadReport, b: &LoadReport) -> Vec<(&'static str, &'static str)> {
        let verdict = |line: ComparedMetric| Some((line.name, line.comparison.ok()?.verdict()));
        compare(a, b).into_iter().filter_map(verdict).collect()
    }

    #[test]
    fn a_difference_is_distinguished_from_noise() {
        let (a, b) = (report(&[100.0, 101.0, 99.0, 100.0]), report(&[121.0, 119.0, 120.0, 120.0]));
        assert_eq!(verdicts(&a, &b), [("rate", "B is better")]);
        assert_eq!(verdicts(&b, &a), [("rate", "A is better")]);
        assert_eq!(verdicts(&a, &a), [("rate", "no measurable difference")]);
        assert!(text(&a, &b).contains("over the logarithms of runs"));
    }

    #[test]
    fn several_reports_are_ranked_with_their_differences() {
        let (fast, near) = (report(&[200.0, 202.0, 198.0, 200.0]), report(&[199.0, 203.0, 197.0, 200.0]));
        let (slow, mut wrong) = (report(&[100.0, 101.0, 99.0, 100.0]), report(&[900.0, 900.0]));
        wrong.runs[0].invalid.push("too late".to_owned());
        let mut once = report(&[50.0]);
        once.settings = [("pipeline".to_owned(), "4".to_owned())].into();
        let all = [("slow", &slow), ("wrong", &wrong), ("near", &near), ("once", &once), ("fast", &fast)];
        let text = ranked(&all);
        let row = |name: &str| text.lines().position(|line| line.split_whitespace().nth(1) == Some(name));
        let places = ["fast", "near", "slow", "once", "wrong"].map(row);
        assert!(places.is_sorted() && places[0].is_some(), "{text}");
        let line = |name| text.lines().nth(row(name).expect("a row")).expect("a line");
        assert!(
            line("fast").ends_with("1.000") && line("near").ends_with("no measurable difference"),
            "{text}"
        );
        assert!(line("slow").contains("0.500  0.4") && line("slow").ends_with("  slower"), "{text}");
        assert!(line("once").contains("0.250  no interval: one run"), "{text}");
        assert!(
            line("wrong").starts_with(" -  wrong") && line("wrong").ends_with("4.500  invalid: too late"),
            "{text}"
        );
        assert!(text.starts_with("differs  --pipeline: unknown in slow, "), "{text}");
    }

    #[test]
    fn two_runs_that_differ_as_much_as_servers_have_no_winner() {
        let text = text(&report(&[100.0, 101.0]), &report(&[102.0, 103.0]));
        assert!(text.contains("1.020  0.990 .. 1.051    no measurable difference"), "{text}");
    }

    #[test]
    fn an_interval_without_one_that_earns_no_conclusion_is_undecided() {
        let line = |high, adjusted_p| Comparison {
            ratio: Estimate { mean: 0.9, low: 0.8, high },
            adjusted_p,
            more_is_better: true,
        };
        let verdicts = [line(0.99, 0.01), line(0.99, 0.06), line(1.01, 0.06)].map(|line| line.verdict());
        assert_eq!(verdicts, ["A is better", UNDECIDED, "no measurable difference"]);
    }

    #[test]
    fn a_single_run_on_a_side_never_wins() {
        for (a, b) in [(1, 1), (1, 8), (8, 1)] {
            let (a, b) = (report(&vec![100.0; a]), report(&vec![200.0; b]));
            assert_eq!(verdicts(&a, &b), []);
            assert!(text(&a, &b).contains("one run does not show how runs differ"));
        }
    }

    #[test]
    fn latencies_of_some_connections_are_not_comparable() {
        let (mut starved, fair) = (synthetic(8, 1), synthetic(8, 2));
        let names = |a: &LoadReport, b: &LoadReport| verdicts(a, b).len();
        assert_eq!(names(&starved, &fair), 4);
        let all = &mut starved.runs[3].connections;
        (all.slots, all.never_answered) = (20, 19);
        assert_eq!((names(&starved, &fair), names(&fair, &starved)), (1, 1));
        let text = text(&starved, &fair);
        let why = "-  not comparable: in A, 19 of 20 connections never got a response";
        assert_eq!(text.matches(why).count(), 3, "{text}");
        starved.runs[0].invalid.push("other programs run".to_owned());
        assert_eq!(self::text(&starved, &fair).matches(why).count(), 3);
    }

    #[test]
    fn invalid_numbers_are_not_comparable() {
        let (mut invalid, valid) = (synthetic(8, 1), synthetic(8, 2));
        invalid.runs[0].invalid.push("Little's law does not hold".to_owned());
        assert_eq!(verdicts(&valid, &invalid), []);
        let text = text(&valid, &invalid);
        let rows: Vec<&str> =
            text.lines().filter(|line| line.contains("not comparable: B is invalid")).collect();
        let ratio =
            |row: &&str| row.split_whitespace().nth(3).is_some_and(|word| word.parse::<f64>().is_ok());
        assert!(rows.len() == 4 && rows.iter().all(ratio), "{text}");
    }

    /// Runs of one server. The speed of the machine varies between runs by 5 %, and sometimes by a third. Each metric
    /// has additional noise. Values have three digits, as in a histogram.
    fn synthetic(runs: usize, seed: u64) -> LoadReport {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        let mut run = || {
            let disturbed = if normal() > 1.6 { 0.3 } else { 0.0 };
            let slowness = 0.05 * normal() + disturbed;
            let mut time = |micros: f64, noise: f64| {
                let value = micros * (slowness + noise * normal()).exp();
                let unit = 10.0_f64.powf(value.log10().floor() - 2.0);
                (value / unit).round() * unit
            };
            let (mean, p50, p99) = (time(120.0, 0.01), time(100.0, 0.01), time(400.0, 0.1));
            let percentiles = [("p50".to_owned(), p50), ("p99".to_owned(), p99)].into();
            let latency = Distribution { mean, percentiles, ..Distribution::default() };
            RunSummary { rate: 1e6 / mean, latency_us: Some(latency), ..RunSummary::default() }
        };
        LoadReport { runs: (0..runs).map(|_| run()).collect(), ..LoadReport::default() }
    }

    #[test]
    fn a_server_is_rarely_better_than_itself() {
        let pool = synthetic(160, 1).runs;
        let mut random = fastrand::Rng::with_seed(1);
        for runs in [2, 3, 8] {
            let mut draw = || {
                let (mut a, mut b) = (LoadReport::default(), LoadReport::default());
                let mut drawn = random.choose_multiple(&pool, 2 * runs).into_iter().cloned();
                a.runs = drawn.by_ref().take(runs).collect();
                b.runs = drawn.collect();
                verdicts(&a, &b)
            };
            let won =
                |found: &[(&str, &str)]| found.iter().any(|(_, verdict)| verdict.ends_with("is better"));
            let wrong = (0..1_000).filter(|_| won(&draw())).count();
            assert!(wrong <= 50, "{wrong} of 1000 comparisons of {runs} runs on each side have a winner");
        }
    }
}
