//! The live display on a terminal: progress, rate and latency. A large terminal shows curves over the whole run.

use std::io::IsTerminal;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tenfold_sys::shared::SharedRows;
use tenfold_sys::terminal;

use crate::plan::LoadPlan;
use crate::report::output::units;
use crate::worker::{LIVE_COUNTERS, LiveCounter};

/// The most points that are kept of a run. At this number, pairs of points are joined.
const MOST_POINTS: usize = 4096;
/// The lines of a curve.
const HEIGHT: usize = 5;
/// The columns and rows of the smallest terminal with room for two curves.
const ROOM: (usize, usize) = (60, 2 * HEIGHT + 6);
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A value for each [`LiveCounter`].
pub(crate) type LiveCounters = [u64; LIVE_COUNTERS];

/// Returns the sums over the rows of all workers.
pub(crate) fn sums(rows: &SharedRows) -> LiveCounters {
    let sum = |word: usize| (0..rows.rows()).map(|row| rows.row(row)[word].load(Ordering::Relaxed)).sum();
    std::array::from_fn(sum)
}

/// The display, which shows nothing without a terminal.
pub(crate) struct LiveDisplay {
    bar: Option<ProgressBar>,
    duration: Option<Duration>,
    requests: Option<u64>,
    begin: Instant,
    before: Totals,
    /// Responses per second, and mean latencies in microseconds, which are 0 without responses.
    rates: Vec<f64>,
    latencies: Vec<f64>,
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
            rates: Vec::new(),
            latencies: Vec::new(),
        }
    }

    /// Shows the current counters, which are the sums over all workers.
    pub(crate) fn update(&mut self, counters: &LiveCounters) {
        let Some(bar) = &self.bar else { return };
        let of = |word: LiveCounter| counters[word as usize];
        let now = Totals {
            at: Instant::now(),
            answers: of(LiveCounter::Answers),
            errors: of(LiveCounter::Errors),
            latency: of(LiveCounter::Latency),
            open: of(LiveCounter::Open),
        };
        let answers = now.answers.saturating_sub(self.before.answers);
        let latency = now.latency.saturating_sub(self.before.latency) as f64 / 1e3 / answers.max(1) as f64;
        let rate = answers as f64 / now.at.duration_since(self.before.at).as_secs_f64().max(1e-3);
        for (points, point) in [(&mut self.rates, rate), (&mut self.latencies, latency)] {
            points.push(point);
            if points.len() > MOST_POINTS {
                *points = resampled(points, MOST_POINTS / 2);
            }
        }
        let by_time =
            self.duration.map_or(0.0, |time| self.begin.elapsed().as_secs_f64() / time.as_secs_f64());
        let by_count = self.requests.map_or(0.0, |count| (now.answers + now.errors) as f64 / count as f64);
        bar.set_position((1_000.0 * by_time.max(by_count).clamp(0.0, 1.0)) as u64);
        let errors = if now.errors > 0 { format!("  {} errors", now.errors) } else { String::new() };
        let size = terminal::size(std::io::stderr());
        bar.set_message(match size.filter(|(columns, rows)| *columns >= ROOM.0 && *rows >= ROOM.1) {
            Some((columns, _)) => format!(
                "{:.0} s  {} responses  {} open{errors}\n\nresponses/s, now {}\n{}\n\nmean latency, now {}\n{}",
                self.begin.elapsed().as_secs_f64(),
                units::number(now.answers as f64),
                now.open,
                units::number(rate),
                curve(&self.rates, columns, units::number),
                units::time(latency),
                curve(&self.latencies, columns, units::time),
            ),
            None => {
                format!("{}/s  {} open  {}{errors}", units::number(rate), now.open, units::time(latency))
            }
        });
        self.before = now;
    }

    /// Removes the display.
    pub(crate) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Draws a curve over the whole run, from zero to the highest point, with its scale on the left.
fn curve(points: &[f64], columns: usize, show: fn(f64) -> String) -> String {
    let most = points.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let scale = show(most);
    let margin = scale.chars().count();
    // A line that reaches the last column would wrap in some terminals.
    let points = resampled(points, columns.saturating_sub(margin + 3).max(1));
    let eighths = |point: f64| (point / most * (HEIGHT * BARS.len()) as f64).round() as usize;
    let line = |from_above: usize| {
        let below = (HEIGHT - 1 - from_above) * BARS.len();
        let label = match from_above {
            0 => scale.as_str(),
            last if last == HEIGHT - 1 => "0",
            _ => "",
        };
        let level = |point: &f64| match eighths(*point).saturating_sub(below).min(BARS.len()) {
            0 => ' ',
            level => BARS[level - 1],
        };
        format!("{label:>margin$} │{}", points.iter().map(level).collect::<String>())
    };
    (0..HEIGHT).map(line).collect::<Vec<_>>().join("\n")
}

/// Joins neighbouring points into at most `most` means.
fn resampled(points: &[f64], most: usize) -> Vec<f64> {
    points
        .chunks(points.len().div_ceil(most).max(1))
        .map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_has_its_maximum_at_the_top_and_fits() {
        let drawn = curve(&[0.0, 50.0, 100.0, 25.0], 60, units::number);
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines, ["100 │  █ ", "    │  █ ", "    │ ▄█ ", "    │ ██▂", "  0 │ ███"]);
        let long = curve(&[1.0; 1000], 60, units::number);
        assert!(long.lines().all(|line| (50..60).contains(&line.chars().count())), "{long}");
        assert_eq!(resampled(&[1.0, 3.0, 5.0], 2), [2.0, 5.0]);
    }
}
