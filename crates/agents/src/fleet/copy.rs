//! This program on another machine, as a temporary file of the remote user.
//!
//! A shell on the other machine receives the program, and removes the file when its input ends. So the file does not
//! outlive this process, however it ends.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::process::{Pid, send_signal};
use tenfold_sys::signal::Signal;

use super::command::StartCommand;
use super::refusal::remedy;
use crate::text::safe;

/// The remote script. The remote shell gets it as one word; it contains no single quote.
const SCRIPT: &str = "umask 077; test $(uname -m) = ARCH || { echo MARK $(uname -m); exit 9; }; \
                      f=$(mktemp ${TMPDIR:-/tmp}/tenfold.XXXXXX) || exit 1; trap \"rm -f $f; exit\" HUP INT TERM; \
                      head -c SIZE >$f && chmod 700 $f && echo MARK $f; cat >/dev/null; rm -f $f";
/// The word before the answer of the script.
const MARK: &str = "tenfold-copy";
/// Bounds a connection to a host that is gone.
const PATIENCE: [&str; 6] =
    ["-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"];
/// The longest answer of the script, with the banner of a login shell.
const MOST_ANSWER: u64 = 64 << 10;
/// The longest time of all copies.
const LONGEST: Duration = Duration::from_secs(300);
/// The longest end of the script.
const END: Duration = Duration::from_secs(2);

/// A copy that exists until this value is dropped.
#[derive(Debug)]
pub(super) struct Copy {
    child: Child,
    input: Option<ChildStdin>,
    /// The words that start the copy as an agent.
    pub(super) words: Vec<String>,
}

/// Copies this program to the hosts of all agents at the same time. A signal that stops this process ends it.
pub(super) fn copy_all(names: &[&str]) -> Vec<Result<Copy, String>> {
    let started = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let started = &started;
        let copies: Vec<_> = names.iter().map(|name| scope.spawn(move || copy(name, started))).collect();
        let until = Instant::now() + LONGEST;
        while copies.iter().any(|copy| !copy.is_finished()) {
            if lifecycle::phase() != Phase::Serving || Instant::now() > until {
                let started = started.lock().unwrap_or_else(PoisonError::into_inner);
                started.iter().for_each(|process| send_signal(*process, Signal::Kill));
            }
            thread::sleep(Duration::from_millis(20));
        }
        let failed = |_| Err("a thread panicked".to_owned());
        copies.into_iter().map(|copy| copy.join().unwrap_or_else(failed)).collect()
    })
}

fn copy(name: &str, started: &Mutex<Vec<Pid>>) -> Result<Copy, String> {
    let failed = |error: io::Error| format!("cannot copy this program to {name}: {error}");
    let mut program = File::open("/proc/self/exe").map_err(failed)?;
    let (size, ours) = (program.metadata().map_err(failed)?.len(), std::env::consts::ARCH);
    let script = SCRIPT.replace("ARCH", ours).replace("SIZE", &size.to_string()).replace("MARK", MARK);
    let mut words = StartCommand::by_ssh(name, &["sh", "-c", &format!("'{script}'")]);
    words.splice(1..1, PATIENCE.map(str::to_owned));
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.process_group(0).spawn().map_err(failed)?;
    if let Some(process) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        started.lock().unwrap_or_else(PoisonError::into_inner).push(process);
    }
    let mut input = child.stdin.take();
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let mut copy = Copy { child, input: None, words: Vec::new() };
    // The answer of another architecture comes without a read of the program.
    let sent = input.as_mut().map_or(Ok(0), |input| io::copy(&mut program, input));
    copy.input = input;
    let answer = output.and_then(answer);
    let (path, is_other) = match answer.as_deref() {
        Some(path) if path.starts_with('/') => (path, false),
        Some(architecture) => (architecture, true),
        None => ("", false),
    };
    if is_other {
        return Err(format!(
            "{name} has the architecture {path}, and this program is for {ours}: install tenfold there"
        ));
    }
    // The path is a word of a shell.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    if sent.is_ok() && !path.is_empty() && path.bytes().all(is_plain) {
        copy.words = StartCommand::by_ssh(name, &[path, "agent"]);
        return Ok(copy);
    }
    copy.input = None;
    let mut text = Vec::new();
    let _ = errors.map(|errors| errors.take(MOST_ANSWER).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<String> = text.lines().map(safe).filter(|line| !line.is_empty()).collect();
    let said = lines.last().map_or("it gave no reason", String::as_str);
    let remedy = remedy(name, &lines).map_or_else(String::new, |remedy| format!("; {remedy}"));
    Err(format!("cannot copy this program to {name}: {said}{remedy}"))
}

/// Reads the answer of the script after the banner of a login shell.
fn answer(output: impl Read) -> Option<String> {
    let mut lines = BufReader::new(output.take(MOST_ANSWER)).split(b'\n');
    lines.find_map(|line| {
        let line = String::from_utf8_lossy(&line.ok()?).into_owned();
        line.strip_prefix(MARK).map(safe)
    })
}

impl Drop for Copy {
    fn drop(&mut self) {
        // The end of its input makes the script remove the file.
        self.input = None;
        let until = Instant::now() + END;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > until {
                let _ = self.child.kill();
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_follows_a_banner() {
        let found = |text: &str| answer(text.as_bytes());
        assert_eq!(found("Welcome\ntenfold-copy /tmp/tenfold.a\n").as_deref(), Some("/tmp/tenfold.a"));
        assert_eq!(found("tenfold-copy s390x\n").as_deref(), Some("s390x"));
        assert_eq!(found("Welcome\n"), None);
    }

    #[test]
    fn the_script_is_one_word_of_a_shell() {
        assert!(!SCRIPT.contains('\''));
    }
}
