//! The comparison of two runs, of other machines, kernels or versions.

use std::fmt::Write;

use crate::measure::show_number;
use crate::report::results::RunResults;
use crate::statistics::effect::Effect;
use crate::verdict::ruling::{ClaimVerdict, shown};

/// The verdicts of two runs, and the quotient of their ratios.
pub fn text(a: &RunResults, b: &RunResults) -> String {
    let mut text = String::new();
    for (name, run) in [("A", a), ("B", b)] {
        let place = &run.environment;
        let _ = writeln!(
            text,
            "{name}: tenfold {}, {}, {} processors, Linux {}, profile {}, seed {}",
            place.version,
            place.processor,
            place.processors.len(),
            place.kernel,
            run.plan.profile.name(),
            run.plan.seed
        );
    }
    let (mut both, mut same) = (0, 0);
    for verdict in &a.verdicts {
        let find =
            |other: &&ClaimVerdict| other.experiment == verdict.experiment && other.says == verdict.says;
        let Some(other) = b.verdicts.iter().find(find) else { continue };
        both += 1;
        same += usize::from(verdict.ruling == other.ruling);
        let differs = if verdict.ruling == other.ruling { " " } else { "≠" };
        let _ =
            writeln!(text, "\n{differs} {}, claim {}: {}", verdict.experiment, verdict.claim, verdict.says);
        for (name, one) in [("A", verdict), ("B", other)] {
            let value = one.effect.as_ref().map_or_else(|| one.ours.clone(), shown);
            let _ = writeln!(text, "    {name}: {:<18} {value}", one.ruling.to_string());
        }
        if let (Some(a), Some(b)) = (&verdict.effect, &other.effect) {
            let (ratio, low, high) = quotient(a, b);
            let _ = writeln!(
                text,
                "    B / A: {} [{}–{}]",
                show_number(ratio),
                show_number(low),
                show_number(high)
            );
        }
    }
    match both {
        0 => text.push_str("\nthe runs have no claim in common\n"),
        _ => {
            let _ = writeln!(text, "\n{same} of {both} verdicts agree");
        }
    }
    text
}

/// The quotient of two effects with its interval: the half-widths of independent logarithms add as squares.
fn quotient(a: &Effect, b: &Effect) -> (f64, f64, f64) {
    let ratio = b.mean / a.mean;
    let half = a.relative().ln_1p().hypot(b.relative().ln_1p());
    (ratio, ratio / half.exp(), ratio * half.exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotient_is_less_certain_than_each_of_the_two() {
        let effect = |mean: f64, half: f64| Effect {
            mean,
            low: mean / half,
            high: mean * half,
            blocks: 8,
            deviation: 0.05,
            bootstrap: None,
        };
        let (ratio, low, high) = quotient(&effect(2.0, 1.03), &effect(4.0, 1.04));
        assert!(
            (ratio - 2.0).abs() < 1e-9 && high / ratio > 1.04 && ratio / low > 1.04 && high / ratio < 1.06
        );
    }
}
