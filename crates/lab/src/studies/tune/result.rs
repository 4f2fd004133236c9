//! The result of a search, and its text.

use std::fmt;

use crate::measure::{Measure, show_count};
use crate::record::Blocks;
use crate::statistics::effect::Effect;
use crate::studies::tune::candidates::{CandidateSettings, flags};
use crate::studies::tune::goal::Goal;
use crate::verdict::ruling::{ClaimVerdict, Ruling, middle, shown};

/// The measures in the result.
const SHOWN: [Measure; 4] = [Measure::Rate, Measure::P99, Measure::Cpu, Measure::Pss];
/// A part of the load generator's note that it may be the limit of a run.
const LIMITED: &str = "its own limit";

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub struct TuneResult {
    /// The goal.
    pub goal: Goal,
    /// The number of requested paths.
    pub paths: usize,
    /// Their origin, in words.
    pub from: String,
    /// Paths beyond the bounds of a mix.
    pub left_out: usize,
    /// Paths that the default does not answer with status 200.
    pub refused: usize,
    /// Paths whose responses are too large for a trial.
    pub large: usize,
    /// Paths that were not tried for lack of time.
    pub late: usize,
    /// The numbers of processors of servers and of clients; 0 if nothing was pinned.
    pub processors: (usize, usize),
    /// The machines that made the load, if others did.
    pub clients: Vec<String>,
    /// Scheduled requests per second, if latencies were compared.
    pub rate: Option<u32>,
    /// The number of settings that were tried.
    pub tried: usize,
    /// The number of rounds.
    pub rounds: u32,
    /// Dropped settings as flags, and the reason: trials failed, or connections got no response.
    pub dropped: Vec<(String, String)>,
    /// The best setting; `None` if all candidates failed.
    pub best: Option<Confirmation>,
    /// The reason why the search has no conclusion and no best setting.
    pub invalid: Option<String>,
}

/// The best setting of a search and the default, measured again in fresh blocks.
#[derive(Clone, Debug)]
pub struct Confirmation {
    /// The setting.
    pub settings: CandidateSettings,
    /// The verdict by the measure of the goal.
    pub verdict: ClaimVerdict,
    /// The other measures.
    pub measures: Vec<ComparedMeasure>,
    /// The median number of connections without any response.
    pub unanswered: f64,
    /// The disturbed blocks, which were left out.
    pub disturbed: usize,
    /// The number of trials in which the load generator was the limit, and of all trials.
    pub limited: (usize, usize),
}

/// A measure of the best setting and of the default.
#[derive(Clone, Debug)]
pub struct ComparedMeasure {
    /// The measure.
    pub measure: Measure,
    /// Its ratio.
    pub effect: Option<Effect>,
    /// The medians of the best setting and of the default.
    pub medians: (Option<f64>, Option<f64>),
}

impl Confirmation {
    /// The confirmation by fresh blocks.
    pub(super) fn of(
        settings: &CandidateSettings,
        verdict: ClaimVerdict,
        disturbed: usize,
        blocks: &Blocks<'_>,
        best: &str,
        default: &str,
    ) -> Confirmation {
        let compared = |measure: Measure| ComparedMeasure {
            measure,
            effect: Effect::of(&blocks.ratios(best, default, measure)),
            medians: (middle(&blocks.values(best, measure)), middle(&blocks.values(default, measure))),
        };
        let trials = || blocks.iter().flat_map(|(_, trials)| trials.iter());
        let is_limited =
            |trial: &&&crate::record::Trial| trial.notes.iter().any(|note| note.contains(LIMITED));
        Confirmation {
            settings: settings.clone(),
            measures: SHOWN.into_iter().map(compared).collect(),
            unanswered: usually_unanswered(blocks, best),
            disturbed,
            limited: (trials().filter(is_limited).count(), trials().count()),
            verdict,
        }
    }

    /// Whether the fresh blocks show that the setting is better than the default.
    pub fn is_better(&self) -> bool {
        self.verdict.ruling == Ruling::Holds && self.unanswered == 0.0
    }

    /// The ratio that decides, with its interval.
    pub fn ratio(&self) -> String {
        self.verdict.effect.as_ref().map_or("no ratio".to_owned(), shown)
    }

    /// The number of fresh blocks.
    pub fn blocks(&self) -> usize {
        self.verdict.noisy.1
    }
}

/// The median number of a cell's connections without any response. A single stall of the machine does not change the
/// median, and latencies would not show these connections. Of two middle trials, the better one counts.
pub(super) fn usually_unanswered(blocks: &Blocks<'_>, cell: &str) -> f64 {
    let mut values = blocks.values(cell, Measure::Unanswered);
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

impl TuneResult {
    /// The best setting, if it is better than the default.
    pub fn winner(&self) -> Option<&Confirmation> {
        self.best.as_ref().filter(|best| best.is_better())
    }

    /// The requests in words.
    pub fn requests(&self) -> String {
        let mut text = format!("{} ({})", show_count(self.paths, "path"), self.from);
        let mut left = Vec::new();
        let mut add = |count: usize, why: &str| {
            if count > 0 {
                left.push(format!("{count} {why}"));
            }
        };
        add(self.refused, "not served with status 200");
        add(self.large, "above 64 MiB");
        add(self.late, "for lack of time");
        add(self.left_out, "beyond the first 1,000");
        if !left.is_empty() {
            text.push_str(&format!("; paths left out: {}", left.join(", ")));
        }
        text
    }

    /// The decision in a sentence.
    pub fn decision(&self) -> String {
        let name = self.goal.measure().name();
        let Some(best) = &self.best else {
            return "no setting is better than the default: each setting that was tried was dropped"
                .to_owned();
        };
        let ratio = best.ratio();
        match best.verdict.ruling {
            _ if best.unanswered > 0.0 => format!(
                "the default is as good: the best setting left {} connections without a response",
                best.unanswered
            ),
            Ruling::Holds => format!("{} times the {name} of the default, 95 % interval", ratio),
            Ruling::Reversed => format!("the default is better: {name} {ratio} times that of the default"),
            Ruling::NoDifference => {
                format!("the default is as good: {name} {ratio} times, within the margin")
            }
            _ => format!(
                "the default is as good, as far as these trials can tell: {name} {ratio} times ({}); a longer \
                 --budget narrows the interval",
                best.verdict.because
            ),
        }
    }
}

impl fmt::Display for TuneResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "requests: {}", self.requests())?;
        if let Some(rate) = self.rate {
            writeln!(f, "load:     {rate} requests per second, half of what the default serves")?;
        }
        let rounds = show_count(self.rounds as usize, "round");
        writeln!(f, "tried:    {} in {rounds}", show_count(self.tried, "setting"))?;
        if let Some((setting, why)) = self.dropped.first() {
            let such = if self.dropped.len() > 1 { "such as " } else { "" };
            writeln!(f, "dropped:  {}, {such}{setting}: {why}", show_count(self.dropped.len(), "setting"))?;
        }
        let Some(best) = &self.best else { return Ok(()) };
        writeln!(f, "best:     {}", flags(&best.settings))?;
        let blocks = show_count(best.blocks(), "fresh block");
        writeln!(f, "\nbest over default in {blocks}, medians beside [95 % interval]:")?;
        for one in &best.measures {
            let ratio = one.effect.as_ref().map_or("-".to_owned(), shown);
            let (Some(of), Some(to)) = one.medians else { continue };
            let decides = if one.measure == self.goal.measure() { "  decides" } else { "" };
            let (of, to) = (one.measure.show(of), one.measure.show(to));
            writeln!(f, "  {:<5} {ratio:<20} {of}, default {to}{decides}", one.measure.name())?;
        }
        if best.disturbed > 0 {
            writeln!(f, "left out: {}", show_count(best.disturbed, "disturbed block"))?;
        }
        let (limited, trials) = best.limited;
        if self.goal == Goal::Throughput && 2 * limited > trials {
            writeln!(
                f,
                "the load generator was the limit in {limited} of {trials} trials: the server can do more than \
                 these rates, and a difference may be hidden"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_names_the_reason_why_settings_were_dropped() {
        let lost = |flags: &str| (flags.to_owned(), "48 connections got no response".to_owned());
        let mut result =
            TuneResult { tried: 3, rounds: 1, dropped: vec![lost("--engine pool")], ..TuneResult::default() };
        let line = |result: &TuneResult| result.to_string().lines().last().map(str::to_owned);
        let expected = "dropped:  1 setting, --engine pool: 48 connections got no response";
        assert_eq!(line(&result).as_deref(), Some(expected));
        result.dropped.push(lost("--engine fork"));
        let expected = "dropped:  2 settings, such as --engine pool: 48 connections got no response";
        assert_eq!(line(&result).as_deref(), Some(expected));
        result.dropped.clear();
        assert_eq!(line(&result).as_deref(), Some("tried:    3 settings in 1 round"));
    }
}
