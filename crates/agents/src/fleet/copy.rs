//! This program on another machine, as a temporary file of the remote user.

use std::fs::File;
use std::io;
use std::process::{Command, Stdio};

use super::command::StartCommand;
use super::refusal::remedy;
use crate::text::safe;

/// The remote script: it prints the architecture and reads the program, unless the architecture differs. The remote shell
/// gets it as one word; it contains no quote.
const SCRIPT: &str = "set -e; umask 077; test $(uname -m) = ARCH || { uname -m; exit 9; }; \
                      f=$(mktemp ${TMPDIR:-/tmp}/tenfold.XXXXXX); cat >$f; chmod 700 $f; echo $f";
/// The exit code of the script for another architecture.
const OTHER_ARCHITECTURE: i32 = 9;

/// Copies this program to the host `name` by OpenSSH. Returns the words that start it there as an agent and remove the
/// file at its end.
pub(super) fn copy(name: &str) -> Result<Vec<String>, String> {
    let program =
        File::open("/proc/self/exe").map_err(|error| format!("cannot read this program: {error}"))?;
    let ours = std::env::consts::ARCH;
    let script = format!("'{}'", SCRIPT.replace("ARCH", ours));
    let words = StartCommand::by_ssh(name, &["sh", "-c", &script]);
    let output = Command::new(&words[0])
        .args(&words[1..])
        .stdin(program)
        .stderr(Stdio::piped())
        .output()
        .map_err(|error: io::Error| format!("cannot start {}: {error}", words[0]))?;
    let path = String::from_utf8_lossy(&output.stdout).lines().last().map(safe).unwrap_or_default();
    if output.status.code() == Some(OTHER_ARCHITECTURE) {
        return Err(format!(
            "{name} has the architecture {path}, and this program is for {ours}: install tenfold there"
        ));
    }
    // The path is a word of a shell.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    if output.status.success() && path.starts_with('/') && path.bytes().all(is_plain) {
        let script = format!("'{path} agent; code=$?; rm -f {path}; exit $code'");
        return Ok(StartCommand::by_ssh(name, &["sh", "-c", &script]));
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<String> = errors.lines().map(safe).filter(|line| !line.is_empty()).collect();
    let said = lines.last().map(String::as_str).unwrap_or("it gave no reason");
    let remedy = remedy(name, &lines).map_or_else(String::new, |remedy| format!("; {remedy}"));
    Err(format!("cannot copy this program to {name}: {said}{remedy}"))
}
