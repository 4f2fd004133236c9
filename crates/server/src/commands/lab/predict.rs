//! `tenfold lab run --predict`: a guess for each claim, before the first trial.

use std::io::{BufRead, Write, stderr, stdin};

use tenfold_lab::plan::RunPlan;
use tenfold_lab::verdict::prediction::{self, Prediction, ScoredPrediction};

use super::failure::LabFailure;
use crate::diagnostics::visible;

/// Asks for a guess about each claim that can be tested here. The end of the input leaves the others out.
pub(super) fn ask(plan: &RunPlan) -> Result<Vec<Prediction>, LabFailure> {
    ask_on(plan, &mut stdin().lock(), &mut stderr().lock()).map_err(|error| {
        LabFailure(1, format!("cannot read guesses from standard input: {error}; run without --predict"))
    })
}

fn ask_on(
    plan: &RunPlan,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> std::io::Result<Vec<Prediction>> {
    let mut predictions = Vec::new();
    writeln!(output, "Does each claim hold here? Enter leaves a claim out.")?;
    for planned in &plan.experiments {
        let one = &planned.experiment;
        for (number, claim) in one.claims.iter().enumerate() {
            if planned.untestable.contains_key(&number) {
                continue;
            }
            let has_factor = prediction::has_factor(claim);
            let published = if claim.published.is_empty() { "no number" } else { &claim.published };
            let asked = format!("\n{}: {}\n  published: {published}\n  rule: {claim}", one.name, claim.says);
            writeln!(output, "{}", visible(&asked))?;
            let factor = if has_factor { ", or the ratio that will be found" } else { "" };
            let guess = loop {
                write!(output, "  HOLDS, REVERSED, NO DIFFERENCE (h, r, n){factor}: ")?;
                output.flush()?;
                let mut line = String::new();
                if input.read_line(&mut line)? == 0 {
                    writeln!(output)?;
                    return Ok(predictions);
                }
                match prediction::parse(&line, has_factor) {
                    Ok(guess) => break guess,
                    Err(why) => writeln!(output, "  {why}")?,
                }
            };
            let claim = number + 1;
            predictions.extend(guess.map(|guess| Prediction { experiment: one.name.clone(), claim, guess }));
        }
    }
    Ok(predictions)
}

/// Predictions beside what was found, with the sum.
pub(super) fn scores(scores: &[ScoredPrediction]) -> String {
    if scores.is_empty() {
        return String::new();
    }
    let mut text = format!("predictions: {}\n", prediction::total(scores));
    for score in scores {
        let points = match score.points {
            Some(points) => format!("{points:.1}"),
            None => "open".to_owned(),
        };
        text.push_str(&format!(
            "  {points:<5} guessed {}, found {}: {}: {}\n",
            score.prediction.guess, score.found, score.prediction.experiment, score.says
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use tenfold_lab::experiment::library;
    use tenfold_lab::machine::environment::LabEnvironment;
    use tenfold_lab::plan::Wishes;
    use tenfold_lab::verdict::prediction::Guess;
    use tenfold_lab::verdict::ruling::Ruling;

    use super::*;

    fn asked(answers: &str) -> (Vec<Prediction>, String) {
        let chosen = library::select(&["n16-idle".to_owned()]).expect("it exists");
        let plan = RunPlan::new(chosen, &Wishes::default(), &LabEnvironment::default());
        let mut output = Vec::new();
        let found = ask_on(&plan, &mut answers.as_bytes(), &mut output).expect("memory");
        (found, String::from_utf8(output).expect("it is text"))
    }

    #[test]
    fn each_claim_is_asked_about_and_a_wrong_word_again() {
        let (found, text) = asked("20\nperhaps\nh\n\n");
        let guesses: Vec<(usize, Guess)> = found.iter().map(|one| (one.claim, one.guess)).collect();
        assert_eq!(guesses, [(1, Guess::Factor(20.0)), (2, Guess::Ruling(Ruling::Holds))]);
        assert!(text.contains("poll pays for idle connections") && text.contains("`perhaps` is not a guess"));
        assert_eq!(text.matches("published:").count(), 3);
    }

    #[test]
    fn the_end_of_the_input_leaves_the_others_out() {
        assert_eq!(asked("h\n").0.len(), 1);
        assert_eq!(asked("").0, []);
    }
}
