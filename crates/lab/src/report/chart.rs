//! Charts as SVG: bars with intervals and every run, and latencies by percentile. Text and lines take the colours of
//! the page, so that a chart is readable in light, in dark and on paper. Chart libraries bring fonts and fixed colours.

use std::fmt::Write;

use crate::measure::{Measure, show_number};

/// The width of a chart.
pub(super) const WIDTH: f64 = 640.0;
const LABELS: f64 = 150.0;
const VALUES: f64 = 90.0;
const ROW: f64 = 26.0;

/// A bar: a value with its interval, and the runs behind it.
#[derive(Clone, Debug, Default)]
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) value: f64,
    pub(super) interval: Option<(f64, f64)>,
    pub(super) runs: Vec<f64>,
}

/// Horizontal bars from zero.
pub(super) fn bars(title: &str, measure: Measure, bars: &[Bar]) -> String {
    let ends = bars.iter().flat_map(|bar| {
        bar.runs.iter().copied().chain([bar.value]).chain(bar.interval.map(|(_, high)| high))
    });
    let most = ends.fold(f64::MIN_POSITIVE, f64::max);
    let scale = |value: f64| LABELS + value.clamp(0.0, most) / most * (WIDTH - LABELS - VALUES);
    let height = 30.0 + ROW * bars.len() as f64 + 6.0;
    let mut svg = open(title, height);
    let _ = write!(svg, "<text class=\"title\" x=\"0\" y=\"16\">{}</text>", escape(title));
    for (row, bar) in (0u32..).zip(bars) {
        let top = 30.0 + ROW * f64::from(row);
        let middle = top + ROW / 2.0;
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <rect class=\"bar\" x=\"{LABELS}\" y=\"{:.1}\" width=\"{:.1}\" height=\"14\"/>",
            LABELS - 8.0,
            middle + 4.0,
            escape(&bar.label),
            middle - 7.0,
            (scale(bar.value) - LABELS).max(1.0),
        );
        for run in &bar.runs {
            let _ =
                write!(svg, "<circle class=\"run\" cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"2\"/>", scale(*run));
        }
        if let Some((low, high)) = bar.interval {
            let (low, high) = (scale(low), scale(high));
            let _ = write!(
                svg,
                "<path class=\"interval\" d=\"M{low:.1} {:.1}v10M{high:.1} {:.1}v10M{low:.1} {middle:.1}H{high:.1}\"/>",
                middle - 5.0,
                middle - 5.0
            );
        }
        let _ = write!(
            svg,
            "<text x=\"{WIDTH}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            middle + 4.0,
            escape(&measure.show(bar.value))
        );
    }
    svg + "</svg>"
}

/// A line of latencies: by percentile, in milliseconds.
#[derive(Clone, Debug)]
pub(super) struct LatencyLine {
    pub(super) label: String,
    pub(super) points: Vec<(String, f64)>,
}

/// Latencies by percentile on a logarithmic axis.
pub(super) fn latencies(title: &str, names: &[&str], curves: &[LatencyLine]) -> String {
    const HEIGHT: f64 = 240.0;
    const TOP: f64 = 30.0;
    const BOTTOM: f64 = 210.0;
    let values =
        || curves.iter().flat_map(|curve| curve.points.iter().map(|(_, value)| value.max(1e-4).log10()));
    let low = values().fold(f64::MAX, f64::min).floor();
    let high = values().fold(f64::MIN, f64::max).ceil().max(low + 1.0);
    let y = |value: f64| BOTTOM - (value.max(1e-4).log10() - low) / (high - low) * (BOTTOM - TOP);
    let step = (WIDTH - 70.0 - LABELS) / (names.len().max(2) - 1) as f64;
    let x =
        |name: &str| 70.0 + step * names.iter().position(|known| *known == name).unwrap_or_default() as f64;
    let mut svg = open(title, HEIGHT);
    let _ = write!(svg, "<text class=\"title\" x=\"0\" y=\"16\">{}</text>", escape(title));
    for power in low as i32..=high as i32 {
        let value = 10f64.powi(power);
        let at = y(value);
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M70 {at:.1}H{:.1}\"/><text x=\"62\" y=\"{:.1}\" text-anchor=\"end\">{} ms</text>",
            WIDTH - LABELS,
            at + 4.0,
            show_number(value)
        );
    }
    for name in names {
        let _ = write!(svg, "<text x=\"{:.1}\" y=\"230\" text-anchor=\"middle\">{name}</text>", x(name));
    }
    // Labels keep a distance from each other, in the order of the last values.
    let mut order: Vec<&LatencyLine> = curves.iter().filter(|curve| !curve.points.is_empty()).collect();
    let last = |curve: &LatencyLine| curve.points.last().map_or(0.0, |(_, value)| *value);
    order.sort_by(|a, b| last(b).total_cmp(&last(a)));
    let mut free = TOP - 10.0;
    for (number, curve) in order.into_iter().enumerate() {
        let points: Vec<String> =
            curve.points.iter().map(|(name, value)| format!("{:.1},{:.1}", x(name), y(*value))).collect();
        free = (free + 14.0).max(y(last(curve)) + 4.0);
        let end = curve.points.last().map_or(70.0, |(name, _)| x(name));
        let _ = write!(
            svg,
            "<polyline class=\"curve c{}\" points=\"{}\"/><text x=\"{:.1}\" y=\"{free:.1}\">{}</text>",
            number % 6,
            points.join(" "),
            end + 8.0,
            escape(&curve.label)
        );
    }
    svg + "</svg>"
}

/// Begins a chart.
pub(super) fn open(title: &str, height: f64) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\">",
        escape(title)
    )
}

/// Text as HTML and SVG have it.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_reaches_as_far_as_its_value() {
        let bar = |label: &str, value| Bar { label: label.to_owned(), value, ..Bar::default() };
        let svg = bars("a <title>", Measure::Rate, &[bar("all", 100.0), bar("half", 50.0), bar("none", 0.0)]);
        assert!(
            svg.contains("width=\"400.0\"")
                && svg.contains("width=\"200.0\"")
                && svg.contains("width=\"1.0\"")
        );
        assert!(svg.contains("a &lt;title&gt;") && !svg.contains("<title>"));
    }

    #[test]
    fn latencies_have_an_axis_of_powers_of_ten() {
        let curve = LatencyLine {
            label: "epoll".to_owned(),
            points: vec![("p50".to_owned(), 0.2), ("p99".to_owned(), 40.0)],
        };
        let svg = latencies("t", &["p50", "p99"], &[curve]);
        assert!(svg.contains("0.100 ms") && svg.contains("100 ms") && svg.contains("polyline"));
    }
}
