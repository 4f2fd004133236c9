//! `tenfold status`: asks a running server for its report.

pub(crate) mod source;
mod watch;

use std::process::ExitCode;

use super::output::{end, print};
use super::running::{ServerChoice, port_only};
use source::StatusSource;

/// Prints the status of the chosen server. An address of no running server is that of an admin listener.
pub(crate) fn show(choice: &ServerChoice, json: bool, watch: bool) -> ExitCode {
    let admin = choice.address.as_ref().filter(|typed| port_only(typed).is_none());
    let source = match (choice.socket(), admin) {
        (Err(_), Some(address)) => Ok(StatusSource::Admin(address.clone())),
        (socket, _) => socket.map(StatusSource::Control),
    };
    end(source.and_then(|source| match watch {
        true => watch::watch(&source),
        false => source.ask().and_then(|(text, report)| {
            let shown = if json { text } else { report.to_string() };
            print(shown.as_bytes())
        }),
    }))
}
