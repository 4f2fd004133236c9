//! The first part of a report: charts of models by cost, and the advice of the run.

use std::fmt::Write;

use tenfold_chart::{Bar, bars, escape, figure};

use crate::measure::{Measure, show_count};
use crate::report::advice::Advice;
use crate::report::costs::{ModelComparison, ModelCost, main};
use crate::report::results::RunResults;

/// The chart of the main comparison with the advice, and the charts of the others. Empty if the run compared no models.
pub(super) fn part(results: &RunResults) -> String {
    let all = ModelComparison::all(results);
    let all: Vec<&ModelComparison> = all.iter().filter(|one| one.costs.len() > 1).collect();
    let Some(main) = main(all.iter().copied()) else { return String::new() };
    let advice = Advice::of(results);
    let mut part = format!("<div id=\"models\" class=\"charts\">{}<div><h2>Models by cost</h2>", chart(main));
    for sentence in &advice.sentences {
        let _ = write!(part, "<p>{}</p>", with_commands(sentence));
    }
    let _ = write!(part, "<pre tabindex=\"0\">{}</pre></div></div>", escape(&advice.command));
    let others: Vec<String> =
        all.iter().filter(|one| one.place() != main.place()).map(|one| chart(one)).collect();
    if !others.is_empty() {
        let _ = write!(
            part,
            "<details><summary>Models under other loads: {}</summary><div class=\"charts\">{}</div></details>",
            show_count(others.len(), "chart"),
            others.concat()
        );
    }
    part
}

/// A sentence for HTML, with the commands between backticks.
fn with_commands(sentence: &str) -> String {
    let word = |(place, part): (usize, &str)| match place % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    sentence.split('`').enumerate().map(word).collect()
}

/// A bar for each model, the cheapest first.
fn chart(one: &ModelComparison) -> String {
    let bar = |cost: &ModelCost| Bar {
        label: cost.engine.to_string(),
        value: cost.value,
        shown: Measure::Cpu.show(cost.value),
        interval: cost.interval,
        // A far sample would shorten all bars. The charts of experiments show the samples.
        runs: Vec::new(),
    };
    let all: Vec<Bar> = one.costs.iter().map(bar).collect();
    let interval = match one.costs.iter().all(|cost| cost.interval.is_some()) {
        true => format!("95 % interval of {}", show_count(one.blocks, "block")),
        false => format!("{}, without an interval", show_count(one.blocks, "block")),
    };
    let title = format!("Models by CPU time for each response: {}; {interval}", one.place());
    figure(&title, &bars(&title, None, &all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::costs::tests::{noisy, results};

    #[test]
    fn a_bar_for_each_model_has_its_interval_and_the_cheapest_is_first() {
        let cost = |cell: &str| match cell {
            "epoll" => 7.0,
            "uring" => 6.5,
            "fork" => 30.0,
            _ => 9.0,
        };
        let results = results(&["own-models", "n16-idle"], 8, |cell, block| noisy(cell, block, cost(cell)));
        let part = part(&results);
        let (first, others) = part.split_once("<details>").expect("n16-idle is another load");
        assert!(first.starts_with("<div id=\"models\" class=\"charts\"><figure class=\"chart\">"), "{first}");
        assert_eq!(first.matches("class=\"value\"").count(), 11, "{first}");
        assert_eq!(first.matches("class=\"interval\"").count(), 11, "{first}");
        let label =
            |name: &str| first.find(&format!(">{name}</text>")).unwrap_or_else(|| panic!("no {name}"));
        assert!(label("uring") < label("epoll") && label("epoll") < label("fork"));
        let Advice { sentences, command, .. } = Advice::of(&results);
        assert!(sentences.iter().all(|one| first.contains(&with_commands(one))) && first.contains(&command));
        assert!(first.contains("which <code>tenfold tune SITE</code> measures"), "{first}");
        assert!(others.starts_with("<summary>Models under other loads: 2 charts</summary>"), "{others}");
    }

    #[test]
    fn a_run_of_one_block_has_no_interval_and_a_run_of_other_questions_no_chart() {
        let few = part(&results(&["n16-idle"], 1, |cell, block| noisy(cell, block, 10.0)));
        assert!(few.contains("1 block, without an interval") && !few.contains("class=\"interval\""), "{few}");
        assert_eq!(part(&results(&["se20-404"], 8, |cell, block| noisy(cell, block, 10.0))), "");
    }
}
