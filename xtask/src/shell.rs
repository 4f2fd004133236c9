//! Other programs, run in the foreground with their output shown.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The number of last lines kept for a failed program.
const KEPT: usize = 40;

/// The longest wait for output after the end of a program, whose remaining children may hold the pipe.
const LAST_WORDS: Duration = Duration::from_secs(if cfg!(test) { 10 } else { 2 });

/// The tests that programs have run, by their summaries.
static CASES: AtomicU64 = AtomicU64::new(0);

/// The number of tests that ran since the last call.
pub(crate) fn take_cases() -> u64 {
    CASES.swap(0, Ordering::Relaxed)
}

/// The last output of a failed program, and the failure.
pub(crate) struct Failed {
    /// The command line and its exit status.
    pub(crate) why: String,
    /// Its last lines, without passed tests and backtrace frames.
    pub(crate) output: Vec<String>,
}

impl From<String> for Failed {
    fn from(why: String) -> Self {
        Failed { why, output: Vec::new() }
    }
}

impl From<Failed> for String {
    fn from(failed: Failed) -> Self {
        failed.why
    }
}

/// Runs a program in `folder` with additional variables, after printing its command line.
pub(crate) fn run(folder: &Path, program: &str, args: &[&str], vars: &[(&str, &str)]) -> Result<(), Failed> {
    let line = line(program, args, vars);
    println!("$ {line}");
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).stdin(Stdio::null());
    // Cargo sets the variable for the toolchain that built this program. Another toolchain must not load its libraries.
    command.env_remove("LD_LIBRARY_PATH").envs(vars.iter().copied());
    let failed = |error: io::Error| Failed::from(format!("cannot run {program}: {error}"));
    let (mut child, pipe) = start(&mut command).map_err(failed)?;
    let program_output = ProgramOutput::of(pipe);
    let status = child.wait().map_err(failed)?;
    let output = program_output.last();
    if status.success() { Ok(()) } else { Err(Failed { why: format!("`{line}` failed: {status}"), output }) }
}

/// Starts a program with output and errors in one pipe, in order.
fn start(command: &mut Command) -> io::Result<(Child, io::PipeReader)> {
    let (reader, writer) = io::pipe()?;
    if io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let child = command.stdout(writer.try_clone()?).stderr(writer).spawn();
    // The pipe ends when its last writer closes it, so this process must close its copies.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Ok((child?, reader))
}

/// The output of a pipe, printed by a separate thread, which ends with the pipe.
struct ProgramOutput {
    last: Arc<Mutex<VecDeque<String>>>,
    ended: Receiver<()>,
}

impl ProgramOutput {
    fn of(pipe: io::PipeReader) -> ProgramOutput {
        let last = Arc::new(Mutex::new(VecDeque::with_capacity(KEPT)));
        let (end, ended) = channel();
        let lines = Arc::clone(&last);
        std::thread::spawn(move || {
            // An error means that our own output is closed, so it cannot be reported.
            let _ = pass_on(pipe, &lines);
            let _ = end.send(());
        });
        ProgramOutput { last, ended }
    }

    /// Its last lines, after the program has ended.
    fn last(self) -> Vec<String> {
        let _ = self.ended.recv_timeout(LAST_WORDS);
        self.last.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }
}

/// Prints lines as they arrive and keeps the last ones.
fn pass_on(pipe: io::PipeReader, last: &Mutex<VecDeque<String>>) -> io::Result<()> {
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    while pipe.read_until(b'\n', &mut line)? > 0 {
        io::stdout().write_all(&line)?;
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        CASES.fetch_add(cases(&text), Ordering::Relaxed);
        if may_explain(&text) {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.len() == KEPT {
                last.pop_front();
            }
            last.push_back(text);
        }
    }
    Ok(())
}

/// The passed and failed tests in the summary of a program of tests; 0 in any other line.
fn cases(line: &str) -> u64 {
    let Some(summary) = line.strip_prefix("test result: ") else { return 0 };
    let part = |part: &str| {
        let words: Vec<&str> = part.split_whitespace().collect();
        let is_counted = words.last().is_some_and(|kind| ["passed", "failed"].contains(kind));
        let number = words.len().checked_sub(2).and_then(|at| words[at].parse::<u64>().ok());
        number.filter(|_| is_counted)
    };
    summary.split(';').filter_map(part).sum()
}

/// Whether a line may explain a failure; passed tests and backtrace frames cannot.
fn may_explain(line: &str) -> bool {
    let text = line.trim_start();
    let number = text.split(':').next().unwrap_or_default();
    let is_frame =
        text.starts_with("at ") || (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    let passed = text.starts_with("test ") && text.ends_with(" ok");
    !(text.is_empty() || is_frame || passed)
}

/// Whether a program runs and reports success; its output is discarded.
pub(crate) fn succeeds(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env_remove("LD_LIBRARY_PATH").status().is_ok_and(|status| status.success())
}

/// Whether a program is on the search path, or in Debian's folders for administrators.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(program)).any(|file| file.is_file())
}

fn line(program: &str, args: &[&str], vars: &[(&str, &str)]) -> String {
    let vars = vars.iter().map(|(name, value)| format!("{name}={value} "));
    format!("{}{program} {}", vars.collect::<String>(), args.join(" "))
}

/// The name of the platform. With an explicit target, flags do not reach build scripts and procedural macros, which a
/// compiler without a sanitizer loads.
pub(crate) fn platform() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Result<(), Failed> {
        run(Path::new("/"), "sh", &["-c", script], &[("WORD", "word")])
    }

    #[test]
    fn the_last_output_of_a_failed_program_is_kept_in_order() {
        let script =
            "i=0; while [ $i -lt 50 ]; do echo $WORD $i; echo other $i >&2; i=$((i+1)); done; exit 3";
        let failed = sh(script).expect_err("it exits with 3");
        assert!(
            failed.why.starts_with("`WORD=word sh -c") && failed.why.ends_with("exit status: 3"),
            "{}",
            failed.why
        );
        let expected: Vec<_> = (30..50).flat_map(|i| [format!("word {i}"), format!("other {i}")]).collect();
        assert_eq!(failed.output, expected);
        assert!(sh("exit 0").is_ok());
    }

    #[test]
    fn the_tests_in_a_summary_are_counted() {
        let rest = "3 ignored; 0 measured; 7 filtered out; finished in 4.55s";
        assert_eq!(cases(&format!("test result: ok. 207 passed; 0 failed; {rest}")), 207);
        assert_eq!(cases(&format!("test result: FAILED. 8180 passed; 5 failed; {rest}")), 8185);
        assert_eq!(cases("test a::b ... ok"), 0);
    }

    #[test]
    fn children_of_a_program_are_not_waited_for() {
        let start = std::time::Instant::now();
        let failed = sh("echo left; sleep 60 & exit 1").expect_err("it exits with 1");
        assert_eq!(failed.output, ["left"]);
        assert!(start.elapsed() < Duration::from_secs(40), "it waited for what was left");
    }

    #[test]
    fn passed_tests_and_frames_of_a_backtrace_explain_nothing() {
        for line in ["", "test a::b   ... ok", "  12: core::panicking::panic", "       at src/lib.rs:7:5"] {
            assert!(!may_explain(line), "{line}");
        }
        for line in
            ["test a::b ... FAILED", "thread 'a' panicked at src/lib.rs:7:5:", "12 failed", "error: no"]
        {
            assert!(may_explain(line), "{line}");
        }
    }
}
