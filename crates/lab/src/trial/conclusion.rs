//! The values of a trial, from the results of its load and from its effects on the subject.

use std::collections::BTreeMap;

use tenfold_load::RunSummary;

use crate::experiment::subject::Workload;
use crate::machine::processes::Resources;
use crate::measure::Measure;
use crate::record::Trial;
use crate::trial::host::SubjectUse;

/// Adds the results of a load and its effects to a trial.
pub(super) fn conclude(
    load: &Workload,
    loaded: &RunSummary,
    used: SubjectUse,
    trial: &mut Trial,
) -> Result<(), String> {
    if let Some(calls) = &used.calls {
        return traced(loaded, calls, trial);
    }
    trial.flags = used.flags;
    if let Some(why) = used.ended {
        return Err(why);
    }
    trial.notes.clone_from(&loaded.notes);
    if let Some(latency) = &loaded.latency_us {
        trial.latencies.clone_from(&latency.percentiles);
        trial.latencies.extend([("max".to_owned(), latency.max), ("mean".to_owned(), latency.mean)]);
    }
    trial.values = values(loaded, &used.resources);
    if load.page.is_some() {
        trial.values.insert(Measure::Page, loaded.elapsed * 1e3 / f64::from(load.pages()));
    }
    trial.values.extend(used.events.into_iter().map(|(event, count)| (event, count as f64)));
    trial.values.extend(used.pss.map(|kilobytes| (Measure::Pss, kilobytes as f64)));
    judge(load, loaded, trial)
}

/// The responses of the whole run, including the warm-up.
fn responses(loaded: &RunSummary) -> u64 {
    loaded.answers + loaded.warm_up.answers
}

/// Adds the values of a trial under a tracer. The tracer inflates all other values, so they are left out.
fn traced(loaded: &RunSummary, calls: &BTreeMap<String, u64>, trial: &mut Trial) -> Result<(), String> {
    let responses = responses(loaded);
    if responses == 0 {
        return Err("no response arrived under the tracer".to_owned());
    }
    let each = |count: u64| count as f64 / responses as f64;
    let options = calls.get("setsockopt").copied().unwrap_or_default();
    trial.values.insert(Measure::Calls, each(calls.values().sum()));
    trial.values.insert(Measure::SocketOptions, each(options));
    trial.calls = calls.iter().map(|(name, count)| (name.clone(), each(*count))).collect();
    let named: Vec<String> = trial.calls.iter().map(|(name, count)| format!("{name} {count:.2}")).collect();
    trial.notes.push(format!("calls for each response: {}", named.join(", ")));
    Ok(())
}

/// Fails a trial in which requests failed, unless its cell allows it.
fn judge(load: &Workload, loaded: &RunSummary, trial: &mut Trial) -> Result<(), String> {
    if load.may_fail {
        return Ok(());
    }
    trial.flags.extend(loaded.invalid.iter().map(|why| format!("load: {why}")));
    match (loaded.errors(), responses(loaded)) {
        (0, 0) => Err("no response arrived".to_owned()),
        (0, _) => Ok(()),
        (count, all) => {
            let kinds = loaded.errors.iter();
            let kinds = kinds.map(|(kind, count)| format!("{count} {}", kind.name()));
            let kinds: Vec<String> = kinds.collect();
            Err(format!("{count} requests failed, {all} did not: {}", kinds.join(", ")))
        }
    }
}

fn values(loaded: &RunSummary, used: &Resources) -> BTreeMap<Measure, f64> {
    let responses = responses(loaded) as f64;
    let mut values = BTreeMap::from([
        (Measure::Rate, loaded.rate),
        (Measure::Bytes, loaded.bytes as f64 / loaded.measured.max(f64::MIN_POSITIVE) / 1e6),
        (Measure::Memory, used.memory as f64),
        (Measure::Responses, responses),
        (Measure::Errors, loaded.errors() as f64),
        (Measure::Unanswered, loaded.connections.never_answered as f64),
    ]);
    if responses > 0.0 {
        let each = |seconds: f64| seconds * 1e6 / responses;
        values.insert(Measure::Cpu, each(used.cpu));
        values.insert(Measure::User, each(used.user));
        values.insert(Measure::System, each(used.system));
        values.insert(Measure::Switches, used.switches as f64 / responses);
        values.insert(Measure::Faults, used.faults as f64 / responses);
        if let Some(latency) = &loaded.latency_us {
            values.insert(Measure::Latency, latency.mean);
            values.insert(Measure::Waiting, latency.mean - each(used.cpu));
        }
    }
    values.extend(loaded.fairness.map(|fairness| (Measure::Fairness, fairness)));
    if let Some(latency) = &loaded.latency_us {
        values.insert(Measure::Max, latency.max / 1e3);
        for (measure, percentile) in [(Measure::P50, "p50"), (Measure::P99, "p99")] {
            values.extend(latency.percentile(percentile).map(|microseconds| (measure, microseconds / 1e3)));
        }
    }
    values
}
