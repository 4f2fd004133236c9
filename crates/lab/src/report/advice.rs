//! Advice from a run: the cheapest models, their meaning for a server, the limits of the comparison, and a command.

use std::fmt;

use tenfold_engine::{Engine, MODELS};

use crate::measure::{Measure, show_count, show_number};
use crate::report::costs::{ModelComparison, ModelCost, main};
use crate::report::results::RunResults;
use crate::statistics::decision::Decision;
use crate::statistics::effect::{FEWEST_BLOCKS, disturbed_too_often};
use crate::verdict::ruling::shown;

/// The model that `auto` takes on a kernel with epoll.
pub const DEFAULT: Engine = Engine::Epoll;
/// The command that compares models, if a run did not.
const COMPARE: &str = "tenfold lab run --only own-models,n16-idle";

/// Three sentences, and the command for the next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The result, its meaning, and its limits.
    pub sentences: [String; 3],
    /// The command.
    pub command: String,
    /// The purpose of the command.
    pub purpose: &'static str,
}

impl Advice {
    /// Derives advice from the trials of a run.
    pub fn of(results: &RunResults) -> Advice {
        let all = ModelComparison::all(results);
        let enough: Vec<&ModelComparison> = all.iter().filter(|one| one.is_enough()).collect();
        match main(enough.iter().copied()) {
            Some(main) => Advice::by(main, &enough),
            None => Advice::without_comparison(main(&all)),
        }
    }

    fn by(main: &ModelComparison, all: &[&ModelComparison]) -> Advice {
        let noise = disturbed_too_often(main.blocks, main.disturbed, "block");
        let chosen = choice(main, all);
        let left_out = MODELS.iter().filter(|model| main.cost(model.engine).is_none()).map(|model| {
            let failed = main.lost.iter().any(|(engine, _)| *engine == model.engine);
            format!("{}{}", model.name, if failed { " (no result)" } else { "" })
        });
        let others = ["latency", "memory", "TLS", "several workers"].map(str::to_owned);
        let left_out: Vec<String> = left_out.chain(others).collect();
        let disturbed = (main.disturbed > 0 && noise.is_none()).then(|| {
            format!(
                "{} of {} were disturbed, and the comparison",
                main.disturbed,
                show_count(main.blocks, "block")
            )
        });
        let limits = format!(
            "{} leaves out {} and your own files, which `tenfold tune SITE` measures.",
            disturbed.unwrap_or("The comparison".to_owned()),
            left_out.join(", ")
        );
        if let Some(why) = noise {
            return Advice {
                sentences: [
                    format!("{why}. Measured nevertheless: {}", result(main)),
                    format!(
                        "So no advice is established{}: repeat the run on a quiet machine, and keep the default, \
                         {DEFAULT}, until then.",
                        in_load(main)
                    ),
                    limits,
                ],
                command: "tenfold lab doctor".to_owned(),
                purpose: "list the faults of this machine",
            };
        }
        Advice {
            sentences: [result(main), meaning(chosen, main, all), limits],
            command: format!("tenfold serve --engine {chosen}"),
            purpose: "serve this folder with it",
        }
    }

    /// Advice if no comparison has a result.
    fn without_comparison(best: Option<&ModelComparison>) -> Advice {
        let why = match best {
            None => "This run did not compare the cost of models: no experiment of it measures two of them under one \
                     load."
                .to_owned(),
            Some(best) if best.costs.len() < 2 => {
                let measured = best.costs.first().map_or("no model", |cost| cost.engine.name());
                let lost: Vec<String> =
                    best.lost.iter().map(|(engine, why)| format!("{engine}: {why}")).collect();
                format!(
                    "There is no comparison of models: {measured} has a result in {}, and others have none ({}).",
                    best.place(),
                    lost.join("; ")
                )
            }
            Some(best) => format!(
                "The run is too short to compare models: {} has {} with all models, and a verdict needs \
                 {FEWEST_BLOCKS}.",
                best.place(),
                show_count(best.blocks, "block")
            ),
        };
        Advice {
            sentences: [
                why,
                format!("So the run is no reason to leave the default, {DEFAULT}."),
                "own-models compares eleven models, and n16-idle compares three with many idle connections."
                    .to_owned(),
            ],
            command: COMPARE.to_owned(),
            purpose: "compare models",
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sentences.iter().try_for_each(|sentence| writeln!(f, "{sentence}"))
    }
}

/// Chooses the model of `main` with the least regret: its highest proven cost, relative to the cheapest model, in any
/// comparison. Of equal models it chooses the default, then the cheapest.
fn choice(main: &ModelComparison, all: &[&ModelComparison]) -> Engine {
    let regret = |cost: &&ModelCost| {
        let worst = worst(cost.engine, all).and_then(|(_, cost)| cost.ratio.as_ref());
        (worst.map_or(1.0, |ratio| ratio.low), cost.engine != DEFAULT)
    };
    let least = |a: &&ModelCost, b: &&ModelCost| {
        let (a, b) = (regret(a), regret(b));
        a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
    };
    main.costs.iter().min_by(least).map_or(DEFAULT, |cost| cost.engine)
}

/// The comparison in which a model costs most, among those in which it costs more than the cheapest model.
fn worst<'a>(engine: Engine, all: &[&'a ModelComparison]) -> Option<(&'a ModelComparison, &'a ModelCost)> {
    let dearer = |one: &&'a ModelComparison| {
        let cost = one.cost(engine).filter(|cost| cost.dearer == Decision::Holds)?;
        Some((*one, cost))
    };
    let low = |cost: &ModelCost| cost.ratio.as_ref().map_or(1.0, |ratio| ratio.low);
    all.iter().filter_map(dearer).max_by(|(_, a), (_, b)| low(a).total_cmp(&low(b)))
}

/// The load of a comparison as a part of a sentence.
fn in_load(main: &ModelComparison) -> String {
    format!(" in this load ({})", main.load)
}

/// The cheapest model, and the others in relation to it.
fn result(main: &ModelComparison) -> String {
    let Some(cheapest) = main.costs.first() else { return String::new() };
    let (low, high) = cheapest.interval.unwrap_or((cheapest.value, cheapest.value));
    let mut text = format!(
        "{} costs the least CPU time for each response in {}: {} [{}–{}]",
        cheapest.engine,
        main.place(),
        Measure::Cpu.show(cheapest.value),
        show_number(low),
        show_number(high)
    );
    let of = |decision: Decision| -> Vec<String> {
        let all = main.costs[1..].iter().filter(|cost| cost.dearer == decision);
        all.map(|cost| format!("{} ({} times)", cost.engine, ratio(cost))).collect()
    };
    let same = of(Decision::NoDifference);
    if !same.is_empty() {
        text += &format!("; the same within ±{:.0} %: {}", main.margin * 100.0, same.join(", "));
    }
    let open = [of(Decision::Inconclusive), of(Decision::Reversed)].concat();
    if !open.is_empty() {
        text += &format!("; not distinguishable from it (Holm's correction): {}", open.join(", "));
    }
    match of(Decision::Holds).as_slice() {
        [] => {}
        [first, _, .., last] => text += &format!("; dearer: from {first} to {last}"),
        dearer => text += &format!("; dearer: {}", dearer.join(", ")),
    }
    text + "."
}

/// The meaning of all comparisons for the choice of `chosen`.
fn meaning(chosen: Engine, main: &ModelComparison, all: &[&ModelComparison]) -> String {
    let dearer = |(one, cost): (&ModelComparison, &ModelCost)| {
        let cheapest = one.costs.first().map_or("", |cost| cost.engine.name());
        format!("costs {} times as much as {cheapest} in {}", ratio(cost), one.place())
    };
    let default = worst(DEFAULT, all);
    let mut text = match default {
        _ if chosen == DEFAULT => format!("So no measured model is a reason to leave the default, {DEFAULT}"),
        Some(worst) => {
            let load = in_load(main);
            format!("So {chosen} is the better choice{load}: the default, {DEFAULT}, {}", dearer(worst))
        }
        None => format!(
            "So {chosen} is the best measured choice, but the default, {DEFAULT}, has no result in {}",
            main.experiment
        ),
    };
    let others = all.iter().filter(|one| one.place() != main.place() && one.cost(chosen).is_some()).count();
    match worst(chosen, all) {
        Some(worst) => text += &format!(", although {chosen} {}", dearer(worst)),
        None if others > 0 => {
            text +=
                &format!(", and no model is provably cheaper in {}", show_count(others, "other comparison"));
        }
        None => {}
    }
    text + "."
}

fn ratio(cost: &ModelCost) -> String {
    cost.ratio.as_ref().map_or("1".to_owned(), shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::costs::tests::{noisy, results, salt};

    type Cpu = Option<Result<f64, &'static str>>;

    fn advice(experiments: &[&str], blocks: usize, cpu: impl Fn(&str, usize) -> Cpu) -> Advice {
        Advice::of(&results(experiments, blocks, cpu))
    }

    /// The cost of a model in n16-idle, without and with idle connections.
    fn idle(poll: (f64, f64), epoll: (f64, f64), uring: (f64, f64)) -> impl Fn(&str, usize) -> Cpu {
        move |cell, block| {
            let (name, idle) = cell.split_once('-').expect("n16-idle has such cells");
            let (few, many) = match name {
                "poll" => poll,
                "epoll" => epoll,
                _ => uring,
            };
            noisy(cell, block, if idle == "0" { few } else { many })
        }
    }

    #[test]
    fn the_default_is_kept_if_nothing_is_provably_cheaper() {
        let found = advice(&["n16-idle"], 8, idle((10.0, 41.0), (10.1, 10.2), (10.0, 10.1)));
        let [result, meaning, limits] = &found.sentences;
        assert!(
            result.contains(
                " costs the least CPU time for each response in n16-idle (16 connections, 2,000 idle"
            )
        );
        assert!(
            result.contains("the same within ±10 %: ") && result.contains("; dearer: poll (4."),
            "{result}"
        );
        assert_eq!(
            meaning,
            "So no measured model is a reason to leave the default, epoll, and no model is provably cheaper in 1 \
             other comparison."
        );
        assert!(
            limits
                .starts_with("The comparison leaves out naive, fork, thread, pool, busy, select, libevent, ")
        );
        assert!(limits.contains("latency, memory, TLS, several workers and your own files"), "{limits}");
        assert_eq!(found.command, "tenfold serve --engine epoll");
    }

    #[test]
    fn overlapping_intervals_are_no_order() {
        // Each model costs between half and twice 10 µs.
        let wild = |cell: &str, block: usize| Some(Ok([5.0, 20.0, 10.0, 7.0, 14.0][salt(cell, block)]));
        let found = advice(&["own-models"], 8, wild);
        let result = &found.sentences[0];
        let (_, open) =
            result.split_once("; not distinguishable from it (Holm's correction): ").expect(result);
        assert_eq!(open.matches(" times)").count(), 10, "{result}");
        assert!(!result.contains("dearer") && !result.contains("the same within"), "{result}");
        assert_eq!(found.sentences[1], "So no measured model is a reason to leave the default, epoll.");
        assert_eq!(found.command, "tenfold serve --engine epoll");
    }

    #[test]
    fn a_model_that_is_cheap_without_idle_connections_only_is_not_advised() {
        let found = advice(&["n16-idle"], 8, idle((6.0, 80.0), (10.0, 10.0), (8.0, 8.0)));
        assert_eq!(found.command, "tenfold serve --engine uring");
        let meaning = &found.sentences[1];
        assert!(
            meaning.starts_with(
                "So uring is the better choice in this load (16 connections, 2,000 idle, 1,067 bytes): the default, epoll, \
                 costs 1."
            ),
            "{meaning}"
        );
        assert!(meaning.contains(
            " times as much as poll in n16-idle (16 connections, 1,067 bytes), although uring costs 1.3"
        ));
    }

    #[test]
    fn disturbed_blocks_are_counted() {
        let mut results = results(&["n16-idle"], 9, idle((10.0, 41.0), (10.1, 10.2), (10.0, 10.1)));
        results.trials[0].flags.push("another program ran".to_owned());
        let limits = &Advice::of(&results).sentences[2];
        assert!(
            limits.starts_with("1 of 9 blocks were disturbed, and the comparison leaves out naive"),
            "{limits}"
        );
    }

    #[test]
    fn a_disturbed_run_establishes_no_advice() {
        let mut results = results(&["n16-idle"], 8, idle((6.0, 80.0), (10.0, 10.0), (8.0, 8.0)));
        results.trials.iter_mut().for_each(|trial| trial.flags.push("another program ran".to_owned()));
        let found = Advice::of(&results);
        let [result, meaning, limits] = &found.sentences;
        let why = "8 of 8 blocks were disturbed, and fewer than 8 without a disturbance earn no verdict. ";
        assert!(result.starts_with(why), "{result}");
        let expected =
            "So no advice is established in this load (16 connections, 2,000 idle, 1,067 bytes): repeat ";
        assert!(meaning.starts_with(expected) && !meaning.contains("better choice"), "{meaning}");
        assert!(limits.starts_with("The comparison leaves out naive"), "{limits}");
        assert_eq!(found.command, "tenfold lab doctor");
    }

    #[test]
    fn many_dearer_models_are_a_range() {
        let cost = |cell: &str, block: usize| match cell {
            "epoll" | "uring" | "select" | "poll" => noisy(cell, block, 10.0),
            "thread" => noisy(cell, block, 15.0),
            "fork" => noisy(cell, block, 90.0),
            _ => noisy(cell, block, 30.0),
        };
        let result = &advice(&["own-models"], 8, cost).sentences[0];
        let (_, dearer) = result.split_once("; dearer: ").expect(result);
        assert!(dearer.starts_with("from thread (1.5") && dearer.contains(" to fork (9."), "{result}");
        assert_eq!(dearer.matches(" times)").count(), 2, "{result}");
    }

    #[test]
    fn a_missing_engine_is_named() {
        let broken = |cell: &str, block: usize| match cell.starts_with("epoll") {
            true => Some(Err("epoll_create1: Function not implemented")),
            false => idle((10.0, 30.0), (0.0, 0.0), (9.0, 9.0))(cell, block),
        };
        let found = advice(&["n16-idle"], 8, broken);
        assert_eq!(found.command, "tenfold serve --engine uring");
        let [_, meaning, limits] = &found.sentences;
        assert!(
            meaning.starts_with(
                "So uring is the best measured choice, but the default, epoll, has no result in n16-idle"
            ),
            "{meaning}"
        );
        assert!(limits.contains("select, epoll (no result), libevent"), "{limits}");
    }

    #[test]
    fn one_model_or_too_few_blocks_are_no_comparison() {
        let only = |cell: &str, block: usize| match cell {
            "uring" => Some(Err("there is no io_uring")),
            _ => noisy(cell, block, 10.0),
        };
        let found = advice(&["w12-aio"], 8, only);
        assert_eq!(
            found.sentences[0],
            "There is no comparison of models: epoll has a result in w12-aio (100 connections, 2,496,629 bytes), and \
             others have none (uring: there is no io_uring)."
        );
        let few = advice(&["n16-idle"], 7, idle((10.0, 90.0), (10.0, 10.0), (1.0, 1.0)));
        assert!(
            few.sentences[0]
                .starts_with("The run is too short to compare models: n16-idle (16 connections, ")
        );
        assert!(few.sentences[0].ends_with(" has 7 blocks with all models, and a verdict needs 8."));
        let other = advice(&["se20-404"], 8, |cell, block| noisy(cell, block, 10.0));
        assert!(other.sentences[0].starts_with("This run did not compare the cost of models"));
        for advice in [found, few, other] {
            assert_eq!(advice.sentences[1], "So the run is no reason to leave the default, epoll.");
            assert_eq!(advice.command, COMPARE, "no engine is advised");
        }
    }
}
