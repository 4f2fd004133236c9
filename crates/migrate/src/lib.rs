//! Translates configurations of other servers into a configuration of Tenfold.
//!
//! A reader for each format makes a tree of directives, and a translator turns each directive into one [`Outcome`].
//! Translators write to a [`draft::Draft`], which [`emit`] prints as TOML. This crate does not know the keys of
//! Tenfold's configuration: the caller passes a function that reads a piece of a file and returns its error, so that a
//! value that Tenfold refuses becomes [`Outcome::Refused`] with Tenfold's own words.
//!
//! If a rule about access cannot be translated, its paths are closed: a request for them gets 404.

#![forbid(unsafe_code)]

mod apache;
mod caddy;
mod draft;
mod emit;
mod globs;
mod input;
mod lighttpd;
mod miniserve;
mod nginx;
mod outcome;
mod reasons;
mod toml;
mod tree;
mod values;

use draft::Draft;
pub use input::{Format, Input, MOST_BYTES};
pub use outcome::{Entry, Outcome};

/// The result of a translation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translation {
    /// The configuration of Tenfold.
    pub toml: String,
    /// An entry for each directive of the input, by line.
    pub entries: Vec<Entry>,
}

impl Translation {
    /// Returns the number of entries that `is` accepts.
    pub fn count(&self, is: impl Fn(&Outcome) -> bool) -> usize {
        self.entries.iter().filter(|entry| is(&entry.outcome)).count()
    }
}

/// Translates a configuration. `legal` reads a piece of a configuration of Tenfold, and returns the error of a value.
///
/// # Errors
/// The text is too long or too deep, or a block has no end. The message names the line.
pub fn translate(
    input: Input<'_>,
    legal: &dyn Fn(&str) -> Result<(), String>,
) -> Result<Translation, String> {
    if input.text.len() > MOST_BYTES {
        return Err(format!("{} has more than {MOST_BYTES} bytes", input.name));
    }
    // A byte-order mark is no part of a directive.
    let text = input.text.strip_prefix('\u{feff}').unwrap_or(input.text);
    let mut draft = Draft::new(legal);
    match input.format {
        Format::Nginx => nginx::translate(text, &mut draft)?,
        Format::Caddy => caddy::translate(text, &mut draft)?,
        Format::Apache => apache::translate(text, input.folder, &mut draft)?,
        Format::Lighttpd => lighttpd::translate(text, &mut draft)?,
        Format::Miniserve => miniserve::translate(text, input.folder, &mut draft)?,
    }
    draft.refuse_excess()?;
    let toml = emit::toml(input, &mut draft);
    let mut entries = draft.into_entries();
    entries.sort_by_key(|entry| entry.line);
    Ok(Translation { toml, entries })
}

#[cfg(test)]
mod tests;
