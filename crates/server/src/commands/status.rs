//! `tenfold status`: asks a running server for its report.

pub(crate) mod source;
mod watch;

use std::process::ExitCode;

use super::output::{end, print};
use super::running::{ServerChoice, port_only};
use source::StatusSource;

/// Prints the status of the chosen server. An address of no running server is that of an admin listener.
pub(crate) fn show(choice: &ServerChoice, json: bool, watch: bool) -> ExitCode {
    let source = match (choice.socket(), &choice.address) {
        (Err(why), Some(typed)) => match port_only(typed) {
            Some(port) => {
                let admin = StatusSource::Admin(format!("127.0.0.1:{port}"));
                admin.ask().map(|_| admin).map_err(|_| why)
            }
            None => Ok(StatusSource::Admin(typed.clone())),
        },
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
