//! The report as text: eight lines and a histogram, or all results.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::measure::record::{Http2Stats, TlsStats};
use crate::measure::statistics::estimate;
use crate::report::environment::Environment;
use crate::report::metrics::{self, LATENCIES};
use crate::report::output::bars::bars;
use crate::report::output::units::{bytes, number, time};
use crate::report::summarize::{BATCHES, FEWEST_ANSWERS};
use crate::report::summary::{
    AgentSummary, Distribution, LittlesLaw, LoadReport, PERCENTILES, RunSummary, Schedule,
};

/// The width of the names in [`brief`].
const NAME: usize = 9;

/// Formats the most important results: eight lines and a histogram for one run, or a table over several runs.
pub fn brief(report: &LoadReport) -> String {
    let mut text = String::new();
    if let Some(label) = &report.label {
        let _ = writeln!(text, "{label}");
    }
    match report.runs.as_slice() {
        [run] => brief_run(&mut text, report, run),
        _ => brief_runs(&mut text, report),
    }
    text
}

fn brief_run(text: &mut String, report: &LoadReport, run: &RunSummary) {
    brief_line(text, "rate", &format!("{}/s  {}", number(run.rate), spread(run)));
    let found = run.latency_us.as_ref();
    for name in ["p50", "p99", "p99.9"] {
        let shown = found.and_then(|found| found.percentile(name)).map_or_else(|| too_few(run, name), time);
        brief_line(text, name, &shown);
    }
    brief_line(text, "max", &found.map_or_else(|| "-".to_owned(), |found| time(found.max)));
    brief_errors(text, &report.runs);
    brief_line(text, "verdict", &verdict(report));
    for agent in &run.agents {
        let why = match (&agent.lost, &agent.limit) {
            (Some(why), _) => format!("LOST: it {why}"),
            (None, Some(why)) => format!("a limit: {why}"),
            (None, None) => continue,
        };
        brief_line(text, &format!("agent {}", agent.name), &why);
    }
    if let Some(bars) = found.and_then(bars) {
        let _ = write!(text, "\n{bars}");
    }
}

fn brief_runs(text: &mut String, report: &LoadReport) {
    over_runs(text, report, &["rate", "p50", "p99", "p99.9", "max"]);
    brief_errors(text, &report.runs);
    brief_line(text, "verdict", &verdict(report));
}

fn brief_line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {name:<NAME$} {value}");
}

/// The reason why a percentile is missing.
fn too_few(run: &RunSummary, name: &str) -> String {
    let samples = run.latency_us.as_ref().map_or(0, |found| found.count);
    let needed = metrics::fewest_samples(name).unwrap_or_default();
    format!("-  too few samples ({}; {} needed)", number(samples as f64), number(needed))
}

/// The errors by kind, and the starved connections.
fn brief_errors(text: &mut String, runs: &[RunSummary]) {
    let mut kinds: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for run in runs {
        for (kind, count) in &run.errors {
            let example = run.examples.get(kind).map(String::as_str).unwrap_or_default();
            kinds.entry(kind.name()).or_insert((0, example)).0 += count;
        }
    }
    let all: u64 = kinds.values().map(|(count, _)| count).sum();
    let shown: Vec<String> = kinds
        .iter()
        .map(|(kind, (count, example))| format!("{} {kind}, the first: {example}", number(*count as f64)))
        .collect();
    let colon = if shown.is_empty() { "" } else { ": " };
    brief_line(text, "errors", &format!("{}{colon}{}", number(all as f64), shown.join("; ")));
    let sum = |of: fn(&RunSummary) -> u64| number(runs.iter().map(of).sum::<u64>() as f64);
    let (starved, slots) = (sum(|run| run.connections.never_answered), sum(|run| run.connections.slots));
    brief_line(text, "starved", &format!("{starved} of {slots} connections"));
}

/// Whether the numbers are valid, with the reasons and notes.
fn verdict(report: &LoadReport) -> String {
    let answers: u64 = report.runs.iter().map(|run| run.answers).sum();
    let measured: f64 = report.runs.iter().map(|run| run.measured).sum();
    let counted = format!("{} responses OK in {measured:.2} s", number(answers as f64));
    let invalid = report.invalid();
    let mut notes: Vec<&str> = Vec::new();
    for note in report.runs.iter().flat_map(|run| &run.notes) {
        if !notes.contains(&note.as_str()) {
            notes.push(note);
        }
    }
    let notes: String = notes.iter().map(|note| format!("; note: {note}")).collect();
    let interrupted = report.runs.iter().find(|run| run.interrupted);
    let mut found = Vec::new();
    if !invalid.is_empty() {
        found.push(format!("INVALID: {}", invalid.join("; ")));
    }
    if let Some(run) = interrupted {
        found.push(format!("interrupted after {:.1} s", run.elapsed));
    }
    if found.is_empty() {
        found.push("valid".to_owned());
    }
    format!("{}; {counted}{notes}", found.join("; "))
}

/// Formats all results.
pub fn text(report: &LoadReport) -> String {
    let label = report.label.as_ref().map_or_else(String::new, |label| format!("{label}\n"));
    let mut text = label + &format!("{}\n{}\n", report.urls.first().map_or("", String::as_str), report.plan);
    if report.urls.len() > 1 {
        let more = report.urls.len() - 1;
        let _ = writeln!(text, "and {more} more URL{}", if more == 1 { "" } else { "s" });
    }
    if report.agents.is_empty() {
        let _ = writeln!(text, "{}", report.io);
        machine(&mut text, &report.environment);
    }
    for agent in &report.agents {
        let _ = write!(text, "{}: {}; ", agent.name, agent.io);
        machine(&mut text, &agent.environment);
    }
    report.crowded().iter().for_each(|why| line(&mut text, "INVALID", why));
    for (number, run) in (1..).zip(&report.runs) {
        text.push('\n');
        if report.runs.len() > 1 {
            let _ = writeln!(text, "run {number} of {}", report.runs.len());
        }
        write_run(&mut text, run);
    }
    if report.runs.len() > 1 {
        over_runs(&mut text, report, &["rate", "mean", "p50", "p99", "max"]);
    }
    text
}

fn machine(text: &mut String, found: &Environment) {
    let Environment { version, kernel, processors, processor, load, .. } = found;
    let _ =
        writeln!(text, "tenfold {version}, Linux {kernel}, {processors} x {processor}, load before {load}");
}

fn line(text: &mut String, name: &str, said: &str) {
    let _ = writeln!(text, "  {name:<13}{said}");
}

fn write_run(text: &mut String, run: &RunSummary) {
    if run.interrupted {
        line(text, "interrupted", &format!("after {:.1} s; results so far", run.elapsed));
    }
    line(text, "requests", &format!("{} responses OK in {:.2} s", number(run.answers as f64), run.measured));
    line(text, "rate", &format!("{}/s  {}", number(run.rate), spread(run)));
    let per_second = run.bytes as f64 / run.measured;
    line(text, "received", &format!("{}, {}/s", bytes(run.bytes as f64), bytes(per_second)));
    let cut = &run.warm_up;
    let left_out = match (cut.seconds, number(cut.answers as f64)) {
        (seconds, answers) if seconds > 0.0 => format!("{seconds:.2} s and {answers} responses left out: "),
        _ => String::new(),
    };
    line(text, "warm-up", &(left_out + &cut.rule));
    if let Some(Schedule { asked, sent, answered }) = run.schedule {
        let [asked, sent, answered] = [asked, sent, answered].map(number);
        line(text, "schedule", &format!("{asked}/s due, {sent}/s sent, {answered}/s answered"));
    }
    latencies(text, run);
    if let Some(bars) = run.latency_us.as_ref().and_then(bars) {
        text.push_str(&bars);
        text.push('\n');
    }
    connections(text, run);
    agents(text, run);
    write_validity(text, run);
}

/// A row for each agent.
fn agents(text: &mut String, run: &RunSummary) {
    if run.agents.is_empty() {
        return;
    }
    let width = run.agents.iter().map(|agent| agent.name.chars().count()).max().unwrap_or_default().max(12);
    let _ = writeln!(
        text,
        "\n  {:<width$} {:>12} {:>9} {:>10} {:>9} {:>8} {:>10}  seed",
        "agent", "rate", "p99", "processor", "late by", "errors", "begin"
    );
    for agent in &run.agents {
        let AgentSummary { name, seed, rate, busiest, errors, late_ms, .. } = agent;
        if let Some(why) = &agent.lost {
            let _ = writeln!(text, "  {name:<width$} LOST: it {why}");
            for line in &agent.written {
                let _ = writeln!(text, "  {:<width$}   {line}", "");
            }
            continue;
        }
        let or_none = |time_us: Option<f64>| time_us.map_or_else(|| "-".to_owned(), time);
        let (p99, delay) = (or_none(agent.p99_us), or_none(agent.delay_us));
        let _ = writeln!(
            text,
            "  {name:<width$} {:>10}/s {p99:>9} {:>8.0} % {delay:>9} {errors:>8} {:>10}  {seed}",
            number(*rate),
            100.0 * busiest,
            format!("+{late_ms:.2} ms"),
        );
        if let Some(why) = &agent.limit {
            let _ = writeln!(text, "  {:<width$} a limit: {why}", "");
        }
    }
    text.push('\n');
}

/// The interval of the rate, or the reason why there is none.
fn spread(run: &RunSummary) -> String {
    let parts = run.batches.len();
    match run.rate_interval {
        Some(interval) if run.rate > 0.0 => {
            format!("± {:.1} %, 95 % over {parts} parts of the run", 100.0 * interval.relative())
        }
        _ if parts < BATCHES || run.answers < FEWEST_ANSWERS => format!(
            "no interval: too few samples ({} responses in {parts} parts of the run; {FEWEST_ANSWERS} in {BATCHES} needed)",
            number(run.answers as f64)
        ),
        _ if run.batches.iter().any(|batch| batch.rate == 0.0) => {
            "no interval: a part of the run has no response".to_owned()
        }
        _ => "no interval: the rate changes by plan".to_owned(),
    }
}

fn latencies(text: &mut String, run: &RunSummary) {
    let rows = LATENCIES.map(|(_, name, find)| (name, find(run)));
    if rows.iter().all(|(_, found)| found.is_none()) {
        return;
    }
    let _ = write!(text, "\n  {:<16}{:>9}", "", "mean");
    let carried =
        |name: &str| rows.iter().any(|(_, row)| row.is_some_and(|row| row.percentile(name).is_some()));
    let names: Vec<&str> = PERCENTILES.iter().map(|(name, _)| *name).filter(|name| carried(name)).collect();
    names.iter().for_each(|name| text.push_str(&format!("{name:>9}")));
    let _ = writeln!(text, "{:>9}", "max");
    for (name, distribution) in rows {
        if let Some(distribution) = distribution {
            write_row(text, name, distribution, &names);
        }
    }
    if run.schedule.is_some() {
        text.push_str(
            "  latency: from the due time of a request; from sending: as a closed loop reports it\n",
        );
    }
    text.push('\n');
}

fn write_row(text: &mut String, name: &str, row: &Distribution, names: &[&str]) {
    let _ = write!(text, "  {name:<16}{:>9}", time(row.mean));
    for name in names {
        let shown = row.percentile(name).map_or_else(|| "-".to_owned(), time);
        let _ = write!(text, "{shown:>9}");
    }
    let _ = writeln!(text, "{:>9}", time(row.max));
}

fn connections(text: &mut String, run: &RunSummary) {
    let all = &run.connections;
    let count = |count: u64| number(count as f64);
    let mut said = format!("{} made, {} open at most", count(all.made), count(all.most_at_once));
    let tried = if all.due > all.made { all.due } else { 0 };
    for (some, what) in [
        (tried, "tried"),
        (all.idle_held, "idle until the end"),
        (all.ended_idle, "ended by the server between requests"),
    ] {
        if some > 0 {
            let _ = write!(said, ", {} {what}", count(some));
        }
    }
    line(text, "connections", &said);
    if let Some(tls) = &run.tls {
        line(text, "TLS", &handshakes(tls));
    }
    if let Some(http2) = &run.http2 {
        line(text, "HTTP/2", &frames(http2));
    }
    if all.slow_answers > 0 {
        line(text, "slow", &format!("{} responses", count(all.slow_answers)));
    }
    let (starved, slots) = (count(all.never_answered), count(all.slots));
    line(text, "starved", &format!("{starved} of {slots} never got a response"));
    if let Some(index) = run.fairness {
        let index = format!("{index:.3} (Jain's index; 1 if all connections got the same number)");
        line(text, "fairness", &index);
    }
    let unfinished = match (run.unfinished, run.schedule, run.longest_wait) {
        (0, ..) => String::new(),
        (some, None, _) => format!(" ({} requests in flight at the end, not counted)", count(some)),
        (some, Some(_), wait) => {
            format!(" ({} requests unanswered at the end, the oldest after {wait:.2} s)", count(some))
        }
    };
    let statuses = run.statuses.iter();
    let statuses: Vec<_> = statuses.map(|(code, some)| format!("{code}: {}", count(*some))).collect();
    if !statuses.is_empty() {
        line(text, "statuses", &format!("{}, the warm-up included", statuses.join(", ")));
    }
    line(text, "errors", &format!("{}{unfinished}", count(run.errors())));
    for (kind, some) in &run.errors {
        let example = run.examples.get(kind).map(String::as_str).unwrap_or_default();
        line(text, &format!("  {}", kind.name()), &format!("{}, the first: {example}", count(*some)));
    }
}

fn handshakes(tls: &TlsStats) -> String {
    let mut said =
        format!("{} full handshakes, {} resumed", number(tls.full as f64), number(tls.resumed as f64));
    if tls.truncated > 0 {
        let _ = write!(said, ", {} ended without close_notify", number(tls.truncated as f64));
    }
    for (cipher, count) in &tls.ciphers {
        let _ = write!(said, "; {cipher}");
        if tls.ciphers.len() > 1 {
            let _ = write!(said, " ({})", number(*count as f64));
        }
    }
    said
}

/// The limit of streams, and the frames that ended streams and connections.
fn frames(http2: &Http2Stats) -> String {
    let mut said = match http2.least_limit {
        Some(limit) => format!("the server allows {} streams on a connection", number(limit.into())),
        None => "the server does not limit the streams of a connection".to_owned(),
    };
    for (frame, codes) in [("RST_STREAM", &http2.resets), ("GOAWAY", &http2.goaways)] {
        for (code, count) in codes {
            let _ = write!(said, "; {} {frame} with {code}", number(*count as f64));
        }
    }
    said
}

fn write_validity(text: &mut String, run: &RunSummary) {
    let LittlesLaw { counted, answered, lost } = run.little;
    let apart = 100.0 * run.little.error();
    let law =
        format!("{counted:.2} in flight; rate x latency {answered:.2}, lost {lost:.2}: {apart:.1} % apart");
    line(text, "Little's law", &law);
    let generator = &run.generator;
    let delay = generator.delay_us.as_ref().map_or_else(String::new, |delay| {
        let at = |name: &&str| Some(format!("{} at {name}, ", time(delay.percentile(name)?)));
        let shown: String = ["p50", "p99"].iter().filter_map(at).collect();
        format!(", late by {shown}{} at most", time(delay.max))
    });
    let each = generator.per_answer_us.map_or_else(String::new, |us| format!(", {us:.2} us per response"));
    let busiest = 100.0 * generator.busiest;
    line(text, "generator", &format!("{busiest:.0} % of a processor (busiest thread){each}{delay}"));
    run.notes.iter().for_each(|note| line(text, "note", note));
    run.invalid.iter().for_each(|why| line(text, "INVALID", why));
}

fn over_runs(text: &mut String, report: &LoadReport, names: &[&str]) {
    let gap = if text.is_empty() { "" } else { "\n" };
    let _ = writeln!(text, "{gap}over {} runs  geo. mean   95 % interval", report.runs.len());
    for &name in names {
        let values: Vec<f64> = report.runs.iter().filter_map(|run| metrics::value(run, name)).collect();
        let shown = |value: f64| if name == "rate" { format!("{}/s", number(value)) } else { time(value) };
        if let Some(found) = estimate::mean(&values) {
            let interval = format!("{} .. {}", shown(found.low), shown(found.high));
            let _ = writeln!(text, "  {name:<10}{:>12}   {interval}", shown(found.mean));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::record::ErrorKind;

    fn run(samples: u64) -> RunSummary {
        let times = (1..=samples).map(|at| at * 1_000);
        RunSummary {
            rate: 5_000.0,
            answers: samples,
            latency_us: Distribution::of_times(times),
            ..RunSummary::default()
        }
    }

    fn names(text: &str) -> Vec<&str> {
        text.lines().map(|line| line.trim_start().split(' ').next().unwrap_or_default()).collect()
    }

    #[test]
    fn a_run_has_eight_lines_and_a_histogram() {
        let report = LoadReport { runs: vec![run(20_000)], ..LoadReport::default() };
        let text = brief(&report);
        let eight = ["rate", "p50", "p99", "p99.9", "max", "errors", "starved", "verdict"];
        assert_eq!(names(&text)[..9], [&eight[..], &[""]].concat(), "{text}");
        assert!(names(&text)[9..].iter().all(|name| *name == "up"), "{text}");
        assert!(text.contains("  verdict   valid; 20,000 responses OK"), "{text}");
        let few = brief(&LoadReport { runs: vec![run(40)], ..LoadReport::default() });
        assert_eq!(names(&few), eight, "{few}");
        assert!(few.contains("  p99.9     -  too few samples (40; 10,000 needed)\n"), "{few}");
    }

    #[test]
    fn errors_reasons_and_bad_agents_are_in_the_short_text() {
        let mut bad = run(2_000);
        bad.errors = [(ErrorKind::Timeout, 3)].into();
        bad.examples = [(ErrorKind::Timeout, "no response".to_owned())].into();
        bad.invalid = vec!["the generator was late".to_owned()];
        bad.notes = vec!["a note".to_owned()];
        let agent = |name: &str, lost: Option<&str>, limit: Option<&str>| AgentSummary {
            name: name.to_owned(),
            lost: lost.map(str::to_owned),
            limit: limit.map(str::to_owned),
            ..AgentSummary::default()
        };
        bad.agents =
            vec![agent("a", None, None), agent("b", Some("ended"), None), agent("c", None, Some("busy"))];
        let text = brief(&LoadReport { runs: vec![bad], ..LoadReport::default() });
        for line in [
            "  errors    3: 3 timeout, the first: no response\n",
            "  verdict   INVALID: the generator was late; 2,000 responses OK in 0.00 s; note: a note\n",
            "  agent b   LOST: it ended\n",
            "  agent c   a limit: busy\n",
        ] {
            assert!(text.contains(line), "{line:?} is missing in:\n{text}");
        }
        assert!(!text.contains("agent a"), "{text}");
    }

    #[test]
    fn several_runs_are_one_table() {
        let label = Some("epoll".to_owned());
        let text = brief(&LoadReport { label, runs: vec![run(20_000); 3], ..LoadReport::default() });
        let table =
            ["epoll", "", "over", "rate", "p50", "p99", "p99.9", "max", "errors", "starved", "verdict"];
        assert_eq!(names(&text), table, "{text}");
    }

    #[test]
    fn an_interval_over_runs_that_differ_much_has_no_negative_end() {
        let run = |rate: f64| RunSummary { rate, ..RunSummary::default() };
        let report = LoadReport { runs: vec![run(5_000.0), run(12_000.0)], ..LoadReport::default() };
        let text = text(&report);
        let line = text.lines().rfind(|line| line.starts_with("  rate")).expect("two runs have an interval");
        // The logarithms are 8.517 and 9.393, and t is 12.706: 8.955 ± 5.562.
        assert_eq!(line, "  rate           7,746/s   30/s .. 2,016,492/s");
    }
}
