//! The museum in the terminal: two bars for each exhibit, before and after its correction.

use crate::measure::Measure;
use crate::plan::{PlannedExperiment, RunPlan};
use crate::record::{Blocks, Trial};
use crate::verdict::ruling::{ClaimVerdict, middle};

/// Characters of the longest bar.
const LONGEST: usize = 40;

/// The exhibits of a run, with their verdicts.
pub fn text(plan: &RunPlan, trials: &[Trial], verdicts: &[ClaimVerdict]) -> String {
    plan.experiments.iter().map(|planned| exhibit(planned, trials, verdicts)).collect::<Vec<_>>().join("\n")
}

fn exhibit(planned: &PlannedExperiment, trials: &[Trial], verdicts: &[ClaimVerdict]) -> String {
    let one = &planned.experiment;
    let mut text = format!("{} ({})\n", one.title, one.name.trim_start_matches("museum-"));
    let blocks = Blocks::of(trials, &one.name).complete(planned.cells.len());
    if let Some(measure) = one.claims.first().map(|claim| claim.measure).filter(|_| !planned.cells.is_empty())
    {
        text.push_str(&bars(&blocks, measure));
    }
    for verdict in verdicts.iter().filter(|verdict| verdict.experiment == one.name) {
        text.push_str(&format!("  {}: {}\n    {}\n", verdict.ruling, verdict.says, verdict.because));
    }
    text
}

/// Two bars from zero, as long as their medians.
fn bars(blocks: &Blocks<'_>, measure: Measure) -> String {
    let values = ["before", "after"].map(|cell| (cell, middle(&blocks.values(cell, measure))));
    let most = values.iter().filter_map(|(_, value)| *value).fold(0.0, f64::max);
    let bar = |(cell, value): (&str, Option<f64>)| {
        let length = match value {
            Some(value) if most > 0.0 => (value / most * LONGEST as f64).round() as usize,
            _ => 0,
        };
        let shown = value.map_or("no value".to_owned(), |value| measure.show(value));
        format!("  {cell:<7}{:<LONGEST$} {shown} {}", "#".repeat(length), measure.name())
            .trim_end()
            .to_owned()
            + "\n"
    };
    values.map(bar).concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::experiment::library;
    use crate::machine::environment::LabEnvironment;
    use crate::plan::Wishes;
    use crate::verdict;

    #[test]
    fn bars_have_the_proportion_of_their_medians() {
        let chosen = library::museum(&["timer-list".to_owned()]).expect("it exists");
        let plan = RunPlan::new(chosen, &Wishes::default(), &LabEnvironment::default());
        let trial = |cell: &str, block: usize, again: bool, value: f64| Trial {
            experiment: "museum-timer-list".to_owned(),
            cell: cell.to_owned(),
            block,
            control: again,
            values: BTreeMap::from([(Measure::Operation, value)]),
            ..Trial::default()
        };
        let mut trials = Vec::new();
        for block in 0..8 {
            let wobble = 1.0 + 0.01 * block as f64;
            trials.push(trial("before", block, false, 1_000.0 * wobble));
            trials.push(trial("after", block, false, 100.0));
            trials.push(trial("after", block, true, 100.0));
        }
        let planned = &plan.experiments[0];
        let blocks = Blocks::of(&trials, "museum-timer-list").complete(3);
        let text = text(&plan, &trials, &verdict::judge(planned, &blocks));
        let length = |cell: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(cell)).expect(cell);
            line.matches('#').count()
        };
        assert_eq!((length("before"), length("after")), (40, 4), "{text}");
        assert!(text.contains("HOLDS: Walking from the head") && text.contains("100 ns operation"), "{text}");
    }
}
