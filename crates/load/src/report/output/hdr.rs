//! The percentile distribution of HdrHistogram in the format of its plotter (`.hgrm`).

use crate::measure::histogram;
use crate::report::summary::Distribution;

/// The percentile steps in each halving of the distance to 100 %.
const TICKS: u32 = 5;

/// Formats a distribution, with latencies in milliseconds.
pub fn hdr(distribution: &Distribution) -> String {
    let mut all = histogram::new();
    distribution.counts.pour(&mut all);
    let milliseconds = |nanoseconds: f64| nanoseconds / 1e6;
    let mut text =
        format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    for at in all.iter_quantiles(TICKS) {
        let (value, quantile) = (milliseconds(at.value_iterated_to() as f64), at.quantile_iterated_to());
        let total = all.count_between(0, at.value_iterated_to());
        text += &format!("{value:>12.3} {quantile:>2.12} {total:>10}");
        if quantile < 1.0 {
            text += &format!(" {:>14.2}", 1.0 / (1.0 - quantile));
        }
        text.push('\n');
    }
    let (mean, deviation) = (milliseconds(all.mean()), milliseconds(all.stdev()));
    text += &format!("#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]\n");
    text += &format!(
        "#[Max     = {:>12.3}, Total count    = {:>12}]\n",
        milliseconds(all.max() as f64),
        all.len()
    );
    text += &format!("#[Buckets = {:>12}, SubBuckets     = {:>12}]\n", all.buckets(), 2048);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_covers_all_samples_in_order() {
        let times = (1..=1_000).map(|at| at * 1_000_000);
        let distribution = Distribution::of_times(times).expect("there are samples");
        let text = hdr(&distribution);
        let lines: Vec<Vec<f64>> = text
            .lines()
            .skip(2)
            .take_while(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().filter_map(|word| word.parse().ok()).collect())
            .collect();
        assert!(lines.windows(2).all(|pair| pair[0][0] <= pair[1][0] && pair[0][2] <= pair[1][2]));
        let last = lines.last().expect("there are lines");
        assert!((last[0] - 1_000.0).abs() < 2.0 && last[2] == 1_000.0, "{last:?}");
        assert!(text.contains("Total count    =         1000]"), "{text}");
    }
}
