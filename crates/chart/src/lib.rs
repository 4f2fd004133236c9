//! Charts as SVG: bars with intervals and samples, and lines over an axis. Text and lines have the colours of the page,
//! so a chart is readable in light, in dark and on paper. Chart libraries have fonts and fixed colours.
//!
//! The classes of the elements are `value`, `break`, `run`, `interval`, `grid`, `reference`, and `curve` with `c0` to `c5`.
//! The page gives them fill and stroke, and sets text in [`FONT_SIZE`] units; [`document()`] is such a page.

#![forbid(unsafe_code)]

mod bars;
mod document;
mod lines;
mod spreads;
mod topology;

pub use bars::{Bar, bars, shares};
pub use document::{FONT_SIZE, escape, figure};
pub use document::{document, standalone};
pub use lines::{Curve, GrowthCurve, LatencyCurve, Lines, growth, latencies};
pub use spreads::{Spread, spreads};
pub use topology::{Machine, topology};
