//! Verdicts: the rules of claims, applied to the blocks of an experiment.

pub mod ruling;

use tenfold_load::statistics::holm;
use tenfold_load::statistics::sample::ALPHA;

use crate::experiment::claim::{CellPair, PublishedClaim, Side, VerdictRule};
use crate::measure::{Measure, show_count, show_number};
use crate::plan::PlannedExperiment;
use crate::record::Blocks;
use crate::statistics::decision::{Decision, Direction, decide};
use crate::statistics::effect::{Effect, FEWEST_BLOCKS, p_value};
use crate::statistics::stages;
use crate::verdict::ruling::{ClaimVerdict, ControlResult, Ruling, middle, shown};

/// Verdicts of all claims of an experiment.
pub fn judge(planned: &PlannedExperiment, blocks: &Blocks<'_>) -> Vec<ClaimVerdict> {
    let claims = &planned.experiment.claims;
    let primary = (0..claims.len())
        .filter(|number| claims[*number].primary && !planned.untestable.contains_key(number));
    let with_p = primary.filter_map(|number| Some((number, claim_p_value(&claims[number], blocks)?)));
    let (numbers, p_values): (Vec<usize>, Vec<f64>) = with_p.unzip();
    let adjusted: Vec<(usize, f64)> = numbers.into_iter().zip(holm::adjust(&p_values)).collect();
    let one = |(number, claim): (usize, &PublishedClaim)| {
        let p = adjusted.iter().find(|(at, _)| *at == number).map(|(_, p)| *p);
        Judge { planned, blocks, claim, p: p.or_else(|| claim_p_value(claim, blocks)) }.verdict(number)
    };
    claims.iter().enumerate().map(one).collect()
}

/// The control of an experiment, if it has one: a result for each measure of its claims.
pub fn controls(planned: &PlannedExperiment, blocks: &Blocks<'_>) -> Vec<ControlResult> {
    let Some(control) = planned.cells.iter().find(|planned| planned.control) else { return Vec::new() };
    let experiment = &planned.experiment;
    let mut measures: Vec<Measure> = experiment
        .claims
        .iter()
        .filter(|claim| !claim.pairs().is_empty())
        .map(|claim| claim.measure)
        .collect();
    measures.sort_unstable();
    measures.dedup();
    let result = |measure: Measure| {
        let noise = blocks.paired((&control.cell, true), (&control.cell, false), measure);
        let effect = Effect::of(&noise.map(|(second, first)| second / first).collect::<Vec<_>>())?;
        Some(ControlResult {
            experiment: experiment.name.clone(),
            cell: control.cell.clone(),
            measure,
            effect,
        })
    };
    measures.into_iter().filter_map(result).collect()
}

/// The number of blocks that an experiment needs, given the pilot blocks.
pub fn needed_blocks(planned: &PlannedExperiment, blocks: &Blocks<'_>) -> usize {
    let claims = &planned.experiment.claims;
    let testable = || (0..claims.len()).filter(|number| !planned.untestable.contains_key(number));
    let primary = testable().filter(|number| claims[*number].primary).count();
    let of_claim = |number: usize| {
        let claim = &claims[number];
        let pilots = claim.pairs().into_iter().map(|pair| blocks.ratios(&pair.of, &pair.to, claim.measure));
        pilots.map(|pilot| stages::blocks(&pilot, planned.margin, primary)).max()
    };
    testable().filter_map(of_claim).max().unwrap_or(stages::PILOT_BLOCKS)
}

/// Whether any claim needs an interval; counts do not.
pub fn needs_intervals(planned: &PlannedExperiment) -> bool {
    let counts = |claim: &PublishedClaim| {
        matches!(claim.rule, VerdictRule::Count { .. } | VerdictRule::FirstFailure { .. })
    };
    let claims = planned.experiment.claims.iter().enumerate();
    claims.filter(|(number, _)| !planned.untestable.contains_key(number)).any(|(_, claim)| !counts(claim))
}

/// The p-value of a claim without correction; `None` for counts.
fn claim_p_value(claim: &PublishedClaim, blocks: &Blocks<'_>) -> Option<f64> {
    match &claim.rule {
        VerdictRule::Ratio { pair, .. } => {
            Some(p_value(&blocks.ratios(&pair.of, &pair.to, claim.measure), 1.0))
        }
        // The cell is best only if every difference is significant, so the largest p-value decides.
        VerdictRule::Best { of, among } => among
            .iter()
            .map(|other| p_value(&blocks.ratios(of, other, claim.measure), 1.0))
            .max_by(f64::total_cmp),
        VerdictRule::Bound { of, to, limit, .. } => {
            Some(p_value(&bounded(blocks, of, to.as_deref(), claim.measure), *limit))
        }
        VerdictRule::Count { .. } | VerdictRule::FirstFailure { .. } => None,
    }
}

fn bounded(blocks: &Blocks<'_>, of: &str, to: Option<&str>, measure: Measure) -> Vec<f64> {
    match to {
        Some(to) => blocks.ratios(of, to, measure),
        None => blocks.values(of, measure),
    }
}

struct Judge<'a> {
    planned: &'a PlannedExperiment,
    blocks: &'a Blocks<'a>,
    claim: &'a PublishedClaim,
    p: Option<f64>,
}

/// A verdict, its reason, the effect, and whether the effect is a ratio.
type RuleResult = (Ruling, String, Option<Effect>, bool);

impl Judge<'_> {
    fn verdict(&self, number: usize) -> ClaimVerdict {
        let (ruling, mut because, effect, is_ratio) = self.find(number);
        if let Some(machines) = self.planned.decided.get(&number) {
            because.push_str(&format!("; {machines}"));
        }
        ClaimVerdict {
            experiment: self.planned.experiment.name.clone(),
            claim: number + 1,
            says: self.claim.says.clone(),
            published: self.claim.published.clone(),
            measure: self.claim.measure,
            rule: self.claim.to_string(),
            ruling,
            because,
            ours: self.ours(),
            effect,
            is_ratio,
            p: self.p.filter(|_| ruling != Ruling::NotTestableHere),
            noisy: (self.blocks.flagged(), self.blocks.len()),
        }
    }

    fn find(&self, number: usize) -> RuleResult {
        if let Some(reason) = self.planned.untestable.get(&number) {
            return (Ruling::NotTestableHere, reason.clone(), None, false);
        }
        let cells = self.claim.cells();
        let failed = cells.iter().find_map(|cell| Some((cell, *self.blocks.failures(cell).first()?)));
        let found = match &self.claim.rule {
            VerdictRule::Ratio { pair, is } => self.ratio(pair, *is),
            VerdictRule::Best { of, among } => self.best(of, among),
            VerdictRule::Bound { of, to, side, limit } => self.bound(of, to.as_deref(), *side, *limit),
            VerdictRule::Count { of, side, limit } => self.count(of, *side, *limit),
            VerdictRule::FirstFailure { levels, at, limit } => self.first_failure(levels, at, *limit),
        };
        match (found, failed) {
            ((Ruling::Inconclusive, because, effect, is_ratio), Some((cell, why))) => {
                (Ruling::Inconclusive, format!("{because}; trials of {cell} failed: {why}"), effect, is_ratio)
            }
            (found, _) => found,
        }
    }

    fn inconclusive(&self, why: String) -> RuleResult {
        (Ruling::Inconclusive, why, None, false)
    }

    fn few(&self, count: usize) -> RuleResult {
        self.inconclusive(format!(
            "complete: {}; a verdict needs {FEWEST_BLOCKS}",
            show_count(count, "block")
        ))
    }

    fn decision(&self, pair: &CellPair, is: Direction, p: Option<f64>) -> Option<(Decision, Effect)> {
        let ratios = self.blocks.ratios(&pair.of, &pair.to, self.claim.measure);
        let effect = Effect::with_bootstrap(&ratios)?;
        let p = p.unwrap_or_else(|| p_value(&ratios, 1.0));
        Some((decide(&effect, p, is, self.planned.margin), effect))
    }

    fn ratio(&self, pair: &CellPair, is: Direction) -> RuleResult {
        let Some((decision, effect)) = self.decision(pair, is, self.p) else {
            return self.few(self.blocks.ratios(&pair.of, &pair.to, self.claim.measure).len());
        };
        if effect.blocks < FEWEST_BLOCKS {
            return self.few(effect.blocks);
        }
        if decision == Decision::Holds
            && let Some(confound) = &self.claim.confound
            && let Some((without, other)) = self.decision(&confound.pair, is, None)
            && (matches!(without, Decision::NoDifference | Decision::Reversed) || explained(&effect, &other))
        {
            let because = format!(
                "the ratio is {} as published, and {} with {}",
                shown(&effect),
                shown(&other),
                confound.name
            );
            return (Ruling::Artefact, because, Some(effect), true);
        }
        let margin = self.planned.margin * 100.0;
        let (ruling, because) = match (decision, is) {
            (Decision::Holds, Direction::Equal) => {
                (Ruling::Holds, format!("no difference, as claimed, within ±{margin:.0} %"))
            }
            (Decision::Holds, _) => (Ruling::Holds, self.size(&effect)),
            (Decision::Reversed, Direction::Equal) => (Ruling::Reversed, "there is a difference".to_owned()),
            (Decision::Reversed, _) => (Ruling::Reversed, "the difference goes the other way".to_owned()),
            (Decision::NoDifference, _) => {
                (Ruling::NoDifference, format!("the interval is within ±{margin:.0} %"))
            }
            (Decision::Inconclusive, _) => (
                Ruling::Inconclusive,
                format!("the interval is neither within ±{margin:.0} % nor on one side of 1"),
            ),
        };
        (ruling, because, Some(effect), true)
    }

    /// The comparison of a difference with the published difference.
    fn size(&self, effect: &Effect) -> String {
        let Some(published) = self.claim.value else { return "the direction is as published".to_owned() };
        let size = if effect.covers(published) {
            "as published"
        } else if (effect.mean.ln().abs()) < published.ln().abs() {
            "smaller than published"
        } else {
            "larger than published"
        };
        format!(
            "the direction is as published, the size is {size}: {} here, {} there",
            show_number(effect.mean),
            show_number(published)
        )
    }

    fn best(&self, of: &str, among: &[String]) -> RuleResult {
        let larger = self.claim.measure.larger_is_better();
        let is = if larger { Direction::Greater } else { Direction::Less };
        let pair = |other: &String| CellPair { of: of.to_owned(), to: other.clone() };
        let found: Vec<_> =
            among.iter().filter_map(|other| Some((other, self.decision(&pair(other), is, None)?))).collect();
        let fewest = found.iter().map(|(_, (_, effect))| effect.blocks).min().unwrap_or_default();
        if found.len() < among.len() || fewest < FEWEST_BLOCKS {
            return self.few(fewest);
        }
        let closest = |a: &&(&String, (Decision, Effect)), b: &&(&String, (Decision, Effect))| {
            let gain = |effect: &Effect| if larger { effect.mean } else { 1.0 / effect.mean };
            gain(&a.1.1).total_cmp(&gain(&b.1.1))
        };
        let Some((rival, (_, effect))) = found.iter().min_by(closest) else { return self.few(0) };
        let effect = Some(effect.clone());
        let all = |wanted: Decision| found.iter().all(|(_, (decision, _))| *decision == wanted);
        // Each rival gets an equal share of the bound on false differences.
        let strict = ALPHA / among.len() as f64;
        let beaten = found.iter().find(|(other, (decision, _))| {
            let ratios = self.blocks.ratios(of, other, self.claim.measure);
            *decision == Decision::Reversed && p_value(&ratios, 1.0) <= strict
        });
        if let Some((other, (_, effect))) = beaten {
            return (Ruling::Reversed, format!("{other} is better"), Some(effect.clone()), true);
        }
        let significant = self.p.is_some_and(|p| p <= ALPHA);
        match () {
            () if all(Decision::Holds) && significant => {
                (Ruling::Holds, format!("better than every other cell; {rival} is closest"), effect, true)
            }
            () if all(Decision::NoDifference) => {
                let margin = self.planned.margin * 100.0;
                (Ruling::NoDifference, format!("all are within ±{margin:.0} %"), effect, true)
            }
            () => (Ruling::Inconclusive, format!("it is not shown to be better than {rival}"), effect, true),
        }
    }

    fn bound(&self, of: &str, to: Option<&str>, side: Side, limit: f64) -> RuleResult {
        let samples = bounded(self.blocks, of, to, self.claim.measure);
        let Some(effect) = Effect::with_bootstrap(&samples) else { return self.few(samples.len()) };
        if effect.blocks < FEWEST_BLOCKS {
            return self.few(effect.blocks);
        }
        let beyond = match side {
            Side::AtLeast => effect.mean >= limit,
            Side::AtMost => effect.mean <= limit,
        };
        let significant = self.p.is_some_and(|p| p <= ALPHA);
        let is_ratio = to.is_some();
        let shown = if is_ratio { show_number(limit) } else { self.claim.measure.show(limit) };
        let (ruling, because) = match (significant, beyond, side) {
            (true, true, Side::AtLeast) => (Ruling::Holds, format!("at least {shown}, as claimed")),
            (true, true, Side::AtMost) => (Ruling::Holds, format!("at most {shown}, as claimed")),
            (true, false, Side::AtLeast) => {
                (Ruling::Reversed, format!("below {shown}, contrary to the claim"))
            }
            (true, false, Side::AtMost) => {
                (Ruling::Reversed, format!("above {shown}, contrary to the claim"))
            }
            (false, ..) => (Ruling::Inconclusive, format!("the interval contains {shown}")),
        };
        (ruling, because, Some(effect), is_ratio)
    }

    fn count(&self, of: &str, side: Side, limit: f64) -> RuleResult {
        let counts = self.blocks.values(of, self.claim.measure);
        if counts.is_empty() {
            return self.inconclusive("no trial succeeded".to_owned());
        }
        let holds = |count: &&f64| match side {
            Side::AtLeast => **count >= limit,
            Side::AtMost => **count <= limit,
        };
        let (found, all) = (counts.iter().filter(holds).count(), counts.len());
        let (least, most) =
            counts.iter().fold((f64::MAX, f64::MIN), |(a, b), value| (a.min(*value), b.max(*value)));
        let range = if least == most {
            show_number(least)
        } else {
            format!("{} to {}", show_number(least), show_number(most))
        };
        let plural = if all == 1 { "" } else { "s" };
        let said = format!("{} in {all} trial{plural}: {range}", self.claim.measure.name());
        match found {
            count if count == all => (Ruling::Holds, said, None, false),
            0 => (Ruling::Reversed, said, None, false),
            count => self.inconclusive(format!("{said}; {count} of them as claimed")),
        }
    }

    fn first_failure(&self, levels: &[String], at: &str, limit: f64) -> RuleResult {
        let fails = |level: &&String| {
            let values = self.blocks.values(level, self.claim.measure);
            let failed = values.iter().filter(|value| **value > limit).count();
            2 * failed > values.len()
        };
        if levels.iter().any(|level| self.blocks.values(level, self.claim.measure).is_empty()) {
            return self.inconclusive("a level has no trial that succeeded".to_owned());
        }
        match levels.iter().find(fails) {
            Some(level) if level == at => {
                (Ruling::Holds, format!("{level} is the first that fails"), None, false)
            }
            Some(level) => (Ruling::Reversed, format!("{level} is the first that fails"), None, false),
            None => (Ruling::Reversed, "no level fails".to_owned(), None, false),
        }
    }

    /// The values of the cells, as geometric means over blocks.
    fn ours(&self) -> String {
        let cells: Vec<&str> = match &self.claim.rule {
            VerdictRule::Ratio { pair, .. } => vec![&pair.of, &pair.to],
            _ => self.claim.cells(),
        };
        let shown = |cell: &&str| {
            let values = self.blocks.values(cell, self.claim.measure);
            middle(&values).map(|value| format!("{cell} {}", self.claim.measure.show(value)))
        };
        cells.iter().filter_map(shown).collect::<Vec<_>>().join(", ")
    }
}

/// Whether a confound explains a ratio although noise hides differences of the size of the margin: without the
/// confound, both ends of the interval have less than a tenth of the ratio's logarithm.
fn explained(ratio: &Effect, without: &Effect) -> bool {
    let (low, high) = (ratio.low.ln(), ratio.high.ln());
    let least = if low * high > 0.0 { low.abs().min(high.abs()) } else { 0.0 };
    without.blocks >= FEWEST_BLOCKS && without.low.ln().abs().max(without.high.ln().abs()) < least / 10.0
}

#[cfg(test)]
mod tests;
