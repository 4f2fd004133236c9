//! The idle wall: the CPU time of a request by engine and by the number of idle connections.

mod chart;

use std::collections::{BTreeMap, BTreeSet};

use tenfold_engine::MODELS;

use crate::experiment::Experiment;
use crate::experiment::claim::{CellPair, PublishedClaim, VerdictRule};
use crate::experiment::subject::{Cell, Workload};
use crate::machine::environment::LabEnvironment;
use crate::measure::{Measure, show_number};
use crate::plan::{PlannedCell, RunPlan, Wishes};
use crate::record::{Blocks, Trial};
use crate::statistics::decision::Direction;
use crate::statistics::effect::Effect;
use crate::verdict::ruling::{middle, shown};

/// The experiment.
pub const WALL: &str = "wall";
/// The default engines.
pub const ENGINES: [&str; 4] = ["select", "poll", "epoll", "uring"];
/// Connections that make requests.
const ACTIVE: u32 = 16;
/// The most idle connections of `select`, whose descriptors are below 1,024.
const MOST_OF_SELECT: u32 = 900;
/// Descriptors and ports that are not for idle connections.
const RESERVE: u64 = 200;

/// A wall: engines, and numbers of idle connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleWall {
    engines: Vec<String>,
    levels: Vec<u32>,
}

impl IdleWall {
    /// A wall of engines up to `most` idle connections.
    pub fn new(engines: &[String], most: u32) -> Result<IdleWall, String> {
        let known = |name: &str| MODELS.iter().any(|model| model.name == name);
        if let Some(wrong) = engines.iter().find(|name| !known(name)) {
            let names: Vec<&str> = MODELS.iter().map(|model| model.name).collect();
            return Err(format!("there is no engine `{wrong}`; use some of: {}", names.join(", ")));
        }
        let doubled = std::iter::successors(Some(2_000u32), |level| level.checked_mul(2));
        let mut levels: Vec<u32> = [0, 100, 300, MOST_OF_SELECT].into_iter().chain(doubled).collect();
        levels.retain(|level| *level < most);
        levels.push(most);
        let (mut engines, mut seen) = (engines.to_vec(), BTreeSet::new());
        engines.retain(|name| seen.insert(name.clone()));
        Ok(IdleWall { engines, levels })
    }

    fn idle_cells(&self) -> impl Iterator<Item = (&String, u32)> {
        let fits = |(engine, level): &(&String, u32)| *engine != "select" || *level <= MOST_OF_SELECT;
        self.levels.iter().flat_map(|level| self.engines.iter().map(move |one| (one, *level))).filter(fits)
    }

    /// The most idle connections of an engine in this wall.
    fn most(&self, engine: &str) -> u32 {
        let levels = self.idle_cells().filter(|(one, _)| *one == engine).map(|(_, level)| level);
        levels.max().unwrap_or_default()
    }

    /// The plan of a run. Its blocks go from few idle connections to many.
    pub fn plan(&self, wishes: &Wishes, environment: &LabEnvironment) -> RunPlan {
        let mut plan = RunPlan::new(vec![self.experiment()], wishes, environment);
        for planned in &mut plan.experiments {
            let all = self.idle_cells().map(|(engine, idle)| cell_name(engine, idle));
            let missing: Vec<String> =
                all.filter(|name| planned.cells.iter().all(|cell| cell.cell != *name)).collect();
            planned.cells.extend(missing.into_iter().map(|cell| PlannedCell { cell, control: false }));
            planned.growing = true;
        }
        plan
    }

    fn experiment(&self) -> Experiment {
        let cell = |(engine, idle): (&String, u32)| {
            let settings = [("engine", engine.as_str()), ("workers", "1")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()));
            let cell = Cell {
                about: format!("{engine} with {idle} idle connections"),
                settings: BTreeMap::from(settings),
                load: Workload { connections: Some(ACTIVE), idle: Some(idle), ..Workload::default() },
                ..Cell::default()
            };
            (cell_name(engine, idle), cell)
        };
        let claim = |engine: &String| {
            let walks = matches!(engine.as_str(), "select" | "poll");
            let pair = CellPair { of: cell_name(engine, self.most(engine)), to: cell_name(engine, 0) };
            let is = if walks { Direction::Greater } else { Direction::Equal };
            let pays = if walks { "pays" } else { "does not pay" };
            let says = format!("{engine} {pays} for idle connections with each request.");
            PublishedClaim::of_study(says, Measure::Cpu, VerdictRule::Ratio { pair, is })
        };
        Experiment {
            name: WALL.to_owned(),
            title: "The idle wall".to_owned(),
            source: "tenfold lab wall".to_owned(),
            setting: "none".to_owned(),
            scaled: format!(
                "{ACTIVE} connections make requests; blocks go from few idle connections to many"
            ),
            cells: self.idle_cells().map(cell).collect(),
            claims: self.engines.iter().map(claim).collect(),
            ..Experiment::default()
        }
    }

    /// The chart of the trials so far: medians over blocks.
    pub fn chart(&self, trials: &[Trial]) -> String {
        let blocks = Blocks::of(trials, WALL);
        let points: Vec<Vec<Option<f64>>> = self
            .engines
            .iter()
            .map(|engine| self.levels.iter().map(|idle| cost(&blocks, engine, *idle)).collect())
            .collect();
        chart::chart(&self.engines, &self.levels, &points)
    }

    /// The medians over blocks as a table in Markdown, and the growth from the first level to the last with its
    /// interval.
    pub fn table(&self, trials: &[Trial]) -> String {
        let blocks = Blocks::of(trials, WALL);
        let growth = |engine: &String| {
            let (last, first) = (cell_name(engine, self.most(engine)), cell_name(engine, 0));
            let effect = Effect::of(&blocks.ratios(&last, &first, Measure::Cpu));
            effect.map_or("needs two blocks".to_owned(), |effect| shown(&effect))
        };
        let mut rows = vec![[&["idle connections".to_owned()], self.engines.as_slice()].concat()];
        for idle in &self.levels {
            let value = |engine: &String| cost(&blocks, engine, *idle).map(|cost| format!("{cost:.2}"));
            let values = self.engines.iter().map(|engine| value(engine).unwrap_or_default());
            rows.push([show_number(f64::from(*idle))].into_iter().chain(values).collect());
        }
        let last = self.engines.iter().map(growth);
        rows.push(["last / first".to_owned()].into_iter().chain(last).collect());
        let mut text = aligned(&rows);
        text.push_str("\nCPU time of the server for each response, µs, medians over blocks; ratios with 95 % intervals\n");
        if self.engines.iter().any(|engine| engine == "select") {
            text.push_str("select stops at descriptor 1,024 (FD_SETSIZE)\n");
        }
        text
    }
}

/// A table in Markdown with aligned columns.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let wide = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells =
            row.iter().enumerate().map(|(column, cell)| format!(" {cell:>width$} |", width = wide(column)));
        text.extend(std::iter::once("|".to_owned()).chain(cells));
        text.push('\n');
        if number == 0 {
            let rule = (0..columns).map(|column| format!(" {}: |", "-".repeat(wide(column).max(2) - 1)));
            text.extend(std::iter::once("|".to_owned()).chain(rule));
            text.push('\n');
        }
    }
    text
}

/// The most idle connections that a limit of descriptors and the local ports allow.
pub fn most_idle(descriptors: u64, port_range: &str) -> u32 {
    let ports: Vec<u64> = port_range.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    let ports = match ports.as_slice() {
        [first, last] => last.saturating_sub(*first),
        // The kernel's default.
        _ => 28_231,
    };
    let most = descriptors.min(ports).saturating_sub(RESERVE);
    u32::try_from(most).unwrap_or(u32::MAX)
}

fn cell_name(engine: &str, idle: u32) -> String {
    format!("{engine}-{idle}")
}

fn cost(blocks: &Blocks<'_>, engine: &str, idle: u32) -> Option<f64> {
    middle(&blocks.values(&cell_name(engine, idle), Measure::Cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(most: u32) -> IdleWall {
        IdleWall::new(&ENGINES.map(str::to_owned), most).expect("all exist")
    }

    fn trial(engine: &str, idle: u32, block: usize, cpu: f64) -> Trial {
        let values = BTreeMap::from([(Measure::Cpu, cpu)]);
        Trial {
            experiment: WALL.to_owned(),
            cell: cell_name(engine, idle),
            block,
            values,
            ..Trial::default()
        }
    }

    #[test]
    fn a_wall_grows_to_its_limit_and_select_to_its_own() {
        assert_eq!(wall(5_000).levels, [0, 100, 300, 900, 2_000, 4_000, 5_000]);
        assert_eq!(wall(100).levels, [0, 100]);
        assert_eq!((wall(5_000).most("select"), wall(5_000).most("poll")), (900, 5_000));
        assert_eq!(most_idle(20_000, "32768\t60999"), 19_800);
        assert_eq!(most_idle(1_000_000, "32768\t60999"), 28_031);
        let said = IdleWall::new(&["kqueue".to_owned()], 10).expect_err("none");
        assert!(said.contains("`kqueue`") && said.contains("epoll"), "{said}");
    }

    #[test]
    fn a_block_has_every_cell_in_growing_order() {
        let plan = wall(2_000).plan(&Wishes { seed: 5, ..Wishes::default() }, &LabEnvironment::default());
        let planned = &plan.experiments[0];
        let order = plan.order(planned, 0, 0);
        // Five levels of four engines, without select at 2,000, and the control.
        assert_eq!(order.len(), 20);
        let idle: Vec<u32> =
            order.iter().filter_map(|cell| planned.experiment.cells[&cell.cell].load.idle).collect();
        assert!(idle.is_sorted(), "{idle:?}");
        assert_ne!(order, plan.order(planned, 1, 0), "engines of a level are in random order");
    }

    #[test]
    fn a_table_has_medians_and_growth() {
        let wall = wall(2_000);
        let mut trials = Vec::new();
        for block in 0..3 {
            trials.extend([trial("poll", 0, block, 8.0), trial("poll", 2_000, block, 80.0)]);
        }
        trials.push(trial("epoll", 0, 0, 9.0));
        let text = wall.table(&trials);
        let row = |name: &str| -> Vec<&str> {
            let line = text.lines().find(|line| line.contains(name)).expect(name);
            line.split('|').map(str::trim).collect()
        };
        assert_eq!(row("idle connections"), ["", "idle connections", "select", "poll", "epoll", "uring", ""]);
        assert_eq!(row(" 2,000 |"), ["", "2,000", "", "80.00", "", "", ""]);
        assert_eq!(row(" 0 |"), ["", "0", "", "8.00", "9.00", "", ""]);
        let growth = row("last / first");
        assert_eq!((growth[3], growth[4]), ("10.0 [10.0–10.0]", "needs two blocks"));
        let wide: Vec<usize> = text.lines().take(5).map(|line| line.chars().count()).collect();
        assert!(wide.windows(2).all(|pair| pair[0] == pair[1]), "{text}");
        assert!(text.contains("FD_SETSIZE"));
        let chart = wall.chart(&trials);
        assert!(chart.contains("p poll") && chart.contains("2,000"), "{chart}");
    }
}
