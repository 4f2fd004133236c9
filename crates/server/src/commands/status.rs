//! `tenfold status`: asks a running server for its report.

pub(crate) mod source;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use super::output::{end, print};
use crate::status::place;
use source::StatusSource;

/// Prints the status of the server at the `address` of an admin listener or at a `control` socket, or of the only running
/// server.
pub(crate) fn show(address: Option<String>, control: Option<PathBuf>, json: bool, watch: bool) -> ExitCode {
    let source = match address {
        Some(address) => Ok(StatusSource::Admin(address)),
        None => control.map_or_else(place::find, Ok).map(StatusSource::Control),
    };
    end(source.and_then(|source| match watch {
        true => watch::watch(&source),
        false => source.ask().and_then(|(text, report)| {
            let shown = if json { text } else { report.to_string() };
            print(shown.as_bytes())
        }),
    }))
}
