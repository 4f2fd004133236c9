//! `tenfold status --watch`: the page of the admin listener for a terminal, refreshed every second.

use std::fmt::Write as _;
use std::io::{IsTerminal, stdout};
use std::thread;
use std::time::{Duration, Instant};

use super::super::output::print;
use super::source::StatusSource;
use crate::status::report::{StatusReport, WorkerReport, uptime};

const EVERY: Duration = Duration::from_secs(1);
/// Moves to the top left of a terminal, and clears everything below (ECMA-48).
const CLEAR: &str = "\x1b[H\x1b[J";

/// Prints until the server ends or the reader closes the output: a screen on a terminal, otherwise a block each second.
pub(super) fn watch(source: &StatusSource) -> Result<(), String> {
    let terminal = stdout().is_terminal();
    let mut before = (Instant::now(), source.ask()?.1);
    loop {
        thread::sleep(EVERY);
        let now = (Instant::now(), source.ask()?.1);
        let shown = screen(&before.1, &now.1, now.0 - before.0);
        let text = if terminal { format!("{CLEAR}{shown}") } else { format!("{shown}\n") };
        print(text.as_bytes())?;
        before = now;
    }
}

/// The screen for the changes between two reports.
fn screen(before: &StatusReport, now: &StatusReport, time: Duration) -> String {
    let rate = |then: u64, now: u64| now.saturating_sub(then) as f64 / time.as_secs_f64();
    let mut text = String::new();
    let mut line = |words: String| {
        writeln!(text, "{words}").expect("a string takes all that is written");
    };
    let (addresses, state) = (now.listen.join(", "), now.state());
    line(format!(
        "tenfold {} on {addresses}, {}, {state}, up {}",
        now.version,
        now.engine,
        uptime(now.uptime_seconds)
    ));
    line(format!(
        "requests {:.0}/s, {:.2} MB/s, {} open connections, {:.0} refusals/s",
        rate(before.total.requests, now.total.requests),
        rate(before.total.bytes, now.total.bytes) / 1e6,
        now.total.connections.open,
        rate(refusals(before), refusals(now)),
    ));
    line(match (&before.observed, &now.observed) {
        (Some(then), Some(since)) => {
            let times = since.last_byte.since(&then.last_byte);
            let shown = |part| times.quantile(part).map_or("-".to_owned(), milliseconds);
            format!("latency  p50 {}, p90 {}, p99 {}", shown(0.5), shown(0.9), shown(0.99))
        }
        _ => "latency  not measured: the server has no admin listener (--admin)".to_owned(),
    });
    let per_second = |(code, count): (&String, &u64)| {
        let rate = rate(before.total.responses.get(code).copied().unwrap_or_default(), *count);
        (rate > 0.0).then(|| format!("{code} {rate:.0}/s"))
    };
    let statuses: Vec<_> = now.total.responses.iter().filter_map(per_second).collect();
    line(format!("statuses {}", if statuses.is_empty() { "none".to_owned() } else { statuses.join(", ") }));
    line(format!(
        "so far   {} requests, {:.1} MB, {} accepted connections, {} restarts, {} panics",
        now.total.requests,
        now.total.bytes as f64 / 1e6,
        now.total.connections.accepted,
        now.restarts,
        now.total.panics
    ));
    line(format!(
        "\n{:<8} {:>8} {:<11} {:>8} {:>12} {:>12} {:>8}",
        "worker", "process", "state", "open", "requests/s", "memory", "restarts"
    ));
    for worker in &now.workers {
        let same =
            |former: &&WorkerReport| (former.worker, former.generation) == (worker.worker, worker.generation);
        let then = before.workers.iter().find(same).map_or(0, |former| former.numbers.requests);
        line(format!(
            "{:<8} {:>8} {:<11} {:>8} {:>12.0} {:>12} {:>8}",
            worker.name(),
            worker.process.map_or("-".to_owned(), |process| process.to_string()),
            worker.state,
            worker.numbers.connections.open,
            rate(then, worker.numbers.requests),
            worker.memory.map_or("-".to_owned(), |bytes| format!("{:.1} MiB", bytes as f64 / 1_048_576.0)),
            worker.restarts
        ));
    }
    let mut facts = String::new();
    now.write_facts(&mut facts).expect("a string takes all that is written");
    if facts.is_empty() { text } else { format!("{text}\n{facts}") }
}

fn refusals(report: &StatusReport) -> u64 {
    report.total.refusals.values().fold(0, |sum, count| sum.saturating_add(*count))
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.3} ms", seconds * 1e3)
}
