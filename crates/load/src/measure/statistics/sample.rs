//! The mean and the deviation of samples, and the confidence of all intervals.

/// The chance of a false difference: intervals have a confidence of 95 %.
pub const ALPHA: f64 = 0.05;

/// The mean and the standard deviation of a sample.
pub fn moments(samples: &[f64]) -> (f64, f64) {
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let squares = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}
