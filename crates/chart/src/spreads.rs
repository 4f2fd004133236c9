//! Horizontal bars over a logarithmic axis of time, one for each distribution.

use std::fmt::Write;

use crate::document::{WIDTH, escape, open, widest};
use crate::lines::milliseconds;

const ROW: f64 = 22.0;
const GAP: f64 = 8.0;
/// The room below the rows for the names of the axis.
const AXIS: f64 = 24.0;

/// Percentiles of a distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// The text before it.
    pub label: String,
    /// Percentiles from the least to the greatest, in milliseconds. The bar goes from the first to the third, with a
    /// line at the second, and a whisker leads to the fourth.
    pub points: Vec<f64>,
}

/// Distributions below each other.
#[must_use]
pub fn spreads(title: &str, rows: &[Spread]) -> String {
    let log = |value: f64| value.max(1e-4).log10();
    let values = || rows.iter().flat_map(|row| row.points.iter().map(|value| log(*value)));
    let low = values().fold(f64::MAX, f64::min).floor();
    let high = values().fold(f64::MIN, f64::max).ceil().max(low + 1.0);
    let left = widest(rows.iter().map(|row| row.label.as_str())).min(WIDTH * 0.45) + GAP;
    // Half of the axis's last name is to the right of its position.
    let right = WIDTH - widest([milliseconds(high as i32).as_str()].into_iter()) / 2.0;
    let scale = |power: f64| left + (power - low) / (high - low) * (right - left);
    let bottom = ROW * rows.len() as f64 + 4.0;
    let mut svg = open(title, bottom + AXIS);
    for power in low as i32..=high as i32 {
        let at = scale(f64::from(power));
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{at:.1} 0V{bottom:.1}\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            bottom + 18.0,
            milliseconds(power)
        );
    }
    for (row, spread) in rows.iter().enumerate() {
        let middle = ROW * (row as f64 + 0.5) + 2.0;
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - GAP,
            middle + 4.0,
            escape(&spread.label)
        );
        let at: Vec<f64> = spread.points.iter().map(|value| scale(log(*value))).collect();
        let (Some(first), Some(end)) = (at.first(), at.get(2).or(at.last())) else { continue };
        let _ = write!(
            svg,
            "<rect class=\"value\" x=\"{first:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"12\"/>",
            middle - 6.0,
            (end - first).max(1.0),
        );
        let tick = |at: f64, half: f64| format!("M{at:.1} {:.1}v{:.1}", middle - half, 2.0 * half);
        let mut path = at.get(1).map(|second| tick(*second, 6.0)).unwrap_or_default();
        if let Some(whisker) = at.get(3) {
            path += &format!("M{end:.1} {middle:.1}H{whisker:.1}{}", tick(*whisker, 4.0));
        }
        let _ = write!(svg, "<path class=\"interval\" d=\"{path}\"/>");
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_spans_its_percentiles_on_an_axis_of_powers_of_ten() {
        let row = |label: &str, points: &[f64]| Spread { label: label.to_owned(), points: points.to_vec() };
        let svg =
            spreads("t", &[row("<a>", &[0.1, 0.2, 1.0, 10.0]), row("short", &[0.1, 1.0]), row("none", &[])]);
        for expected in [">100 µs<", ">1 ms<", ">10 ms<", ">&lt;a&gt;<", ">none<"] {
            assert!(svg.contains(expected), "{expected} is missing in {svg}");
        }
        let widths: Vec<&str> =
            svg.split("<rect ").skip(1).map(|rest| rest.split('"').nth(7).expect("width")).collect();
        // From 100 µs to 1 ms is half of the axis for both, and the row without values has no bar.
        assert_eq!(widths.len(), 2, "{svg}");
        assert_eq!(widths[0], widths[1]);
        assert_eq!(svg.matches("class=\"interval\"").count(), 2);
    }
}
