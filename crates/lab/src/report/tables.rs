//! Verdicts as JSON, trials as CSV, and a summary in Markdown.

use std::fmt::Write;

use serde_json::json;

use crate::measure::{Measure, show_count};
use crate::report::results::RunResults;
use crate::report::topology;
use crate::verdict::ruling::{ClaimVerdict, shown};

/// Verdicts, noise and environment as JSON.
pub(super) fn verdicts(results: &RunResults) -> String {
    let value = json!({
        "seed": results.plan.seed,
        "profile": results.plan.profile,
        "environment": results.environment,
        "verdicts": results.verdicts,
        "controls": results.controls,
    });
    format!("{value:#}\n")
}

/// A line for each trial.
pub(super) fn csv(results: &RunResults) -> String {
    let measures = Measure::ALL.iter().map(|measure| measure.name()).collect::<Vec<_>>().join(",");
    let mut text = format!("experiment,cell,control,block,attempt,order,at,failed,flags,{measures}\n");
    for trial in &results.trials {
        let quoted = |words: &str| format!("\"{}\"", words.replace('"', "\"\""));
        let _ = write!(
            text,
            "{},{},{},{},{},{},{},{},{}",
            quoted(&trial.experiment),
            quoted(&trial.cell),
            trial.control,
            trial.block,
            trial.attempt,
            trial.order,
            trial.at,
            quoted(trial.failed.as_deref().unwrap_or_default()),
            quoted(&trial.flags.join("; ")),
        );
        for measure in Measure::ALL {
            let value = trial.values.get(measure).map(ToString::to_string).unwrap_or_default();
            let _ = write!(text, ",{value}");
        }
        text.push('\n');
    }
    text
}

/// A few lines of Markdown.
pub(super) fn summary(results: &RunResults) -> String {
    let environment = &results.environment;
    let counts: Vec<String> =
        results.counts().into_iter().map(|(ruling, count)| format!("{count} {ruling}")).collect();
    let mut text = format!(
        "**tenfold lab**: {} of {}. {}, {}, Linux {}, profile {}, seed {}.\n\n",
        counts.join(", "),
        show_count(results.verdicts.len(), "claim"),
        environment.processor,
        show_count(environment.processors.len(), "processor"),
        environment.kernel,
        results.plan.profile.name(),
        results.plan.seed,
    );
    if let Some(hosts) = &results.hosts {
        text.push_str(&topology::summary(&results.plan, hosts));
    }
    text.push_str("| claim | published | here | verdict |\n| --- | --- | --- | --- |\n");
    for verdict in &results.verdicts {
        let cells = [&verdict.says, &verdict.published, &here(verdict)].map(|cell| cell.replace('|', "\\|"));
        let _ = writeln!(text, "| {} | {} |", cells.join(" | "), verdict.ruling);
    }
    text
}

/// The ratio or the value with its interval; without an interval, the values.
pub(super) fn here(verdict: &ClaimVerdict) -> String {
    let measure = verdict.measure;
    match &verdict.effect {
        Some(effect) if verdict.is_ratio => format!("{} × {}", shown(effect), measure.name()),
        Some(effect) => format!("{} {}", shown(effect), measure.unit()).trim_end().to_owned(),
        None => verdict.ours.clone(),
    }
}
