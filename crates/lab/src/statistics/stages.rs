//! Stein's two-stage procedure: the noise of the pilot blocks determines the number of blocks.

use tenfold_load::statistics::sample::{ALPHA, moments};
use tenfold_load::statistics::student;

/// Blocks of the first stage.
pub const PILOT_BLOCKS: usize = 8;

/// The number of blocks for a verdict on one of `claims` claims, given the ratios of the pilot blocks (Stein 1945).
///
/// The target half-width of the interval is half of the margin, at the strictest level of Holm's correction. Then the
/// interval of a true ratio of 1 is inside the margin, and a true ratio at the margin differs from 1.
pub fn blocks(pilot: &[f64], margin: f64, claims: usize) -> usize {
    let logs: Vec<f64> = pilot.iter().map(|ratio| ratio.ln()).collect();
    if logs.len() < 2 || logs.iter().any(|log| !log.is_finite()) {
        return PILOT_BLOCKS;
    }
    let aim = margin.ln_1p() / 2.0;
    let t = student::quantile(ALPHA / claims.max(1) as f64, logs.len() as f64 - 1.0);
    let needed = (t * moments(&logs).1 / aim).powi(2).ceil();
    (needed as usize).max(PILOT_BLOCKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_pilots_are_enough_and_noise_asks_for_more() {
        let steady = [1.0, 1.01, 0.99, 1.0, 1.005, 0.995, 1.0, 1.0];
        assert_eq!(blocks(&steady, 0.10, 4), PILOT_BLOCKS);
        let noisy = [1.0, 1.2, 0.85, 1.1, 0.9, 1.15, 0.95, 1.0];
        assert!(blocks(&noisy, 0.10, 4) > 60);
        assert!(blocks(&noisy, 0.10, 1) < blocks(&noisy, 0.10, 4), "fewer claims need fewer blocks");
        assert!(blocks(&noisy, 0.05, 4) > 3 * blocks(&noisy, 0.10, 4), "a finer margin needs more");
    }

    #[test]
    fn ratios_without_a_logarithm_ask_for_no_more() {
        assert_eq!(blocks(&[0.0; 8], 0.1, 1), PILOT_BLOCKS);
    }
}
