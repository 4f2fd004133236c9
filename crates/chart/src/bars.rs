//! Horizontal bars from zero.

use std::fmt::Write;

use crate::document::{WIDTH, escape, open, widest};

const ROW: f64 = 26.0;
const GAP: f64 = 8.0;

/// A bar: a value with its interval and its samples.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// The text before it.
    pub label: String,
    /// Its length, at least 0.
    pub value: f64,
    /// The value with its unit, after the bar.
    pub shown: String,
    /// The ends of the confidence interval.
    pub interval: Option<(f64, f64)>,
    /// The samples.
    pub runs: Vec<f64>,
}

/// Horizontal bars from zero, with a line at `mark`. A bar that is much longer than the others is broken.
#[must_use]
pub fn bars(title: &str, mark: Option<f64>, bars: &[Bar]) -> String {
    draw(title, mark, bars, end_of_axis(bars, mark))
}

/// Horizontal bars that are parts of a whole. No bar is broken.
#[must_use]
pub fn shares(title: &str, bars: &[Bar]) -> String {
    draw(title, None, bars, bars.iter().map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max))
}

fn draw(title: &str, mark: Option<f64>, bars: &[Bar], end: f64) -> String {
    let left = widest(bars.iter().map(|bar| bar.label.as_str())).min(WIDTH * 0.45) + GAP;
    let right = widest(bars.iter().map(|bar| bar.shown.as_str())) + GAP;
    let scale = |value: f64| left + value.clamp(0.0, end) / end * (WIDTH - left - right);
    let height = ROW * bars.len() as f64 + 4.0;
    let mut svg = open(title, height);
    if let Some(mark) = mark {
        let _ = write!(svg, "<path class=\"reference\" d=\"M{:.1} 0V{height:.1}\"/>", scale(mark));
    }
    for (row, bar) in bars.iter().enumerate() {
        let middle = ROW * (row as f64 + 0.5) + 2.0;
        let tip = scale(bar.value).max(left + 1.0);
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <rect class=\"value\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"14\"/>",
            left - GAP,
            middle + 4.0,
            escape(&bar.label),
            middle - 7.0,
            tip - left,
        );
        if bar.value > end {
            let _ = write!(
                svg,
                "<path class=\"break\" d=\"M{:.1} {:.1}l-6 18m6 0l6 -18\"/>",
                tip - 16.0,
                middle - 9.0
            );
        } else {
            for run in &bar.runs {
                let _ = write!(
                    svg,
                    "<circle class=\"run\" cx=\"{:.1}\" cy=\"{middle:.1}\" r=\"2\"/>",
                    scale(*run)
                );
            }
            if let Some((low, high)) = bar.interval {
                let (low, high, top) = (scale(low), scale(high), middle - 5.0);
                let _ = write!(
                    svg,
                    "<path class=\"interval\" d=\"M{low:.1} {top:.1}v10M{high:.1} {top:.1}v10M{low:.1} {middle:.1}H{high:.1}\"/>",
                );
            }
        }
        let _ = write!(
            svg,
            "<text x=\"{WIDTH}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            middle + 4.0,
            escape(&bar.shown)
        );
    }
    svg + "</svg>"
}

/// The value at the right end. Three quarters of the bars set the scale. A bar of more than four times this length is
/// broken, because the other bars would be too short to compare.
fn end_of_axis(bars: &[Bar], mark: Option<f64>) -> f64 {
    let reach = |bar: &Bar| {
        bar.runs.iter().copied().chain(bar.interval.map(|(_, high)| high)).fold(bar.value, f64::max)
    };
    let mut values: Vec<f64> = bars.iter().map(|bar| bar.value).collect();
    values.sort_by(f64::total_cmp);
    let limit = values.get(values.len() * 3 / 4).map_or(0.0, |value| value * 4.0);
    let within = bars.iter().filter(|bar| bar.value <= limit).map(reach);
    within.chain(mark).fold(f64::MIN_POSITIVE, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::LETTER;

    fn bar(label: &str, value: f64) -> Bar {
        Bar { label: label.to_owned(), value, shown: value.to_string(), ..Bar::default() }
    }

    #[test]
    fn a_bar_reaches_as_far_as_its_value() {
        let svg = bars("a <title>", None, &[bar("all", 100.0), bar("half", 50.0), bar("none", 0.0)]);
        let lengths: Vec<f64> = svg
            .split(" width=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().expect("it ends").parse().expect("it is a number"))
            .collect();
        // The room without the labels `none` and `100`.
        let room = WIDTH - 7.0 * LETTER - 2.0 * GAP;
        assert!((lengths[0] - room).abs() < 0.1, "{lengths:?}");
        assert!((lengths[0] - 2.0 * lengths[1]).abs() < 0.2, "{lengths:?}");
        assert!((lengths[2] - 1.0).abs() < f64::EPSILON, "{lengths:?}");
        assert!(svg.contains("a &lt;title&gt;") && !svg.contains("<title>"));
    }

    #[test]
    fn one_far_greater_value_is_broken() {
        let mut all: Vec<Bar> =
            (0..7).map(|number| bar("near", f64::from(number).mul_add(0.1, 1.0))).collect();
        all.push(bar("far", 36.0));
        assert_eq!(bars("t", None, &all).matches("class=\"break\"").count(), 1);
        assert_eq!(shares("t", &all).matches("class=\"break\"").count(), 0, "parts of a whole");
        all[0].value = 30.0;
        all[1].value = 20.0;
        assert_eq!(bars("t", None, &all).matches("class=\"break\"").count(), 0, "three are a scale");
    }
}
