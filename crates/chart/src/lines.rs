//! Lines over an axis, with their names at their ends.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::document::{FONT_SIZE, LETTER, WIDTH, escape, open, widest};

const TOP: f64 = 10.0;
/// The least height of the field of lines.
const FIELD: f64 = 180.0;
/// The room below the field for the names of the horizontal axis.
const AXIS: f64 = 24.0;
const GAP: f64 = 8.0;
/// The distance of two names at the end of lines.
const NAME: f64 = FONT_SIZE + 2.0;

/// A line, by points from (0, 0) at the lower left to (1, 1) at the upper right of the field.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The text at the end of the line.
    pub label: String,
    /// Its points from left to right.
    pub points: Vec<(f64, f64)>,
}

/// A chart of lines.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// Places on the horizontal axis, from 0 to 1, with their names.
    pub across: Vec<(f64, String)>,
    /// Places on the vertical axis, from 0 to 1, with their names.
    pub up: Vec<(f64, String)>,
    /// The lines.
    pub curves: Vec<Curve>,
}

impl Lines {
    /// The chart, as high as its names need.
    #[must_use]
    pub fn draw(&self, title: &str) -> String {
        let end = |curve: &Curve| curve.points.last().map_or(0.0, |(_, y)| *y);
        let mut order: Vec<&Curve> = self.curves.iter().filter(|curve| !curve.points.is_empty()).collect();
        order.sort_by(|a, b| end(b).total_cmp(&end(a)));
        let field = FIELD.max(NAME * order.len() as f64);
        let bottom = TOP + field;
        let left = widest(self.up.iter().map(|(_, name)| name.as_str())) + GAP;
        let names = widest(order.iter().map(|curve| curve.label.as_str())) + GAP;
        let right = WIDTH - names.max(2.0 * GAP);
        let x = |place: f64| left + place * (right - left);
        let y = |place: f64| bottom - place * field;
        let mut svg = open(title, bottom + AXIS);
        for (place, name) in &self.up {
            let at = y(*place);
            let _ = write!(
                svg,
                "<path class=\"grid\" d=\"M{left:.1} {at:.1}H{right:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - GAP,
                at + 4.0,
                escape(name)
            );
        }
        let half = |name: &str| name.chars().count() as f64 * LETTER / 2.0;
        let last = self.across.last().map_or(f64::MAX, |(place, name)| x(*place) - half(name) - GAP);
        let mut free = f64::MIN;
        for (number, (place, name)) in self.across.iter().enumerate() {
            let (at, half) = (x(*place), half(name));
            // Names that would touch their neighbour or the last name are left out.
            if at - half >= free && (at + half <= last || number + 1 == self.across.len()) {
                let _ = write!(
                    svg,
                    "<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                    bottom + 20.0,
                    escape(name)
                );
                free = at + half + GAP;
            }
        }
        let heights = apart(&order.iter().map(|curve| y(end(curve)) + 4.0).collect::<Vec<_>>(), bottom + 4.0);
        for (number, (curve, height)) in order.into_iter().zip(heights).enumerate() {
            let points: Vec<String> =
                curve.points.iter().map(|(across, up)| format!("{:.1},{:.1}", x(*across), y(*up))).collect();
            let last = curve.points.last().map_or(0.0, |(across, _)| *across);
            let _ = write!(
                svg,
                "<polyline class=\"curve c{}\" points=\"{}\"/><text x=\"{:.1}\" y=\"{height:.1}\">{}</text>",
                number % 6,
                points.join(" "),
                x(last) + GAP,
                escape(&curve.label)
            );
        }
        svg + "</svg>"
    }
}

/// The heights of names, from above: each near its wanted height, at least a line below the previous name, and above
/// `bottom`.
fn apart(wanted: &[f64], bottom: f64) -> Vec<f64> {
    let mut heights: Vec<f64> = Vec::new();
    for want in wanted {
        heights.push(heights.last().map_or(*want, |before| want.max(before + NAME)));
    }
    let mut below = bottom + NAME;
    for height in heights.iter_mut().rev() {
        *height = height.min(below - NAME);
        below = *height;
    }
    heights
}

/// Latencies of a server by percentile, in milliseconds.
#[derive(Clone, Debug)]
pub struct LatencyCurve {
    /// The name of the server.
    pub label: String,
    /// The name of a percentile, and the latency at it.
    pub points: Vec<(String, f64)>,
}

/// Latencies by percentile on a logarithmic axis. `names` are the percentiles in their order.
#[must_use]
pub fn latencies(title: &str, names: &[&str], curves: &[LatencyCurve]) -> String {
    let log = |value: f64| value.max(1e-4).log10();
    let values = || curves.iter().flat_map(|curve| curve.points.iter().map(|(_, value)| log(*value)));
    let low = values().fold(f64::MAX, f64::min).floor();
    let high = values().fold(f64::MIN, f64::max).ceil().max(low + 1.0);
    let up = |power: f64| (power - low) / (high - low);
    let last = (names.len().max(2) - 1) as f64;
    let across = |name: &str| names.iter().position(|known| *known == name).unwrap_or_default() as f64 / last;
    Lines {
        across: names.iter().map(|name| (across(name), (*name).to_owned())).collect(),
        up: (low as i32..=high as i32).map(|power| (up(f64::from(power)), milliseconds(power))).collect(),
        curves: curves
            .iter()
            .map(|curve| Curve {
                label: curve.label.clone(),
                points: curve.points.iter().map(|(name, value)| (across(name), up(log(*value)))).collect(),
            })
            .collect(),
    }
    .draw(title)
}

/// A value for each number of connections.
#[derive(Clone, Debug, PartialEq)]
pub struct GrowthCurve {
    /// The text at the end of the curve.
    pub label: String,
    /// Numbers of connections in growing order, with the value at each.
    pub points: Vec<(u32, f64)>,
}

/// Values over numbers of connections, on a logarithmic axis that includes 0. `count` formats a number of connections,
/// and `value` a value.
#[must_use]
pub fn growth(
    title: &str,
    curves: &[GrowthCurve],
    count: impl Fn(u32) -> String,
    value: impl Fn(f64) -> String,
) -> String {
    let all = || curves.iter().flat_map(|curve| curve.points.iter().copied());
    let levels: BTreeSet<u32> = all().map(|(connections, _)| connections).collect();
    let most = all().map(|(_, value)| value).fold(f64::MIN_POSITIVE, f64::max);
    let log = |connections: u32| (f64::from(connections) + 1.0).ln();
    let (first, last) = (levels.first().map_or(0.0, |x| log(*x)), levels.last().map_or(1.0, |x| log(*x)));
    let across = |connections: u32| (log(connections) - first) / (last - first).max(f64::MIN_POSITIVE);
    let line = |curve: &GrowthCurve| Curve {
        label: curve.label.clone(),
        points: curve.points.iter().map(|(x, value)| (across(*x), value.max(0.0) / most)).collect(),
    };
    Lines {
        across: levels.iter().map(|level| (across(*level), count(*level))).collect(),
        up: [0.0, 0.5, 1.0].map(|share| (share, value(most * share))).to_vec(),
        curves: curves.iter().map(line).collect(),
    }
    .draw(title)
}

/// A power of ten in milliseconds, in a suitable unit.
pub(crate) fn milliseconds(power: i32) -> String {
    match power {
        3.. => format!("{} s", 10u64.pow(power.unsigned_abs() - 3)),
        0..3 => format!("{} ms", 10u64.pow(power.unsigned_abs())),
        _ => format!("{} µs", 10f64.powi(power + 3)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_have_an_axis_of_powers_of_ten() {
        let points = vec![("p50".to_owned(), 0.2), ("p99".to_owned(), 4000.0)];
        let svg = latencies("t", &["p50", "p99"], &[LatencyCurve { label: "epoll".to_owned(), points }]);
        for expected in [">100 µs<", ">1 ms<", ">100 ms<", ">10 s<", "polyline", ">epoll<"] {
            assert!(svg.contains(expected), "{expected} is missing in {svg}");
        }
    }

    #[test]
    fn names_at_the_end_of_lines_keep_their_distance_inside_the_picture() {
        assert_eq!(apart(&[10.0, 100.0], 100.0), [10.0, 100.0]);
        assert_eq!(apart(&[96.0, 98.0, 100.0], 100.0), [72.0, 86.0, 100.0]);
        assert_eq!(apart(&[50.0, 51.0, 100.0], 100.0), [50.0, 64.0, 100.0]);
    }

    #[test]
    fn the_last_name_of_the_horizontal_axis_is_never_left_out() {
        let across = [(0.0, "0"), (0.9, "4,000"), (1.0, "8,000")].map(|(at, name)| (at, name.to_owned()));
        let svg = Lines { across: across.into(), ..Lines::default() }.draw("t");
        assert!(svg.contains(">0<") && svg.contains(">8,000<") && !svg.contains(">4,000<"), "{svg}");
    }

    #[test]
    fn twenty_lines_make_the_picture_higher() {
        let curve = |number: u32| Curve { label: number.to_string(), points: vec![(0.0, 0.0), (1.0, 0.0)] };
        let lines = Lines { curves: (0..20).map(curve).collect(), ..Lines::default() };
        let svg = lines.draw("t");
        assert!(svg.starts_with("<svg viewBox=\"0 0 320 314\""), "{svg}");
    }
}
