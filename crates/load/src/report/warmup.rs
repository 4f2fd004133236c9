//! The warm-up that the numbers of a run leave out.
//!
//! The rule is the marginal standard error rule on batches of five (MSER-5; White 1997, Spratt 1998). Of all cuts up
//! to a quarter of the run, it takes the one with the least standard error of the mean rate. It applies to closed
//! loops with a duration. A schedule has no warm-up, because a stall at the start is the server's, and a run with a
//! number of requests has none either.

/// Slices of a batch.
const BATCH: usize = 5;
/// The fewest batches to which the rule applies.
const FEWEST: usize = 8;

/// The number of slices to cut, given the responses in each slice.
pub fn cut(slices: &[u64]) -> usize {
    let batches: Vec<f64> =
        slices.chunks_exact(BATCH).map(|batch| batch.iter().sum::<u64>() as f64).collect();
    if batches.len() < FEWEST {
        return 0;
    }
    let error_after = |cut: usize| {
        let kept = &batches[cut..];
        let count = kept.len() as f64;
        let mean = kept.iter().sum::<f64>() / count;
        kept.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count * count)
    };
    let best = (0..=batches.len() / 4).min_by(|a, b| error_after(*a).total_cmp(&error_after(*b)));
    best.unwrap_or(0) * BATCH
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_slow_start_is_cut_and_a_steady_run_is_kept() {
        let steady: Vec<u64> = (0..100).map(|at| 1_000 + at % 3).collect();
        assert_eq!(cut(&steady), 0);
        let slow: Vec<u64> = (0..100).map(|at| if at < 13 { 300 } else { 1_000 + at % 3 }).collect();
        assert_eq!(cut(&slow), 15);
    }

    #[test]
    fn a_short_run_is_left_whole() {
        assert_eq!(cut(&[0, 0, 100, 100, 100]), 0);
    }

    proptest! {
        #[test]
        fn never_more_than_a_quarter_is_cut(slices in proptest::collection::vec(0u64..1_000_000, 0..130)) {
            prop_assert!(cut(&slices) <= slices.len() / 4);
        }
    }
}
