//! A histogram of latencies as bars of text.

use crate::report::output::units::time;
use crate::report::summary::Distribution;

/// The rows of a histogram.
const ROWS: u32 = 12;
/// The characters of the longest bar.
const WIDTH: f64 = 50.0;

/// The rows of a histogram: the upper end of each in microseconds, and its samples. The axis of times is logarithmic:
/// each row ends at a multiple of the end of the row before, and the last one at the maximum. `None` if the samples are
/// too few for p99, or were not kept.
pub(super) fn rows(distribution: &Distribution) -> Option<Vec<(f64, u64)>> {
    distribution.percentile("p99")?;
    let (all, least) = (distribution.counts.len(), distribution.min.max(1e-3));
    let factor = distribution.max / least;
    if all == 0 || factor <= 1.0 {
        return None;
    }
    let mut below = 0;
    let mut rows = Vec::new();
    for row in 1..=ROWS {
        let is_last = row == ROWS;
        let to = least * factor.powf(f64::from(row) / f64::from(ROWS));
        let up_to = if is_last { all } else { distribution.counts.count_up_to((to * 1e3) as u64) };
        rows.push((if is_last { distribution.max } else { to }, up_to - below));
        below = up_to;
    }
    Some(rows)
}

/// Formats a histogram, if there are enough samples. A row with samples has at least a dot.
pub(super) fn bars(distribution: &Distribution) -> Option<String> {
    let rows = rows(distribution)?;
    let all = distribution.counts.len();
    let most = rows.iter().map(|(_, count)| *count).max()? as f64;
    let line = |(to, count): &(f64, u64)| {
        let length = (*count as f64 / most * WIDTH).round() as usize;
        let bar = if length == 0 && *count > 0 { ".".to_owned() } else { "#".repeat(length) };
        let line = format!("  up to {:>9} {:>6.2} %  {bar}", time(*to), 100.0 * *count as f64 / all as f64);
        format!("{}\n", line.trim_end())
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
        assert_eq!(shares.len(), ROWS as usize);
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 0.1, "{text}");
        assert!(text.lines().last().is_some_and(|line| line.ends_with(&"#".repeat(50))), "{text}");
        let few = Distribution::of_times(times(999)).expect("there are samples");
        assert_eq!(bars(&few), None);
    }

    #[test]
    fn each_row_is_as_much_longer_as_the_one_before() {
        let distribution = Distribution::of_times((1..=2_000).map(|at| at * 10_000)).expect("samples");
        let rows = rows(&distribution).expect("there are enough samples");
        let factors: Vec<f64> = rows.windows(2).map(|two| two[1].0 / two[0].0).collect();
        assert!(factors.iter().all(|factor| (factor / factors[0] - 1.0).abs() < 0.01), "{factors:?}");
        let text = bars(&distribution).expect("there are enough samples");
        assert!(
            text.lines().next().is_some_and(|line| line.ends_with("%  .")),
            "one sample of 2,000: {text}"
        );
    }
}
