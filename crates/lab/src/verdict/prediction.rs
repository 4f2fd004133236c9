//! Guesses that are made before a run, kept in its folder, and scored against its verdicts.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::experiment::claim::{PublishedClaim, VerdictRule};
use crate::measure::show_number;
use crate::record;
use crate::verdict::ruling::{ClaimVerdict, Ruling, shown};

/// The file of predictions in the folder of a run.
pub const PREDICTIONS: &str = "predictions.json";

/// A factor within this distance of the one that is found is right, as one inside the interval is.
const NEAR: f64 = 1.25;
/// A factor on the right side of 1 within this distance has half a point.
const FAIR: f64 = 2.0;

/// A guess.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guess {
    /// The verdict.
    Ruling(Ruling),
    /// The ratio that will be found.
    Factor(f64),
}

impl fmt::Display for Guess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Guess::Ruling(ruling) => ruling.fmt(f),
            Guess::Factor(factor) => f.write_str(&show_number(*factor)),
        }
    }
}

/// A guess about a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// The experiment.
    pub experiment: String,
    /// The number of the claim, from 1.
    pub claim: usize,
    /// The guess.
    pub guess: Guess,
}

/// Whether a claim has a factor that can be guessed: it is about a ratio, and a number was published.
pub fn has_factor(claim: &PublishedClaim) -> bool {
    let is_ratio = matches!(claim.rule, VerdictRule::Ratio { .. } | VerdictRule::Bound { to: Some(_), .. });
    is_ratio && claim.value.is_some()
}

/// Reads a guess; none if it is left out.
pub fn parse(text: &str, has_factor: bool) -> Result<Option<Guess>, String> {
    let word = text.trim().to_ascii_lowercase();
    let factor = word.trim_end_matches(['x', '×']).trim().parse::<f64>().ok();
    match (word.as_str(), factor) {
        ("", _) => Ok(None),
        ("h" | "holds", _) => Ok(Some(Guess::Ruling(Ruling::Holds))),
        ("r" | "reversed", _) => Ok(Some(Guess::Ruling(Ruling::Reversed))),
        ("n" | "no difference" | "no-difference", _) => Ok(Some(Guess::Ruling(Ruling::NoDifference))),
        (_, Some(factor)) if has_factor && factor > 0.0 && factor.is_finite() => {
            Ok(Some(Guess::Factor(factor)))
        }
        _ if has_factor => Err(format!(
            "`{word}` is not a guess: type HOLDS, REVERSED, NO DIFFERENCE (or h, r, n), or a factor such as 1.5"
        )),
        _ => Err(format!("`{word}` is not a guess: type HOLDS, REVERSED or NO DIFFERENCE (or h, r, n)")),
    }
}

/// Writes predictions into the folder of a run.
pub fn write(predictions: &[Prediction], folder: &Path) -> Result<(), String> {
    let path = folder.join(PREDICTIONS);
    let text = serde_json::to_string_pretty(predictions).map_err(|error| error.to_string())?;
    record::write(&path, text)
}

/// Reads the predictions of a run; none if nobody was asked.
pub fn read(folder: &Path) -> Result<Vec<Prediction>, String> {
    let path = folder.join(PREDICTIONS);
    let failed = |why: String| format!("cannot read {}: {why}", path.display());
    match record::text(&path) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| failed(error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// A prediction beside what was found.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredPrediction {
    /// The prediction.
    pub prediction: Prediction,
    /// The sentence.
    pub says: String,
    /// The verdict or the ratio that was found.
    pub found: String,
    /// From 0 to 1; none if the run left the claim open.
    pub points: Option<f64>,
}

/// Predictions beside verdicts.
pub fn score(predictions: &[Prediction], verdicts: &[ClaimVerdict]) -> Vec<ScoredPrediction> {
    let one = |prediction: &Prediction| {
        let fits = |verdict: &&ClaimVerdict| {
            verdict.experiment == prediction.experiment && verdict.claim == prediction.claim
        };
        let verdict = verdicts.iter().find(fits)?;
        let effect = verdict.effect.as_ref().filter(|_| verdict.is_ratio);
        let found = match (prediction.guess, effect) {
            (Guess::Factor(_), Some(effect)) => shown(effect),
            _ => verdict.ruling.to_string(),
        };
        let open =
            matches!(verdict.ruling, Ruling::Inconclusive | Ruling::NotTestableHere | Ruling::Artefact);
        let points = match (prediction.guess, effect) {
            (Guess::Ruling(guess), _) => (!open).then(|| f64::from(u8::from(guess == verdict.ruling))),
            (Guess::Factor(_), None) => None,
            (Guess::Factor(guess), Some(effect)) => {
                let distance = (guess / effect.mean).ln().abs().exp();
                let same_side = (guess > 1.0) == (effect.mean > 1.0);
                Some(match () {
                    () if effect.covers(guess) || distance <= NEAR => 1.0,
                    () if same_side && distance <= FAIR => 0.5,
                    () => 0.0,
                })
            }
        };
        Some(ScoredPrediction { prediction: prediction.clone(), says: verdict.says.clone(), found, points })
    };
    predictions.iter().filter_map(one).collect()
}

/// The score in words.
pub fn total(scores: &[ScoredPrediction]) -> String {
    let points: Vec<f64> = scores.iter().filter_map(|score| score.points).collect();
    let open = match scores.len() - points.len() {
        0 => String::new(),
        count => format!(", {count} left open by the run"),
    };
    format!("{} of {} points{open}", points.iter().sum::<f64>(), points.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Measure;
    use crate::statistics::effect::Effect;

    fn verdict(claim: usize, ruling: Ruling, ratio: Option<f64>) -> ClaimVerdict {
        let effect = ratio.and_then(|ratio| Effect::of(&[ratio * 0.99, ratio, ratio * 1.01]));
        ClaimVerdict {
            experiment: "x".to_owned(),
            claim,
            says: "It is so.".to_owned(),
            published: String::new(),
            measure: Measure::Cpu,
            rule: String::new(),
            ruling,
            because: String::new(),
            ours: String::new(),
            is_ratio: effect.is_some(),
            effect,
            p: None,
            noisy: (0, 3),
        }
    }

    #[test]
    fn guesses_are_words_letters_or_factors() {
        let ruling = |ruling| Ok(Some(Guess::Ruling(ruling)));
        assert_eq!(parse(" HOLDS\n", false), ruling(Ruling::Holds));
        assert_eq!(parse("r", true), ruling(Ruling::Reversed));
        assert_eq!(parse("no difference", false), ruling(Ruling::NoDifference));
        assert_eq!(parse("2.5x", true), Ok(Some(Guess::Factor(2.5))));
        assert_eq!(parse("", true), Ok(None));
        assert!(parse("2.5", false).expect_err("no factor").contains("HOLDS, REVERSED or NO DIFFERENCE"));
        assert!(parse("-1", true).expect_err("negative").contains("a factor such as"));
        assert!(parse("inf", true).is_err() && parse("maybe", true).is_err());
    }

    #[test]
    fn points_follow_the_verdict_or_the_distance() {
        let verdicts = [
            verdict(1, Ruling::Holds, Some(2.0)),
            verdict(2, Ruling::Inconclusive, None),
            verdict(3, Ruling::Reversed, None),
        ];
        let guess = |claim, guess| Prediction { experiment: "x".to_owned(), claim, guess };
        let points = |claim, word| score(&[guess(claim, word)], &verdicts)[0].points;
        assert_eq!(points(1, Guess::Ruling(Ruling::Holds)), Some(1.0));
        assert_eq!(points(3, Guess::Ruling(Ruling::Holds)), Some(0.0));
        assert_eq!(points(2, Guess::Ruling(Ruling::Holds)), None, "the run left it open");
        for (factor, expected) in [(2.0, 1.0), (2.4, 1.0), (3.5, 0.5), (1.1, 0.5), (0.9, 0.0), (9.0, 0.0)] {
            assert_eq!(points(1, Guess::Factor(factor)), Some(expected), "{factor}");
        }
        let all = [guess(1, Guess::Factor(3.5)), guess(2, Guess::Ruling(Ruling::Holds))];
        assert_eq!(total(&score(&all, &verdicts)), "0.5 of 1 points, 1 left open by the run");
        assert!(score(&[guess(9, Guess::Factor(1.0))], &verdicts).is_empty());
    }

    #[test]
    fn predictions_are_kept() {
        let folder = std::env::temp_dir().join(format!("tenfold-lab-guesses-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        assert_eq!(read(&folder), Ok(Vec::new()));
        let all = [
            Prediction { experiment: "x".to_owned(), claim: 1, guess: Guess::Factor(1.5) },
            Prediction { experiment: "x".to_owned(), claim: 2, guess: Guess::Ruling(Ruling::NoDifference) },
        ];
        write(&all, &folder).expect("it is written");
        assert_eq!(read(&folder).expect("it is read"), all);
        std::fs::write(folder.join(PREDICTIONS), "[").expect("it is written");
        assert!(read(&folder).expect_err("broken").contains("predictions.json"));
        std::fs::remove_dir_all(&folder).expect("it is removed");
    }
}
