//! Models by cost: cells that differ only in their engine, compared by the CPU time of the server for each response.

use std::collections::BTreeMap;

use tenfold_engine::Engine;
use tenfold_load::statistics::holm;

use crate::experiment::subject::{Cell, Subject, Workload};
use crate::measure::{Measure, show_count, show_number};
use crate::plan::PlannedExperiment;
use crate::record::Blocks;
use crate::report::results::RunResults;
use crate::statistics::decision::{Decision, Direction, decide};
use crate::statistics::effect::{Effect, FEWEST_BLOCKS, p_value};
use crate::verdict::ruling::middle;

/// Settings of a single model. Cells that differ in them still compare models.
const OF_ONE_MODEL: [&str; 4] = ["pool-threads", "pool-queue", "busy-sleep", "libevent-method"];

/// Models under one load.
#[derive(Debug)]
pub(super) struct ModelComparison {
    /// The experiment.
    pub(super) experiment: String,
    /// The load in words.
    pub(super) load: String,
    /// The number of idle connections.
    idle: u32,
    /// The margin of "no difference".
    pub(super) margin: f64,
    /// The number of complete blocks.
    pub(super) blocks: usize,
    /// The number of disturbed blocks among them.
    pub(super) disturbed: usize,
    /// The models with a result, the cheapest first.
    pub(super) costs: Vec<ModelCost>,
    /// The models without a result, with the reason.
    pub(super) lost: Vec<(Engine, String)>,
}

/// The cost of a model.
#[derive(Debug)]
pub(super) struct ModelCost {
    /// The model.
    pub(super) engine: Engine,
    /// CPU time of the server for each response, in microseconds: the geometric mean over blocks.
    pub(super) value: f64,
    /// Its 95 % interval, from two blocks on.
    pub(super) interval: Option<(f64, f64)>,
    /// The ratio to the cheapest model within blocks; `None` for that model.
    pub(super) ratio: Option<Effect>,
    /// The decision on "it costs more than the cheapest model", which corrects for the number of models.
    pub(super) dearer: Decision,
}

impl ModelComparison {
    /// The comparisons of a run, in the order of its plan.
    pub(super) fn all(results: &RunResults) -> Vec<ModelComparison> {
        let of = |planned| groups(planned).into_values().map(|group| compared(results, planned, &group));
        results.plan.experiments.iter().flat_map(of).collect()
    }

    /// Whether each ratio has enough blocks for a verdict.
    pub(super) fn is_enough(&self) -> bool {
        let fewest = |cost: &ModelCost| cost.ratio.as_ref().is_some_and(|one| one.blocks >= FEWEST_BLOCKS);
        self.costs.len() > 1 && self.costs[1..].iter().all(fewest)
    }

    /// The result of a model.
    pub(super) fn cost(&self, engine: Engine) -> Option<&ModelCost> {
        self.costs.iter().find(|cost| cost.engine == engine)
    }

    /// The experiment and the load.
    pub(super) fn place(&self) -> String {
        format!("{} ({})", self.experiment, self.load)
    }
}

/// Selects the comparison that describes the choice best: the most models, then the most idle connections, because most
/// connections of a server on a network are idle.
pub(super) fn main<'a>(all: impl IntoIterator<Item = &'a ModelComparison>) -> Option<&'a ModelComparison> {
    // The last of equal elements is the maximum.
    all.into_iter().max_by_key(|one| (one.costs.len(), one.costs.len() + one.lost.len(), one.idle))
}

/// The planned cells of each model, by load and other settings. Groups of one model compare nothing.
fn groups(planned: &PlannedExperiment) -> BTreeMap<String, Vec<(Engine, &str, &Cell)>> {
    let mut groups: BTreeMap<String, Vec<(Engine, &str, &Cell)>> = BTreeMap::new();
    for one in planned.cells.iter().filter(|one| !one.control) {
        let Some(cell) = planned.experiment.cells.get(&one.cell) else { continue };
        let engine = cell.settings.get("engine").and_then(|name| name.parse::<Engine>().ok());
        // A tracer inflates the CPU time.
        let Some(engine) = engine.filter(|_| cell.subject == Subject::Tenfold && !cell.load.trace) else {
            continue;
        };
        let mut settings = cell.settings.clone();
        settings.remove("engine");
        settings.retain(|name, value| {
            !OF_ONE_MODEL.contains(&name.as_str()) && (name.as_str(), value.as_str()) != ("workers", "1")
        });
        let load = Workload { may_fail: false, milliseconds: None, ..cell.load.clone() };
        let group = groups.entry(format!("{load:?} {settings:?}")).or_default();
        if group.iter().all(|(other, ..)| *other != engine) {
            group.push((engine, &one.cell, cell));
        }
    }
    groups.retain(|_, group| group.len() > 1);
    groups
}

/// Compares the models of a group.
fn compared(
    results: &RunResults,
    planned: &PlannedExperiment,
    group: &[(Engine, &str, &Cell)],
) -> ModelComparison {
    let blocks = results.blocks(&planned.experiment.name);
    let load = group.first().map_or_else(Workload::default, |(.., cell)| cell.load.clone());
    let (mut costs, mut lost) = (Vec::new(), Vec::new());
    for (engine, name, _) in group {
        match cost(*engine, name, &blocks) {
            Ok(cost) => costs.push((*name, cost)),
            Err(why) => lost.push((*engine, why)),
        }
    }
    costs.sort_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
    if let Some(cheapest) = costs.first().map(|(name, _)| *name) {
        let ratios: Vec<Vec<f64>> =
            costs[1..].iter().map(|(name, _)| blocks.ratios(name, cheapest, Measure::Cpu)).collect();
        let adjusted = holm::adjust(&ratios.iter().map(|all| p_value(all, 1.0)).collect::<Vec<_>>());
        for (((_, cost), ratios), p) in costs[1..].iter_mut().zip(ratios).zip(adjusted) {
            cost.ratio = Effect::of(&ratios);
            let decided = |effect: &Effect| decide(effect, p, Direction::Greater, planned.margin);
            cost.dearer = cost.ratio.as_ref().map_or(Decision::Inconclusive, decided);
        }
    }
    ModelComparison {
        experiment: planned.experiment.name.clone(),
        idle: load.idle.unwrap_or_default(),
        load: words(&load),
        margin: planned.margin,
        blocks: blocks.len(),
        disturbed: blocks.flagged(),
        costs: costs.into_iter().map(|(_, cost)| cost).collect(),
        lost,
    }
}

/// Returns the cost of a model, or the reason why it has none.
fn cost(engine: Engine, cell: &str, blocks: &Blocks<'_>) -> Result<ModelCost, String> {
    let usually = |measure| middle(&blocks.values(cell, measure)).unwrap_or_default();
    let runs = blocks.values(cell, Measure::Cpu);
    let Some(value) = middle(&runs) else {
        let why = blocks.failures(cell).first().map_or("it has no trial", |why| *why);
        return Err(why.to_owned());
    };
    // The cost of the other responses would describe another load.
    for (measure, what) in
        [(Measure::Unanswered, "connections without a response"), (Measure::Errors, "failed requests")]
    {
        if usually(measure) > 0.0 {
            return Err(format!("{} {what}", show_number(usually(measure))));
        }
    }
    let effect = Effect::of(&runs);
    Ok(ModelCost {
        engine,
        value: effect.as_ref().map_or(value, |effect| effect.mean),
        interval: effect.map(|effect| (effect.low, effect.high)),
        ratio: None,
        dearer: Decision::Inconclusive,
    })
}

/// A load in words.
fn words(load: &Workload) -> String {
    let count = |number: u64| show_number(number as f64);
    let mut parts = vec![show_count(load.active() as usize, "connection")];
    parts.extend(load.idle.filter(|idle| *idle > 0).map(|idle| format!("{} idle", count(idle.into()))));
    parts.push(format!("{} bytes", count(load.file_bytes())));
    parts.extend(load.rate.map(|rate| format!("{} requests/s", count(rate.into()))));
    parts.extend(load.close.then(|| "a connection for each request".to_owned()));
    parts.extend(load.http2.then(|| "HTTP/2".to_owned()));
    parts.join(", ")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::experiment::library;
    use crate::machine::environment::LabEnvironment;
    use crate::plan::{RunPlan, Wishes};
    use crate::record::Trial;

    /// The results of a run of `experiments`. `cpu` has the CPU time of a cell in each block, or the reason of its
    /// failure; a cell that it does not name has no trial.
    pub(in crate::report) fn results(
        experiments: &[&str],
        blocks: usize,
        cpu: impl Fn(&str, usize) -> Option<Result<f64, &'static str>>,
    ) -> RunResults {
        let names: Vec<String> = experiments.iter().map(|name| (*name).to_owned()).collect();
        let environment = LabEnvironment { processors: vec![0, 1], ..LabEnvironment::default() };
        let wishes = Wishes { peers: Some(Vec::new()), ..Wishes::default() };
        let plan = RunPlan::new(library::select(&names).expect("they exist"), &wishes, &environment);
        let mut trials = Vec::new();
        for planned in &plan.experiments {
            for (block, one) in
                (0..blocks).flat_map(|block| planned.cells.iter().map(move |one| (block, one)))
            {
                let cpu = cpu(&one.cell, block);
                trials.push(Trial {
                    experiment: planned.experiment.name.clone(),
                    cell: one.cell.clone(),
                    control: one.control,
                    block,
                    failed: cpu.and_then(Result::err).map(str::to_owned),
                    values: cpu.and_then(Result::ok).map(|cpu| (Measure::Cpu, cpu)).into_iter().collect(),
                    ..Trial::default()
                });
            }
        }
        let (verdicts, controls) = (Vec::new(), Vec::new());
        RunResults { plan, environment, hosts: None, trials, verdicts, controls }
    }

    /// Noise of a block of ±2 %, in which no two cells agree.
    pub(in crate::report) fn noisy(
        cell: &str,
        block: usize,
        value: f64,
    ) -> Option<Result<f64, &'static str>> {
        Some(Ok(value * (1.0 + (salt(cell, block) as f64 - 2.0) / 100.0)))
    }

    /// A number below 5 that differs between cells and blocks.
    pub(in crate::report) fn salt(cell: &str, block: usize) -> usize {
        cell.bytes().fold(block * 7, |sum, byte| (sum * 31 + usize::from(byte)) % 1_009) % 5
    }

    fn of(results: &RunResults) -> Vec<(String, Vec<&'static str>)> {
        let names = |one: ModelComparison| {
            let all =
                one.costs.iter().map(|cost| cost.engine).chain(one.lost.iter().map(|(engine, _)| *engine));
            let mut names: Vec<_> = all.map(Engine::name).collect();
            names.sort_unstable();
            (one.place(), names)
        };
        ModelComparison::all(results).into_iter().map(names).collect()
    }

    #[test]
    fn cells_that_differ_only_in_their_engine_are_compared() {
        let results = results(&["n16", "w12", "ab-models", "t23-models"], 1, |_, _| Some(Ok(1.0)));
        let found = of(&results);
        let expect = |place: &str, names: &[&str]| {
            let one = found.iter().find(|(found, _)| found == place);
            let one = one.unwrap_or_else(|| panic!("{place} is not in {found:#?}"));
            assert_eq!(one.1, names, "{place}");
        };
        expect("n16-engines (64 connections, 1,067 bytes)", &["epoll", "fork", "select", "thread"]);
        expect("n16-idle (16 connections, 1,067 bytes)", &["epoll", "poll", "uring"]);
        expect("n16-idle (16 connections, 2,000 idle, 1,067 bytes)", &["epoll", "poll", "uring"]);
        expect("w12-aio (100 connections, 2,496,629 bytes)", &["epoll", "uring"]);
        expect("w12-libraries (100 connections, 2,496,629 bytes)", &["asio", "epoll", "libevent"]);
        expect("ab-models (100 connections, 18 bytes, a connection for each request)", &["epoll", "naive"]);
        let other = found.iter().find(|(place, _)| place.starts_with("t23") || place.contains("n16-tcp"));
        assert_eq!(other, None, "its cells have one engine");
    }

    #[test]
    fn a_model_is_dearer_if_its_interval_and_the_correction_for_many_models_agree() {
        let cost = |cell: &str| match cell {
            "epoll" | "select" => 10.0,
            "poll" => 10.4,
            "thread" => 14.0,
            "fork" => 90.0,
            _ => 12.0,
        };
        let wild = |cell: &str, block: usize| match cell {
            // From half to twice the cost: its mean proves nothing.
            "pool" => Some(Ok(cost(cell) * [0.5, 2.0][block % 2])),
            _ => noisy(cell, block, cost(cell)),
        };
        let results = results(&["own-models"], 8, wild);
        let all = ModelComparison::all(&results);
        assert!(all.len() == 1 && all[0].is_enough() && all[0].lost.is_empty(), "{all:?}");
        let dearer = |engine| all[0].cost(engine).map(|cost| cost.dearer);
        assert_eq!(dearer(Engine::Thread), Some(Decision::Holds));
        assert_eq!(dearer(Engine::Fork), Some(Decision::Holds));
        assert_eq!(dearer(Engine::Poll), Some(Decision::NoDifference), "4 % is within the margin");
        assert_eq!(dearer(Engine::Pool), Some(Decision::Inconclusive));
        assert!(matches!(all[0].costs[0].engine, Engine::Epoll | Engine::Select), "{all:?}");
        let last = all[0].costs.last().expect("models");
        assert_eq!(last.engine, Engine::Fork);
        assert!(
            last.interval.is_some_and(|(low, high)| low < 90.0 && 90.0 < high && high < 95.0),
            "{last:?}"
        );
    }

    #[test]
    fn a_model_that_loses_requests_or_fails_has_no_cost() {
        let mut results = results(&["n16-idle"], 8, |cell, block| match cell {
            "uring-0" => Some(Err("there is no io_uring")),
            "uring-2000" => None,
            _ => noisy(cell, block, 10.0),
        });
        let lossy = |trial: &&mut crate::record::Trial| trial.cell == "poll-2000";
        for trial in results.trials.iter_mut().filter(lossy) {
            trial.values.insert(Measure::Unanswered, 3.0);
        }
        let all = ModelComparison::all(&results);
        let lost: Vec<Vec<_>> = all
            .iter()
            .map(|one| one.lost.iter().map(|(engine, why)| (engine.name(), why.as_str())).collect())
            .collect();
        let beside_idle = vec![("poll", "3 connections without a response"), ("uring", "it has no trial")];
        assert_eq!(lost, [vec![("uring", "there is no io_uring")], beside_idle]);
        assert!(all[0].is_enough() && !all[1].is_enough());
        assert_eq!(main(&all).map(ModelComparison::place), Some(all[0].place()), "it has two models");
    }
}
