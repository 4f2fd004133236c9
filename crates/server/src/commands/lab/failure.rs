//! Errors of `tenfold lab` with their exit codes, and its output.

use std::process::ExitCode;

use crate::commands::output;
use crate::diagnostics::{error, visible};

/// The exit code if the measurement proves nothing: no trial succeeded, or other programs disturbed the trials.
pub(super) const INVALID: u8 = 4;
/// The exit code after SIGINT: 128 plus the number of the signal, as in shells.
pub(super) const INTERRUPTED: u8 = 130;

/// An exit code, and the message.
pub(super) struct LabFailure(pub(super) u8, pub(super) String);

impl From<String> for LabFailure {
    fn from(why: String) -> Self {
        LabFailure(1, why)
    }
}

/// Prints the error of a command, and returns the exit code.
pub(super) fn end(done: Result<u8, LabFailure>) -> ExitCode {
    ExitCode::from(done.unwrap_or_else(|LabFailure(code, why)| {
        error!("{why}");
        code
    }))
}

/// An error in the command line.
pub(super) fn usage(why: impl Into<String>) -> LabFailure {
    LabFailure(2, why.into())
}

/// Writes to standard output. Control characters are made visible, because texts of experiments and runs may come from
/// other people.
pub(super) fn print(text: &str) -> Result<(), LabFailure> {
    Ok(output::print(visible(text).as_bytes())?)
}
