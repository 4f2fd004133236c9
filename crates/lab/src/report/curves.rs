//! Curves over connections. Cells that differ only in their number of active or idle connections are one curve.

use std::collections::BTreeMap;

use tenfold_chart::{GrowthCurve, figure, growth};

use crate::experiment::subject::Cell;
use crate::measure::{Measure, show_number};
use crate::plan::PlannedExperiment;
use crate::record::Blocks;
use crate::verdict::ruling::middle;

/// Charts of a measure, one over active and one over idle connections, if there are curves.
pub(super) fn charts(planned: &PlannedExperiment, blocks: &Blocks<'_>, measure: Measure) -> Vec<String> {
    let active: fn(&Cell) -> u32 = |cell| cell.load.active();
    let idle: fn(&Cell) -> u32 = |cell| cell.load.idle.unwrap_or(0);
    let over = [("connections", active, idle), ("idle connections", idle, active)];
    let chart = |(name, x, other)| {
        let curves = curves(planned, blocks, measure, x, other);
        let title = format!(
            "Here, over {name} (logarithmic): {}",
            measure.about().trim_end_matches('.').to_lowercase()
        );
        let count = |level: u32| show_number(f64::from(level));
        let draw = || growth(&title, &curves, count, |value| measure.show(value));
        (!curves.is_empty()).then(|| figure(&title, &draw()))
    };
    over.into_iter().filter_map(chart).collect()
}

/// Curves over `x` of cells that have the same subject, settings, load and `other`.
fn curves(
    planned: &PlannedExperiment,
    blocks: &Blocks<'_>,
    measure: Measure,
    x: fn(&Cell) -> u32,
    other: fn(&Cell) -> u32,
) -> Vec<GrowthCurve> {
    let mut groups: BTreeMap<String, GrowthCurve> = BTreeMap::new();
    for planned_cell in planned.cells.iter().filter(|cell| !cell.control) {
        let Some(cell) = planned.experiment.cells.get(&planned_cell.cell) else { continue };
        let Some(value) = middle(&blocks.values(&planned_cell.cell, measure)) else { continue };
        let mut load = cell.load.clone();
        (load.connections, load.idle) = (None, None);
        let key = format!("{:?} {:?} {load:?} {}", cell.subject, cell.settings, other(cell));
        let label = planned_cell.cell.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('-');
        let curve =
            groups.entry(key).or_insert_with(|| GrowthCurve { label: label.to_owned(), points: Vec::new() });
        curve.points.push((x(cell), value));
    }
    let mut all: Vec<GrowthCurve> = groups.into_values().collect();
    for curve in &mut all {
        curve.points.sort_by_key(|(x, _)| *x);
        // Two names of a cell are one point.
        curve.points.dedup_by_key(|(x, _)| *x);
    }
    all.retain(|curve| curve.points.len() > 1);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::environment::LabEnvironment;
    use crate::plan::Wishes;
    use crate::record::Trial;
    use crate::studies::wall::{IdleWall, WALL};

    #[test]
    fn cells_that_differ_in_idle_connections_are_a_curve() {
        let engines = ["poll", "epoll"].map(str::to_owned);
        let wall = IdleWall::new(&engines, 900).expect("both exist");
        let plan = wall.plan(&Wishes::default(), &LabEnvironment::default());
        let planned = &plan.experiments[0];
        let trial = |cell: &str, cpu: f64| Trial {
            experiment: WALL.to_owned(),
            cell: cell.to_owned(),
            values: BTreeMap::from([(Measure::Cpu, cpu)]),
            ..Trial::default()
        };
        let trials =
            [trial("poll-0", 8.0), trial("poll-100", 16.0), trial("poll-900", 80.0), trial("epoll-0", 9.0)];
        let blocks = Blocks::of(&trials, WALL);
        let found = curves(planned, &blocks, Measure::Cpu, |cell| cell.load.idle.unwrap_or(0), |_| 0);
        let points = vec![(0, 8.0), (100, 16.0), (900, 80.0)];
        assert_eq!(found, [GrowthCurve { label: "poll".to_owned(), points }], "one point is no curve");
        let charts = charts(planned, &blocks, Measure::Cpu);
        assert_eq!(charts.len(), 1, "active connections do not vary");
        let svg = &charts[0];
        assert!(svg.contains("over idle connections") && svg.contains(">poll</text>"), "{svg}");
    }
}
