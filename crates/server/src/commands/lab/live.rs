//! The live view of a run: an updating line on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use tenfold_lab::measure::show_count;
use tenfold_lab::plan::RunPlan;
use tenfold_lab::report::advice::Advice;
use tenfold_lab::report::results::RunResults;
use tenfold_lab::runner::RunProgress;
use tenfold_lab::verdict::ruling::{ClaimVerdict, shown};

use crate::commands::next::listed;
use crate::diagnostics::visible;

/// A view of a run.
pub(super) trait RunView {
    fn tell(&mut self, progress: &RunProgress<'_>);

    /// Ends the view's updates.
    fn end(&mut self);
}

/// Lines on standard error, and on a terminal a line that is updated.
pub(super) struct ProgressLine {
    terminal: bool,
    shown: bool,
}

impl ProgressLine {
    pub(super) fn new() -> ProgressLine {
        ProgressLine { terminal: std::io::stderr().is_terminal(), shown: false }
    }

    pub(super) fn update(&mut self, text: &str) {
        if self.terminal {
            self.shown = true;
            // Clears the rest of the previous line.
            eprint!("\r{text}\x1b[K");
            let _ = std::io::stderr().flush();
        }
    }

    /// Ends the updated line.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.shown) {
            eprint!("\r\x1b[K");
        }
    }

    pub(super) fn say(&mut self, text: &str) {
        self.end();
        eprintln!("{}", visible(text));
    }
}

pub(super) struct LiveView {
    line: ProgressLine,
    experiments: usize,
    begun: usize,
    verdicts: bool,
    /// The time of the last line of a round, without a terminal.
    last_round: Option<Instant>,
}

/// The least time between two lines of rounds.
const BETWEEN: Duration = Duration::from_secs(10);

/// The line of a round without a terminal, unless the `last` one was less than ten seconds before `now`.
fn round(progress: &RunProgress<'_>, last: &mut Option<Instant>, now: Instant) -> Option<String> {
    let RunProgress::Trial { experiment, block, blocks, left, .. } = progress else { return None };
    if last.is_some_and(|last| now.saturating_duration_since(last) < BETWEEN) {
        return None;
    }
    *last = Some(now);
    Some(format!("      {experiment}: block {block} of {blocks}; {} left", time(*left)))
}

impl LiveView {
    /// Prints the size of the run.
    pub(super) fn new(plan: &RunPlan) -> LiveView {
        let view = LiveView {
            line: ProgressLine::new(),
            experiments: plan.experiments.len(),
            begun: 0,
            verdicts: true,
            last_round: None,
        };
        eprintln!(
            "{}, profile {}, seed {}, {} at most",
            show_count(view.experiments, "experiment"),
            plan.profile.name(),
            plan.seed,
            time(plan.budget)
        );
        view
    }

    /// A view without verdicts, for a command that prints another result.
    pub(super) fn without_verdicts(plan: &RunPlan) -> LiveView {
        LiveView { verdicts: false, ..LiveView::new(plan) }
    }
}

impl RunView for LiveView {
    fn tell(&mut self, progress: &RunProgress<'_>) {
        match progress {
            RunProgress::Begins(planned) => {
                self.begun += 1;
                let one = &planned.experiment;
                self.line.say(&format!("[{}/{}] {}: {}", self.begun, self.experiments, one.name, one.title));
            }
            RunProgress::Trial { experiment, cell, block, blocks, left } => {
                if !self.line.terminal {
                    if let Some(text) = round(progress, &mut self.last_round, Instant::now()) {
                        self.line.say(&text);
                    }
                    return;
                }
                let left = time(*left);
                self.line.update(&format!("{experiment}: block {block} of {blocks}, {cell}; {left} left"));
            }
            RunProgress::Ended(_) => {}
            RunProgress::Trouble(trial) => {
                if let Some(why) = &trial.failed {
                    self.line.say(&format!("      {} failed: {why}", trial.cell));
                }
            }
            RunProgress::Verdicts(_) if !self.verdicts => {}
            RunProgress::Verdicts(verdicts) => {
                for verdict in *verdicts {
                    self.line.say(&line(verdict));
                }
            }
        }
    }

    fn end(&mut self) {
        self.line.end();
    }
}

fn line(verdict: &ClaimVerdict) -> String {
    let value = verdict.effect.as_ref().map(|effect| format!(" {}", shown(effect))).unwrap_or_default();
    format!(
        "      {:<18}{}{value}\n      {:<18}{}",
        verdict.ruling.to_string(),
        verdict.says,
        "",
        verdict.because
    )
}

/// The verdicts of a run, counted and named.
pub(super) fn verdicts(results: &RunResults) -> String {
    let counts: Vec<String> =
        results.counts().into_iter().map(|(ruling, count)| format!("{count} {ruling}")).collect();
    let mut text = format!("{}\n", counts.join(", "));
    for verdict in &results.verdicts {
        text.push_str(&format!(
            "{:<18}{}: {}\n",
            verdict.ruling.to_string(),
            verdict.experiment,
            verdict.says
        ));
    }
    text
}

/// The advice of a run, and the next command.
pub(super) fn advice(results: &RunResults) -> String {
    let advice = Advice::of(results);
    format!("\n{advice}\n{}", listed(&[(advice.command.clone(), advice.purpose)]))
}

fn time(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_terminal_a_line_of_a_round_is_written_each_ten_seconds() {
        let progress = RunProgress::Trial { experiment: "why", cell: "A", block: 2, blocks: 8, left: 75 };
        let (mut last, begin) = (None, Instant::now());
        let mut at = |seconds: u64| round(&progress, &mut last, begin + Duration::from_secs(seconds));
        let lines = [0, 3, 9, 10, 19, 20].map(&mut at);
        let line = Some("      why: block 2 of 8; 1 min 15 s left".to_owned());
        assert_eq!(lines, [line.clone(), None, None, line.clone(), None, line]);
    }
}
