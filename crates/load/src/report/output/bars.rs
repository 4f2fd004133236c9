//! A histogram of latencies as bars of text.

use crate::report::output::units::time;
use crate::report::summary::Distribution;

/// Rows up to the 99th percentile. One more row has the rest.
const ROWS: u32 = 9;
/// The characters of the longest bar.
const WIDTH: f64 = 50.0;

/// The rows of a histogram: the upper end of each in microseconds, and its samples. Rows up to the 99th percentile have
/// equal widths, and the last row ends at the maximum. `None` if the samples are too few, or were not kept.
pub(super) fn rows(distribution: &Distribution) -> Option<Vec<(f64, u64)>> {
    let (all, last) = (distribution.counts.len(), distribution.percentile("p99")?);
    let step = (last - distribution.min) / f64::from(ROWS);
    if all == 0 || step <= 0.0 {
        return None;
    }
    let mut below = 0;
    let mut rows = Vec::new();
    for row in 1..=ROWS + 1 {
        let to = if row > ROWS { distribution.max } else { distribution.min + step * f64::from(row) };
        let up_to = if row > ROWS { all } else { distribution.counts.count_up_to((to * 1e3) as u64) };
        rows.push((to, up_to - below));
        below = up_to;
    }
    Some(rows)
}

/// Formats a histogram, if there are enough samples.
pub(super) fn bars(distribution: &Distribution) -> Option<String> {
    let rows = rows(distribution)?;
    let all = distribution.counts.len();
    let most = rows.iter().map(|(_, count)| *count).max()? as f64;
    let line = |(to, count): &(f64, u64)| {
        let bar = "#".repeat((*count as f64 / most * WIDTH).round() as usize);
        format!("  up to {:>9} {:>6.2} %  {bar}\n", time(*to), 100.0 * *count as f64 / all as f64)
            .replace("  \n", "\n")
    };
    Some(rows.iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_all_samples_and_bars_their_shares() {
        let times = |count: u64| (1..=count).map(|at| at * 1_000);
        let all = Distribution::of_times(times(1_000)).expect("there are samples");
        let text = bars(&all).expect("there are enough samples");
        let shares = text.lines().map(|line| line.split_whitespace().nth(4).expect("a share"));
        let shares: Vec<f64> = shares.map(|share| share.parse().expect("a number")).collect();
        assert_eq!(shares.len(), 10);
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 0.1, "{text}");
        assert!(text.lines().next().is_some_and(|line| line.ends_with(&"#".repeat(50))), "{text}");
        let few = Distribution::of_times(times(999)).expect("there are samples");
        assert_eq!(bars(&few), None);
    }
}
