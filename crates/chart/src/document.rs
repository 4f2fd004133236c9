//! A page for charts that stands for itself.

use crate::picture::escape;

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
    format!("{open}><style>{STYLE}</style>{rest}\n")
}
