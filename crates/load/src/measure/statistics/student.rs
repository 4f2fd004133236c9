//! Student's t distribution, by the incomplete beta function (Press et al., Numerical Recipes, §6.4).

/// The two-sided p-value of `t` with `degrees` degrees of freedom.
pub fn p_value(t: f64, degrees: f64) -> f64 {
    if !t.is_finite() {
        return if t.is_nan() { 1.0 } else { 0.0 };
    }
    incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t))
}

/// The positive `t` whose two-sided p-value is `alpha`: 0.05 gives the factor of a 95 % interval.
pub fn quantile(alpha: f64, degrees: f64) -> f64 {
    if degrees <= 0.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while p_value(high, degrees) > alpha {
        high *= 2.0;
    }
    // Doubles have 53 bits, so more halvings change nothing.
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if p_value(middle, degrees) > alpha {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// The regularised incomplete beta function.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges fast only below this point; the function is symmetric.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let guard = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut result = d;
    for step in 1..300 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guard(1.0 + even * d);
        c = guard(1.0 + even / c);
        result *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guard(1.0 + odd * d);
        c = guard(1.0 + odd / c);
        result *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

/// The logarithm of the gamma function for positive arguments (Lanczos' approximation, g = 7).
fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        let pi = std::f64::consts::PI;
        return (pi / (pi * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let series = COEFFICIENTS.iter().zip(1..).map(|(c, i)| c / (x + f64::from(i)));
    let sum = 0.999_999_999_999_809_9 + series.sum::<f64>();
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_printed_tables() {
        for (alpha, degrees, table) in [
            (0.05, 1.0, 12.706_205),
            (0.05, 2.0, 4.302_653),
            (0.05, 7.0, 2.364_624),
            (0.05, 30.0, 2.042_272),
            (0.05, 1000.0, 1.962_339),
            (0.01, 7.0, 3.499_483),
            (0.10, 11.0, 1.795_885),
        ] {
            let found = quantile(alpha, degrees);
            assert!((found - table).abs() < 1e-5, "alpha {alpha}, {degrees} degrees: {found}, not {table}");
        }
    }

    #[test]
    fn a_quantile_has_its_own_p_value() {
        for degrees in [1.0, 1.5, 3.0, 7.0, 20.0, 200.0] {
            for alpha in [0.2, 0.05, 0.0125, 0.001] {
                assert!((p_value(quantile(alpha, degrees), degrees) - alpha).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn extremes_have_a_p_value() {
        assert!((p_value(0.0, 5.0) - 1.0).abs() < 1e-12);
        assert_eq!(p_value(f64::INFINITY, 5.0), 0.0);
        assert_eq!(p_value(f64::NAN, 5.0), 1.0);
        assert_eq!(quantile(0.05, 0.0), f64::INFINITY);
    }
}
