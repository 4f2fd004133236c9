//! Results of commands on standard output.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use crate::diagnostics::{error, is_hidden};

/// Writes a result to standard output. If the reader closes the pipe, it needs no more, so that is no error.
pub(crate) fn print(result: &[u8]) -> Result<(), String> {
    let mut output = io::stdout().lock();
    match output.write_all(result).and_then(|()| output.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| format!("cannot write to standard output: {error}")),
    }
}

/// Reports an error of a command, and returns the exit code.
pub(crate) fn end(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            error!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Escapes hidden characters of JSON. The meaning stays the same, because such characters are only in strings.
pub(crate) fn escape_json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\t' | '\n' | '\r' => escaped.push(character),
            _ if is_hidden(character) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    escaped.push_str(&format!("\\u{unit:04x}"));
                }
            }
            _ => escaped.push(character),
        }
    }
    escaped
}
