//! A complete page for charts, and the sizes, text and frame that all charts share.

const STYLE: &str = include_str!("style.css");

/// An HTML page without scripts and other files. It follows the light or dark colours of the system, and can be
/// printed.
#[must_use]
pub fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{}</title><style>{STYLE}</style></head><body><main>{body}</main></body></html>\n",
        escape(title)
    )
}

/// A chart of bars as an image with its own style.
#[must_use]
pub fn standalone(svg: &str) -> String {
    let (open, rest) = svg.split_once('>').unwrap_or(("", svg));
    format!("{open}><style>{STYLE}</style>{rest}\n")
}

/// The width of every chart, in units of the picture: the width of a phone of 390 pixels without the margins of a page
/// and a frame. Text there is as large as in the picture.
pub(crate) const WIDTH: f64 = 320.0;
/// The size of text, in units of the picture.
pub const FONT_SIZE: f64 = 12.0;

/// The assumed width of a letter, because a picture cannot measure text: a digit in DejaVu Sans, the widest common font
/// of browsers for `system-ui`.
pub(crate) const LETTER: f64 = 7.6;

/// A figure with its caption above the chart.
#[must_use]
pub fn figure(caption: &str, svg: &str) -> String {
    format!("<figure class=\"chart\"><figcaption>{}</figcaption>{svg}</figure>", escape(caption))
}

/// Escapes text for HTML and SVG.
#[must_use]
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Begins a chart.
pub(crate) fn open(title: &str, height: f64) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\" aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\">",
        escape(title)
    )
}

/// The width of the longest of these texts.
pub(crate) fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> f64 {
    texts.map(|text| text.chars().count() as f64 * LETTER).fold(0.0, f64::max)
}
