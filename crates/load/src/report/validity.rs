//! The validity of a run's numbers. The rules are fixed before any run.

use crate::measure::record::ErrorKind;
use crate::plan::LoadPlan;
use crate::report::output::units;
use crate::report::summary::RunSummary;

/// The part of a processor above which a thread is saturated.
const BUSY: f64 = 0.95;
/// The part of the scheduled rate below which a run has fallen behind.
const BEHIND: f64 = 0.97;
/// The largest part of a reported latency that may be the generator's own delay.
const MOST_OWN_DELAY: f64 = 0.5;
/// The part of a latency above which a note reports that delay. If the delay also exceeds [`LONG_DELAY`], the numbers
/// are invalid.
const OWN_DELAY: f64 = 0.1;
/// A delay in microseconds that timer precision does not explain.
const LONG_DELAY: f64 = 1_000.0;
/// The part of failed requests above which a note reports them.
const MANY_FAILED: f64 = 0.1;
/// The largest relative difference between the two sides of Little's law.
const LITTLE: f64 = 0.05;

/// Adds the reasons why the numbers are invalid, and the notes on their interpretation.
pub(crate) fn judge(plan: &LoadPlan, summary: &mut RunSummary) {
    summary.invalid = reasons(summary);
    summary.notes = notes(plan, summary);
}

fn reasons(summary: &RunSummary) -> Vec<String> {
    let mut all = Vec::new();
    let generator = &summary.generator;
    let wants_answers = summary.connections.slots > 0 && !summary.interrupted;
    if wants_answers && summary.answers == 0 && summary.connections.shares.jain().is_none() {
        let only_statuses = summary.errors.keys().all(|kind| *kind == ErrorKind::Status);
        let hint = match only_statuses && !summary.errors.is_empty() {
            true => "; if these statuses are expected, name them with --expect-status",
            false => "",
        };
        all.push(format!("no response was OK{hint}"));
    }
    if let Some(schedule) = summary.schedule {
        if generator.busiest > BUSY && schedule.sent < BEHIND * schedule.asked {
            all.push(format!(
                "the generator was the limit: {:.0} of {:.0} requests/s were sent, and its busiest thread used {:.0} % of a processor; give it more --threads",
                schedule.sent,
                schedule.asked,
                100.0 * generator.busiest
            ));
        }
        let too_late = |delay: f64, latency: f64| {
            delay > MOST_OWN_DELAY * latency || (delay > LONG_DELAY && delay > OWN_DELAY * latency)
        };
        let late = own_delay(summary, too_late);
        all.extend(late.map(|why| format!("the generator was late: {why}; give it a processor of its own")));
    }
    for (kind, mend) in [
        (
            ErrorKind::NoPort,
            "this machine ran out of ports towards the server; spread connections with --source",
        ),
        (
            ErrorKind::NoDescriptor,
            "the generator ran out of descriptors; raise `ulimit -n` or use --processes",
        ),
    ] {
        if summary.errors.contains_key(&kind) {
            all.push(mend.to_owned());
        }
    }
    let little = summary.little;
    if little.error() > LITTLE {
        all.push(format!(
            "Little's law does not hold: {:.2} requests were in flight, and rate times latency is {:.2}",
            little.counted,
            little.answered + little.lost
        ));
    }
    all
}

/// Finds the highest percentile, or else the mean, at which the generator's own delay is too large a part of the
/// latency.
fn own_delay(summary: &RunSummary, is_too_great: impl Fn(f64, f64) -> bool) -> Option<String> {
    let (delay, latency) = (summary.generator.delay_us.as_ref()?, summary.latency_us.as_ref()?);
    let at = |name: &'static str| Some((name, delay.percentile(name)?, latency.percentile(name)?));
    let carried = ["p99", "p95", "p90", "p75", "p50"].into_iter().filter_map(at);
    let mut reported = carried.chain([("the mean", delay.mean, latency.mean)]);
    let (name, delay, latency) = reported.find(|(_, delay, latency)| is_too_great(*delay, *latency))?;
    let (delay, latency) = (units::time(delay), units::time(latency));
    Some(format!("at {name} its own delay is {delay}, and the latency, which contains it, is {latency}"))
}

fn notes(plan: &LoadPlan, summary: &RunSummary) -> Vec<String> {
    let mut all = Vec::new();
    all.extend(starved(summary).map(|why| format!("{why}: latencies are those of the others")));
    all.extend(failed(summary).map(|why| format!("{why}: rate and latencies are those of the others")));
    all.extend(redirected(summary));
    match summary.schedule {
        None if plan.hold.is_none() && summary.generator.busiest > BUSY => all.push(format!(
            "the generator's busiest thread used {:.0} % of a processor: the rate may be its own limit, and is a lower bound of the server's",
            100.0 * summary.generator.busiest
        )),
        Some(schedule) if schedule.answered < BEHIND * schedule.asked && summary.generator.busiest <= BUSY => {
            all.push(format!(
                "the server did not keep up with {:.0} requests/s: latencies grow with the length of the run",
                schedule.asked
            ));
        }
        _ => {}
    }
    if summary.schedule.is_some() && !summary.invalid.iter().any(|why| why.contains("the generator was late"))
    {
        let noted = own_delay(summary, |delay, latency| delay > OWN_DELAY * latency);
        all.extend(noted.map(|why| format!("a part of the latency is the generator's: {why}")));
    }
    all
}

/// The reason why the latencies describe only some connections or requests, if there is one.
pub(crate) fn without_latency(summary: &RunSummary) -> Option<String> {
    starved(summary).or_else(|| failed(summary))
}

/// Connections without a response, if there are any.
fn starved(summary: &RunSummary) -> Option<String> {
    let connections = &summary.connections;
    let unconnected = match connections.never_connected {
        0 => String::new(),
        count => format!(" ({count} never connected)"),
    };
    (connections.never_answered > 0).then(|| {
        format!(
            "{} of {} connections never got a response{unconnected}",
            connections.never_answered, connections.slots
        )
    })
}

/// The part of failed requests, if it is above [`MANY_FAILED`].
fn failed(summary: &RunSummary) -> Option<String> {
    let failed = summary.errors();
    let share = failed as f64 / (failed + summary.answers).max(1) as f64;
    (summary.answers > 0 && share > MANY_FAILED)
        .then(|| format!("{:.1} % of the requests failed", 100.0 * share))
}

/// A note for a run in which every response was a redirect.
fn redirected(summary: &RunSummary) -> Option<String> {
    let redirects: u64 =
        [301, 302, 303, 307, 308].iter().filter_map(|status| summary.statuses.get(status)).sum();
    let are_all = summary.answers > 0 && redirects >= summary.statuses.values().sum::<u64>();
    are_all.then(|| {
        "every response was a redirect, and none was followed: name the URL that it leads to".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::statistics::fairness::FairnessSums;
    use crate::report::summary::{Distribution, Generator, LittlesLaw, Schedule};

    fn summary() -> RunSummary {
        let mut summary = RunSummary { answers: 1_000, ..RunSummary::default() };
        let mut shares = FairnessSums::default();
        shares.push(1_000);
        summary.connections.shares = shares;
        summary.connections.slots = 1;
        summary.little = LittlesLaw { counted: 2.0, answered: 1.9, lost: 0.1 };
        summary
    }

    #[test]
    fn the_generators_limit_makes_a_schedule_invalid() {
        let mut limited = summary();
        limited.schedule = Some(Schedule { asked: 1_000.0, sent: 900.0, answered: 900.0 });
        assert!(reasons(&limited).is_empty(), "the server was the limit");
        limited.generator = Generator { busiest: 0.99, ..Generator::default() };
        assert!(reasons(&limited)[0].contains("the generator was the limit"));
    }

    #[test]
    fn a_late_generator_makes_a_short_schedule_invalid() {
        let times = |count: usize, microseconds: u64| {
            Distribution::of_times(std::iter::repeat_n(microseconds * 1_000, count))
        };
        let late = |count: usize, delay: u64, latency: u64| {
            let mut late = summary();
            late.schedule = Some(Schedule { asked: 200.0, sent: 200.0, answered: 200.0 });
            late.latency_us = times(count, latency);
            late.generator.delay_us = times(count, delay);
            reasons(&late)
        };
        assert!(late(400, 78, 147)[0].contains("at p95 its own delay is 78"));
        assert!(late(5, 78, 147)[0].contains("at the mean its own delay"), "no percentile is carried");
        assert!(late(400, 3_000, 20_000)[0].contains("the generator was late"));
        assert!(late(400, 30, 147).is_empty() && late(400, 1_500, 20_000).is_empty());
    }

    #[test]
    fn errors_and_redirects_are_noted() {
        let mut busy = summary();
        busy.statuses = [(200, 100), (503, 900)].into();
        busy.errors.insert(ErrorKind::Status, 9 * busy.answers);
        assert_eq!(failed(&busy).as_deref(), Some("90.0 % of the requests failed"));
        let mut moved = summary();
        moved.statuses = [(301, 60), (308, 40)].into();
        assert!(redirected(&moved).is_some());
        moved.statuses.insert(200, 1);
        assert_eq!((redirected(&moved), failed(&moved)), (None, None));
    }

    #[test]
    fn impossible_numbers_are_invalid() {
        assert!(reasons(&summary()).is_empty());
        let mut wrong = summary();
        wrong.little.answered = 1.0;
        assert!(reasons(&wrong)[0].contains("Little"));
        let mut none = summary();
        (none.answers, none.connections.shares) = (0, FairnessSums::default());
        assert_eq!(reasons(&none), ["no response was OK"]);
        none.errors.insert(ErrorKind::Status, 5);
        assert!(reasons(&none)[0].contains("--expect-status"));
        none.errors.insert(ErrorKind::NoDescriptor, 5);
        assert_eq!(reasons(&none)[0], "no response was OK");
        let mut ports = summary();
        ports.errors.insert(ErrorKind::NoPort, 1);
        assert!(reasons(&ports)[0].contains("--source"));
    }
}
