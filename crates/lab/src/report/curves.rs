//! Curves over connections: cells that differ in nothing but the number of active or idle connections are one curve.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::experiment::subject::Cell;
use crate::measure::{Measure, show_number};
use crate::plan::PlannedExperiment;
use crate::record::Blocks;
use crate::report::chart::{WIDTH, escape, open};
use crate::verdict::ruling::middle;

const LEFT: f64 = 80.0;
const RIGHT: f64 = 150.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 210.0;

/// A curve: a value for each number of connections, in their order.
#[derive(Clone, Debug, PartialEq)]
struct Curve {
    label: String,
    points: Vec<(u32, f64)>,
}

/// Charts of a measure, one over active and one over idle connections, if there are curves.
pub(super) fn charts(planned: &PlannedExperiment, blocks: &Blocks<'_>, measure: Measure) -> Vec<String> {
    let active: fn(&Cell) -> u32 = |cell| cell.load.active();
    let idle: fn(&Cell) -> u32 = |cell| cell.load.idle.unwrap_or(0);
    let over = [("connections", active, idle), ("idle connections", idle, active)];
    let chart = |(name, x, other)| {
        let curves = curves(planned, blocks, measure, x, other);
        let title = format!("Here, over {name}: {}", measure.about().trim_end_matches('.').to_lowercase());
        (!curves.is_empty()).then(|| draw(&title, measure, &curves))
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
) -> Vec<Curve> {
    let mut groups: BTreeMap<String, Curve> = BTreeMap::new();
    for planned_cell in planned.cells.iter().filter(|cell| !cell.control) {
        let Some(cell) = planned.experiment.cells.get(&planned_cell.cell) else { continue };
        let Some(value) = middle(&blocks.values(&planned_cell.cell, measure)) else { continue };
        let mut load = cell.load.clone();
        (load.connections, load.idle) = (None, None);
        let key = format!("{:?} {:?} {load:?} {}", cell.subject, cell.settings, other(cell));
        let label = planned_cell.cell.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('-');
        let curve =
            groups.entry(key).or_insert_with(|| Curve { label: label.to_owned(), points: Vec::new() });
        curve.points.push((x(cell), value));
    }
    let mut all: Vec<Curve> = groups.into_values().collect();
    for curve in &mut all {
        curve.points.sort_by_key(|(x, _)| *x);
        // A cell under two names is one point.
        curve.points.dedup_by_key(|(x, _)| *x);
    }
    all.retain(|curve| curve.points.len() > 1);
    all
}

fn draw(title: &str, measure: Measure, curves: &[Curve]) -> String {
    let all = || curves.iter().flat_map(|curve| curve.points.iter().copied());
    let mut levels: Vec<u32> = all().map(|(x, _)| x).collect();
    levels.sort_unstable();
    levels.dedup();
    let most = all().map(|(_, value)| value).fold(f64::MIN_POSITIVE, f64::max);
    // Logarithmic, with a place for none.
    let log = |x: u32| (f64::from(x) + 1.0).ln();
    let (first, last) = (levels.first().map_or(0.0, |x| log(*x)), levels.last().map_or(1.0, |x| log(*x)));
    let at_x = |x: u32| LEFT + (log(x) - first) / (last - first) * (WIDTH - LEFT - RIGHT);
    let at_y = |value: f64| BOTTOM - value.max(0.0) / most * (BOTTOM - TOP);
    let mut svg = open(title, 240.0);
    let _ = write!(svg, "<text class=\"title\" x=\"0\" y=\"16\">{}</text>", escape(title));
    for share in [0.0, 0.5, 1.0] {
        let y = at_y(most * share);
        let label = escape(&measure.show(most * share));
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            y + 4.0
        );
    }
    let mut free = f64::MIN;
    for level in &levels {
        // Labels that would touch are left out.
        let x = at_x(*level);
        if x >= free {
            let shown = show_number(f64::from(*level));
            let _ = write!(svg, "<text x=\"{x:.1}\" y=\"230\" text-anchor=\"middle\">{shown}</text>");
            free = x + 46.0;
        }
    }
    let end = |curve: &Curve| curve.points.last().map_or(0.0, |(_, value)| *value);
    let mut order: Vec<&Curve> = curves.iter().collect();
    order.sort_by(|a, b| end(b).total_cmp(&end(a)));
    let mut free = TOP - 10.0;
    for (number, curve) in order.into_iter().enumerate() {
        let points: Vec<String> =
            curve.points.iter().map(|(x, value)| format!("{:.1},{:.1}", at_x(*x), at_y(*value))).collect();
        free = (free + 14.0).max(at_y(end(curve)) + 4.0);
        let _ = write!(
            svg,
            "<polyline class=\"curve c{}\" points=\"{}\"/><text x=\"{:.1}\" y=\"{free:.1}\">{}</text>",
            number % 6,
            points.join(" "),
            WIDTH - RIGHT + 8.0,
            escape(&curve.label)
        );
    }
    svg + "</svg>"
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
        assert_eq!(found, [Curve { label: "poll".to_owned(), points }], "one point is no curve");
        let charts = charts(planned, &blocks, Measure::Cpu);
        assert_eq!(charts.len(), 1, "active connections do not vary");
        let svg = &charts[0];
        assert!(svg.contains("over idle connections") && svg.contains(">poll</text>"), "{svg}");
        // The greatest value is at the top, at the right end of the axis.
        assert!(svg.contains("490.0,30.0\""), "{svg}");
    }
}
