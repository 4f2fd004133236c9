//! Holm's correction for several claims of one experiment.

/// Returns the adjusted p-values (Holm 1979) in the given order. If every adjusted value of at most `alpha` counts as a
/// difference, the chance of a false difference is at most `alpha`.
pub fn adjust(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        let factor = (p_values.len() - rank) as f64;
        largest = largest.max((p_values[index] * factor).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_is_multiplied_by_their_number_and_order_is_kept() {
        let found = adjust(&[0.04, 0.01, 0.03, 0.005]);
        for (found, expected) in found.iter().zip([0.06, 0.03, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
        }
    }

    #[test]
    fn one_claim_is_not_corrected_and_nothing_exceeds_one() {
        assert_eq!(adjust(&[0.05]), [0.05]);
        assert_eq!(adjust(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(adjust(&[]).is_empty());
    }
}
