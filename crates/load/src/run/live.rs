//! The live display on a terminal: progress, rate, and latency as a sparkline.

use std::io::IsTerminal;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tenfold_sys::shared::SharedRows;

use crate::plan::LoadPlan;
use crate::report::output::units;
use crate::worker::LiveCounter;

/// The points of the sparkline.
const POINTS: usize = 24;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The display; none without a terminal.
pub(crate) struct LiveDisplay {
    bar: Option<ProgressBar>,
    duration: Option<Duration>,
    requests: Option<u64>,
    begin: Instant,
    before: Totals,
    /// Mean latencies in microseconds; 0 without responses.
    points: Vec<f64>,
}

#[derive(Clone, Copy)]
struct Totals {
    at: Instant,
    answers: u64,
    errors: u64,
    latency: u64,
    open: u64,
}

impl LiveDisplay {
    /// The display of run `number`.
    pub(crate) fn new(plan: &LoadPlan, number: u32, wanted: bool) -> LiveDisplay {
        let shown = wanted && std::io::stderr().is_terminal();
        let bar = shown.then(|| {
            let bar = ProgressBar::with_draw_target(Some(1_000), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{prefix}{bar:20.green/238} {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━━─"));
            if plan.repeat > 1 {
                bar.set_prefix(format!("{number}/{} ", plan.repeat));
            }
            bar
        });
        let begin = Instant::now();
        let before = Totals { at: begin, answers: 0, errors: 0, latency: 0, open: 0 };
        LiveDisplay {
            bar,
            duration: plan.duration,
            requests: plan.requests,
            begin,
            before,
            points: Vec::new(),
        }
    }

    /// Shows the current counters.
    pub(crate) fn update(&mut self, rows: &SharedRows) {
        let Some(bar) = &self.bar else { return };
        let sum = |word: LiveCounter| {
            (0..rows.rows()).map(|row| rows.row(row)[word as usize].load(Ordering::Relaxed)).sum::<u64>()
        };
        let now = Totals {
            at: Instant::now(),
            answers: sum(LiveCounter::Answers),
            errors: sum(LiveCounter::Errors),
            latency: sum(LiveCounter::Latency),
            open: sum(LiveCounter::Open),
        };
        let answers = now.answers.saturating_sub(self.before.answers);
        let latency = now.latency.saturating_sub(self.before.latency) as f64 / 1e3 / answers.max(1) as f64;
        let rate = answers as f64 / now.at.duration_since(self.before.at).as_secs_f64().max(1e-3);
        self.points.push(latency);
        if self.points.len() > POINTS {
            self.points.remove(0);
        }
        let by_time =
            self.duration.map_or(0.0, |time| self.begin.elapsed().as_secs_f64() / time.as_secs_f64());
        let by_count = self.requests.map_or(0.0, |count| (now.answers + now.errors) as f64 / count as f64);
        bar.set_position((1_000.0 * by_time.max(by_count).clamp(0.0, 1.0)) as u64);
        let errors = if now.errors > 0 { format!("  {} errors", now.errors) } else { String::new() };
        bar.set_message(format!(
            "{}/s  {} open  {} {}{errors}",
            units::number(rate),
            now.open,
            sparkline(&self.points),
            units::time(latency),
        ));
        self.before = now;
    }

    /// Removes the display.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Draws bars from zero to the highest point.
fn sparkline(points: &[f64]) -> String {
    let most = points.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    points.iter().map(|point| BARS[((point / most) * (BARS.len() - 1) as f64).round() as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_reaches_the_top_at_its_maximum() {
        assert_eq!(sparkline(&[0.0, 5.0, 10.0]), "▁▅█");
        assert_eq!(sparkline(&[0.0, 0.0]), "▁▁");
        assert_eq!(sparkline(&[]), "");
    }
}
