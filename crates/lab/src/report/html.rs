//! The report as one page: verdicts, then each experiment with all its trials. The page has no script and loads
//! nothing.

use std::fmt::Write;

use tenfold_chart::{Bar, LatencyCurve, bars, document, escape, figure, latencies};

use crate::experiment::claim::PublishedClaim;
use crate::measure::{Measure, show_count, show_number};
use crate::plan::PlannedExperiment;
use crate::record::{Blocks, Trial};
use crate::report::curves;
use crate::report::models;
use crate::report::results::RunResults;
use crate::report::tables::here;
use crate::report::topology;
use crate::statistics::effect::Effect;
use crate::verdict::ruling::{ClaimVerdict, Ruling, middle, shown};

const PERCENTILES: [&str; 5] = ["p50", "p90", "p99", "p99.9", "max"];

pub(super) fn page(results: &RunResults) -> String {
    let mut page = String::new();
    first_screen(&mut page, results);
    for planned in &results.plan.experiments {
        experiment(&mut page, results, planned);
    }
    noise(&mut page, results);
    if let Some(hosts) = &results.hosts {
        page.push_str(&topology::section(&results.plan, hosts));
    }
    environment(&mut page, results);
    document("Tenfold lab: verdicts", &page)
}

fn class(ruling: Ruling) -> &'static str {
    match ruling {
        Ruling::Holds => "holds",
        Ruling::Reversed => "reversed",
        Ruling::NoDifference => "same",
        Ruling::Artefact => "artefact",
        Ruling::Inconclusive | Ruling::NotTestableHere => "open",
    }
}

fn badge(ruling: Ruling) -> String {
    format!("<span class=\"badge {}\">{ruling}</span>", class(ruling))
}

fn first_screen(page: &mut String, results: &RunResults) {
    let environment = &results.environment;
    let counts: Vec<String> =
        results.counts().into_iter().map(|(ruling, count)| format!("{count} {}", badge(ruling))).collect();
    let _ = write!(
        page,
        "<h1>Which published claims hold {}?</h1>\
         <p class=\"facts\">{}, {}, Linux {} · profile {} · seed {} · {}</p>{}<p class=\"counts\">{}</p>\
         <table class=\"verdicts\"><thead><tr><th>Claim</th><th>Published</th><th>Here, with 95 % interval</th>\
         <th>Verdict</th></tr></thead><tbody>",
        if results.hosts.is_some() { "on these machines" } else { "on this machine" },
        escape(&environment.processor),
        show_count(environment.processors.len(), "processor"),
        escape(&environment.kernel),
        results.plan.profile.name(),
        results.plan.seed,
        show_count(results.trials.len(), "trial"),
        models::part(results),
        counts.join(" "),
    );
    let mut named = "";
    for verdict in &results.verdicts {
        if verdict.experiment != named {
            named = &verdict.experiment;
            let planned = results.plan.experiments.iter().find(|one| one.experiment.name == named);
            let title = planned.map_or("", |planned| planned.experiment.title.as_str());
            let _ = write!(page, "<tr class=\"group\"><th colspan=\"4\">{}</th></tr>", escape(title));
        }
        let _ = write!(
            page,
            "<tr><td><a href=\"#{}\">{}</a></td><td data-name=\"Published\">{}</td><td data-name=\"Here\">{}</td>\
             <td>{}<br><small>{}</small></td></tr>",
            escape(&verdict.experiment),
            escape(&verdict.says),
            escape(&verdict.published),
            escape(&here(verdict)),
            badge(verdict.ruling),
            escape(&verdict.because),
        );
    }
    page.push_str("</tbody></table>");
}

fn experiment(page: &mut String, results: &RunResults, planned: &PlannedExperiment) {
    let one = &planned.experiment;
    let blocks = results.blocks(&one.name);
    let _ = write!(
        page,
        "<section id=\"{}\"><h2>{}</h2><p class=\"facts\">{} · {}</p><dl><dt>Original</dt><dd>{}</dd>\
         <dt>Here</dt><dd>{}</dd>",
        escape(&one.name),
        escape(&one.title),
        escape(&one.name),
        escape(&one.source),
        escape(&one.setting),
        escape(&one.scaled)
    );
    for deviation in &one.deviations {
        let _ = write!(page, "<dt>Deviation</dt><dd>{}</dd>", escape(deviation));
    }
    let _ = write!(
        page,
        "<dt>Blocks</dt><dd>{} complete, {} with a flag for noise; margin ±{:.0} %</dd></dl>",
        blocks.len(),
        blocks.flagged(),
        planned.margin * 100.0
    );
    for (claim, verdict) in
        one.claims.iter().zip(results.verdicts.iter().filter(|found| found.experiment == one.name))
    {
        claim_evidence(page, claim, verdict);
    }
    if !blocks.is_empty() {
        charts(page, planned, &blocks);
        cells(page, planned, &blocks);
        runs(page, results, planned);
    }
    let _ = write!(
        page,
        "<p>Again: <code>{} --seed {}</code></p></section>",
        escape(&again(results, planned)),
        results.plan.seed
    );
}

/// The command that repeats an experiment, without the seed.
fn again(results: &RunResults, planned: &PlannedExperiment) -> String {
    let (one, profile) = (&planned.experiment, results.plan.profile.name());
    match (one.name.strip_prefix("museum-"), one.source.starts_with("tenfold ")) {
        (Some(exhibit), _) => format!("tenfold lab museum {exhibit} --profile {profile}"),
        // The source of a study is its command.
        (None, true) => one.source.clone(),
        (None, false) => format!("tenfold lab run --only {} --profile {profile}", one.name),
    }
}

fn claim_evidence(page: &mut String, claim: &PublishedClaim, verdict: &ClaimVerdict) {
    let _ = write!(
        page,
        "<article><p>{} <b>{}</b></p><p>{}</p><p><small>Rule: {}. ",
        badge(verdict.ruling),
        escape(&verdict.says),
        escape(&verdict.because),
        escape(&verdict.rule)
    );
    if let Some(effect) = &verdict.effect {
        let kind = if verdict.is_ratio { "Ratio" } else { "Value" };
        let _ = write!(page, "{kind}: {}, {}. ", shown(effect), show_count(effect.blocks, "block"));
        if let Some((low, high)) = effect.bootstrap {
            let _ = write!(page, "Bootstrap: {}–{}. ", show_number(low), show_number(high));
        }
    }
    if let Some(p) = verdict.p {
        let corrected = if claim.primary { "p after Holm's correction" } else { "p, uncorrected" };
        match p < 0.001 {
            true => page.push_str(&format!("{corrected}: below 0.001. ")),
            false => page.push_str(&format!("{corrected}: {p:.3}. ")),
        }
    }
    if !verdict.ours.is_empty() {
        let _ = write!(page, "Medians: {}. ", escape(&verdict.ours));
    }
    let published = if verdict.published.is_empty() { "no number" } else { &verdict.published };
    let _ = write!(page, "Published: {}.</small></p></article>", escape(published));
}

/// The measures of the claims, each once, in the order of claims.
fn claimed(planned: &PlannedExperiment) -> Vec<Measure> {
    let mut all: Vec<Measure> = Vec::new();
    for claim in &planned.experiment.claims {
        if !all.contains(&claim.measure) {
            all.push(claim.measure);
        }
    }
    all
}

fn charts(page: &mut String, planned: &PlannedExperiment, blocks: &Blocks<'_>) {
    page.push_str("<div class=\"charts\">");
    let cells = &planned.experiment.cells;
    for measure in claimed(planned) {
        let ours: Vec<Bar> = planned
            .cells
            .iter()
            .filter(|planned| !planned.control)
            .filter_map(|planned| {
                let runs = blocks.values(&planned.cell, measure);
                let value = middle(&runs)?;
                let interval = Effect::of(&runs).map(|effect| (effect.low, effect.high));
                Some(Bar { label: planned.cell.clone(), value, shown: measure.show(value), interval, runs })
            })
            .collect();
        if !ours.is_empty() {
            let title = format!("Here: {}", measure.about().trim_end_matches('.').to_lowercase());
            page.push_str(&figure(&title, &bars(&title, None, &ours)));
        }
        for chart in curves::charts(planned, blocks, measure) {
            page.push_str(&chart);
        }
    }
    let mut original: Vec<Measure> = cells.values().flat_map(|cell| cell.original.keys().copied()).collect();
    original.sort_unstable();
    original.dedup();
    for measure in original {
        let published = cells.iter().filter_map(|(name, cell)| {
            let value = *cell.original.get(&measure)?;
            Some(Bar { label: name.clone(), value, shown: measure.show(value), ..Bar::default() })
        });
        let title = format!("Published: {}", measure.about().trim_end_matches('.').to_lowercase());
        page.push_str(&figure(&title, &bars(&title, None, &published.collect::<Vec<_>>())));
    }
    let curves: Vec<LatencyCurve> = planned
        .cells
        .iter()
        .filter(|planned| !planned.control)
        .map(|planned| LatencyCurve {
            label: planned.cell.clone(),
            points: percentiles(blocks, &planned.cell),
        })
        .filter(|curve| curve.points.len() > 1)
        .collect();
    if !curves.is_empty() {
        let title = "Here: latency by percentile, median of blocks";
        page.push_str(&figure(title, &latencies(title, &PERCENTILES, &curves)));
    }
    page.push_str("</div>");
}

fn percentiles(blocks: &Blocks<'_>, cell: &str) -> Vec<(String, f64)> {
    let of = |name: &&str| {
        let value = |trial: &&Trial| trial.latencies.get(*name).filter(|_| trial.cell == cell).copied();
        let all: Vec<f64> = blocks.iter().flat_map(|(_, trials)| trials.iter().filter_map(value)).collect();
        middle(&all).map(|microseconds| ((*name).to_owned(), microseconds / 1e3))
    };
    PERCENTILES.iter().filter_map(of).collect()
}

/// The resources of each cell, as medians over blocks.
fn cells(page: &mut String, planned: &PlannedExperiment, blocks: &Blocks<'_>) {
    let measured: Vec<Measure> = Measure::ALL
        .iter()
        .copied()
        .filter(|measure| planned.cells.iter().any(|cell| !blocks.values(&cell.cell, *measure).is_empty()))
        .collect();
    page.push_str(
        "<details><summary>Cells: every measure, medians over blocks</summary>\
         <div class=\"wide\" tabindex=\"0\"><table><thead><tr><th>cell</th>",
    );
    for measure in &measured {
        let _ = write!(page, "<th title=\"{}\">{}</th>", escape(measure.about()), measure.name());
    }
    page.push_str("</tr></thead><tbody>");
    for planned_cell in planned.cells.iter().filter(|cell| !cell.control) {
        let about = planned.experiment.cells.get(&planned_cell.cell).map_or("", |cell| cell.about.as_str());
        let _ =
            write!(page, "<tr><td>{}<br><small>{}</small></td>", escape(&planned_cell.cell), escape(about));
        for measure in &measured {
            let value = middle(&blocks.values(&planned_cell.cell, *measure));
            let _ = write!(
                page,
                "<td class=\"number\">{}</td>",
                value.map(|value| measure.show(value)).unwrap_or_default()
            );
        }
        page.push_str("</tr>");
    }
    page.push_str("</tbody></table></div></details>");
}

fn runs(page: &mut String, results: &RunResults, planned: &PlannedExperiment) {
    let measures = claimed(planned);
    let all: Vec<&Trial> =
        results.trials.iter().filter(|trial| trial.experiment == planned.experiment.name).collect();
    let _ = write!(
        page,
        "<details><summary>Every run: {}, in the order in which they were made</summary>\
         <div class=\"wide\" tabindex=\"0\"><table>\
         <thead><tr><th>block</th><th>attempt</th><th>cell</th>",
        all.len()
    );
    for measure in &measures {
        let _ = write!(page, "<th>{}</th>", measure.name());
    }
    page.push_str("<th>errors</th><th>remarks</th></tr></thead><tbody>");
    for trial in &all {
        let control = if trial.control { " (control)" } else { "" };
        let _ = write!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}{control}</td>",
            trial.block + 1,
            trial.attempt + 1,
            escape(&trial.cell)
        );
        for measure in measures.iter().chain([&Measure::Errors]) {
            let value = trial.values.get(measure).map(|value| measure.show(*value)).unwrap_or_default();
            let _ = write!(page, "<td class=\"number\">{value}</td>");
        }
        let remarks =
            trial.failed.iter().map(|why| format!("FAILED: {why}")).chain(trial.flags.iter().cloned());
        let remarks: Vec<String> = remarks.chain(trial.notes.iter().cloned()).collect();
        let _ = write!(page, "<td>{}</td></tr>", escape(&remarks.join("; ")));
    }
    page.push_str("</tbody></table></div></details><details><summary>The command of each cell</summary>");
    for planned_cell in planned.cells.iter().filter(|cell| !cell.control) {
        if let Some(trial) =
            all.iter().find(|trial| trial.cell == planned_cell.cell && !trial.server.is_empty())
        {
            let _ = write!(
                page,
                "<p><b>{}</b></p><pre tabindex=\"0\">{}\ntenfold {}</pre>",
                escape(&planned_cell.cell),
                escape(&trial.server.join(" ")),
                escape(&trial.client.join(" "))
            );
        }
    }
    let _ = write!(
        page,
        "</details><details><summary>The file of this experiment</summary><pre tabindex=\"0\">{}</pre></details>",
        escape(&planned.experiment.text)
    );
}

fn noise(page: &mut String, results: &RunResults) {
    page.push_str(
        "<section id=\"noise\"><h2>Noise: each experiment's reference against itself</h2>\
         <p>The same cell ran twice in each block. An interval that contains 1 is what no difference looks like here.</p>\
         <div class=\"wide\" tabindex=\"0\"><table><thead><tr><th>experiment</th><th>cell</th><th>measure</th>\
         <th>ratio</th><th>contains 1</th></tr></thead><tbody>",
    );
    for control in &results.controls {
        let covers = if control.effect.covers(1.0) { "yes" } else { "no" };
        let _ = write!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{covers}</td></tr>",
            escape(&control.experiment),
            escape(&control.cell),
            control.measure.name(),
            shown(&control.effect)
        );
    }
    page.push_str("</tbody></table></div></section>");
}

fn environment(page: &mut String, results: &RunResults) {
    let environment = &results.environment;
    page.push_str("<section id=\"environment\"><h2>Environment</h2><dl>");
    let mut row = |name: &str, value: &str| {
        let _ = write!(page, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
    };
    let joined = |map: &std::collections::BTreeMap<String, String>| {
        map.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("; ")
    };
    row("Tenfold", &environment.version);
    row("Kernel", &environment.kernel);
    row("Processor", &environment.processor);
    row("Servers ran on", &format!("{:?}", results.plan.server_processors));
    row("Clients ran on", &format!("{:?}", results.plan.client_processors));
    row("Memory", &format!("{} MB", environment.memory_mb));
    row("Load before", &environment.load);
    row("Descriptors", &environment.descriptors);
    row("Peers", &joined(&environment.peers));
    row("Kernel settings", &joined(&environment.sysctls));
    row("Mitigations", &joined(&environment.mitigations));
    page.push_str("</dl></section>");
}
