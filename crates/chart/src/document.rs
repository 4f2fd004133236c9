//! A page for charts that stands for itself.

use crate::picture::escape;

/// The colours of a chart that is an image: those of [`document()`].
const COLOURS: &str = "text{fill:#1c1e21;font:12px system-ui,sans-serif}.value{fill:#4a7fc1;opacity:.75}\
    .interval{fill:none;stroke:#1c1e21;stroke-width:1.5}.break{fill:none;stroke:#fff;stroke-width:3}\
    .reference{fill:none;stroke:#5c6470;stroke-dasharray:3 3}\
    @media(prefers-color-scheme:dark){text{fill:#e6e8eb}.value{fill:#5b93d8}.interval{stroke:#e6e8eb}\
    .break{stroke:#15181c}.reference{stroke:#9aa3af}}";

const STYLE: &str = include_str!("style.css");

/// An HTML page that needs no scripts and nothing from elsewhere, light or dark as the system is, and printable.
#[must_use]
pub fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{}</title><style>{STYLE}</style></head><body><main>{body}</main></body></html>\n",
        escape(title)
    )
}

/// A chart of bars as an image of its own, for a page that gives it no style.
#[must_use]
pub fn standalone(svg: &str) -> String {
    let (open, rest) = svg.split_once('>').unwrap_or(("", svg));
    format!("{open}><style>{COLOURS}</style>{rest}\n")
}
