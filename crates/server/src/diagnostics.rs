//! Messages on standard error, a line each. No request writes a message in its normal course. If the journal reads
//! standard error, each line begins with its priority. A server never waits for the reader. It counts lines for which
//! there is no room, and reports their number later.

pub(crate) mod day;
pub(crate) mod latest;
pub(crate) mod pieces;

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenfold_sys::stderr::{PIECE, StandardError};

use latest::LatestMessages;
use pieces::{count, whole_lines};

/// The least severe level that is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Level {
    /// A failure.
    Error,
    /// A condition that needs attention.
    Warn,
    /// An event.
    #[default]
    Info,
    /// Details.
    Debug,
}

impl Level {
    /// The levels by name.
    pub(crate) const WORDS: &'static [(&'static str, Level)] =
        &[("error", Level::Error), ("warn", Level::Warn), ("info", Level::Info), ("debug", Level::Debug)];
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Info as u8);

/// Sets the least severe level that is logged.
pub(crate) fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Whether messages begin with their time.
static TIMED: AtomicBool = AtomicBool::new(false);

/// Sets whether messages begin with their time. The journal records times itself.
pub(crate) fn show_times(on: bool) {
    TIMED.store(on && !is_read_by_journal(), Ordering::Relaxed);
}

/// The time before a message: `2026-11-21T08:00:00Z `.
fn time() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    match (TIMED.load(Ordering::Relaxed), since) {
        (true, Ok(since)) => format!("{} ", day::moment(since.as_secs())),
        _ => String::new(),
    }
}

/// Whether a message of `level` is shown.
pub(crate) fn shows(level: Level) -> bool {
    level as u8 <= LEVEL.load(Ordering::Relaxed)
}

/// Prints `message` if its level is shown. The server keeps its latest errors and warnings for its status.
pub(crate) fn say(level: Level, message: fmt::Arguments<'_>) {
    if shows(level) {
        let message = visible(&message.to_string());
        keep(level, Some(&message));
        print(level, &message);
    }
}

/// Prints a warning that names a requested file. The status counts it but does not show it, because the name of a file
/// can be a secret.
pub(crate) fn warn_of_file(message: &str) {
    if shows(Level::Warn) {
        keep(Level::Warn, None);
        print(Level::Warn, &visible(message));
    }
}

/// The latest errors and warnings of the server; `None` in other commands.
pub(crate) fn latest() -> Option<&'static LatestMessages> {
    OUTPUT.get().map(|output| &output.latest)
}

/// Counts an error or a warning, and keeps its text.
fn keep(level: Level, text: Option<&str>) {
    if let (Level::Error | Level::Warn, Some(output)) = (level, OUTPUT.get()) {
        output.latest.note(level == Level::Error, text);
    }
}

fn print(level: Level, message: &str) {
    let (name, colour) = match level {
        Level::Error => ("error: ", "\x1b[1;31m"),
        Level::Warn => ("warning: ", "\x1b[1;33m"),
        Level::Info => ("", ""),
        Level::Debug => ("debug: ", "\x1b[2m"),
    };
    let time = time();
    let line = match coloured() && !colour.is_empty() {
        true => format!("{time}tenfold: {colour}{name}\x1b[0m{message}\n"),
        false => format!("{time}tenfold: {name}{message}\n"),
    };
    lines(level, &line);
}

/// Whether a terminal hides a character: a control character, or a mark that reorders text.
pub(crate) fn is_hidden(character: char) -> bool {
    character.is_control() || !character.is_ascii() && character.escape_debug().len() > 1
}

/// Escapes hidden characters except tabs and line ends. Such characters can come from a database or a file name.
pub(crate) fn visible(message: &str) -> String {
    let mut shown = String::with_capacity(message.len());
    for character in message.chars() {
        match !matches!(character, '\n' | '\t') && is_hidden(character) {
            true => shown.extend(character.escape_debug()),
            false => shown.push(character),
        }
    }
    shown
}

/// Writes the lines of `text`, with their priority for the journal.
pub(crate) fn lines(level: Level, text: &str) {
    match is_read_by_journal() {
        true => raw(&with_priority(level, text)),
        false => raw(text),
    }
}

/// Writes the priority before each line (`man 3 sd-daemon`).
fn with_priority(level: Level, text: &str) -> String {
    let priority = match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug => 7,
    };
    text.lines().map(|line| format!("<{priority}>{line}\n")).collect()
}

/// Whether standard error is the journal's socket (`JOURNAL_STREAM` in `man 5 systemd.exec`). The check runs once, and
/// workers inherit its result.
pub(crate) fn is_read_by_journal() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
        let own = io::stderr().as_fd().try_clone_to_owned().and_then(|own| File::from(own).metadata());
        own.is_ok_and(|facts| stream == format!("{}:{}", facts.dev(), facts.ino()))
    })
}

/// Writes whole lines unchanged. Errors are ignored, because there is no other place to report them.
pub(crate) fn raw(text: &str) {
    match OUTPUT.get() {
        Some(output) => {
            report_lost();
            output.put(text.as_bytes());
        }
        None => {
            let _ = io::stderr().write_all(text.as_bytes());
        }
    }
}

/// The output of a server; empty for other commands, which wait for their reader.
static OUTPUT: OnceLock<Output> = OnceLock::new();

/// The interval of attempts to report lost lines.
pub(crate) const RETRY: Duration = Duration::from_secs(1);

/// From now on, this process and its children never wait for the reader of standard error.
pub(crate) fn never_wait() {
    // Without memory for the counter, later steps of the start also fail.
    if let Ok(latest) = LatestMessages::new() {
        let torn = AtomicBool::new(false);
        OUTPUT.get_or_init(|| Output { stderr: StandardError::open(), latest, torn });
    }
}

/// Whether there are lost lines that were not reported.
pub(crate) fn has_lost() -> bool {
    OUTPUT.get().is_some_and(|output| output.lost().load(Ordering::Relaxed) > 0)
}

/// Reports the number of lost lines if there is room for the report.
pub(crate) fn report_lost() {
    if let Some(output) = OUTPUT.get().filter(|_| has_lost()) {
        output.report_lost();
    }
}

/// Standard error of a server.
#[derive(Debug)]
struct Output {
    stderr: StandardError,
    latest: LatestMessages,
    /// The last write of this process ended within a line.
    torn: AtomicBool,
}

impl Output {
    fn lost(&self) -> &AtomicU64 {
        self.latest.lost()
    }

    /// Writes lines while there is room, and counts the rest.
    fn put(&self, mut lines: &[u8]) {
        // A report of lost lines comes before later lines.
        let mut has_room = !has_lost();
        while has_room && !lines.is_empty() {
            let (piece, rest) = lines.split_at(whole_lines(lines, PIECE));
            has_room = self.write(piece);
            lines = if has_room { rest } else { lines };
        }
        self.lost().fetch_add(count(lines), Ordering::Relaxed);
    }

    fn report_lost(&self) {
        let lost = self.lost().swap(0, Ordering::Relaxed);
        let text = format!(
            "{}tenfold: warning: {lost} lines of diagnostics were lost here, because standard error was not read\n",
            time()
        );
        let text = if is_read_by_journal() { with_priority(Level::Warn, &text) } else { text };
        if lost > 0 && shows(Level::Warn) && !self.write(text.as_bytes()) {
            self.lost().fetch_add(lost, Ordering::Relaxed);
        }
    }

    /// Writes a piece. Returns whether there was room for all its bytes.
    fn write(&self, piece: &[u8]) -> bool {
        let is_torn = self.torn.load(Ordering::Relaxed);
        if is_torn && self.stderr.write(b"\n").is_ok_and(|written| written == 0) {
            return false;
        }
        // A failing output cannot take a report of its failure.
        let written = self.stderr.write(piece).unwrap_or(piece.len());
        self.torn.store(written > 0 && written < piece.len(), Ordering::Relaxed);
        written == piece.len()
    }
}

/// Whether standard error is a terminal with colour.
pub(crate) fn coloured() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && std::io::stderr().is_terminal()
}

macro_rules! error {
    ($($message:tt)+) => { $crate::diagnostics::say($crate::diagnostics::Level::Error, format_args!($($message)+)) };
}
macro_rules! warning {
    ($($message:tt)+) => { $crate::diagnostics::say($crate::diagnostics::Level::Warn, format_args!($($message)+)) };
}
macro_rules! info {
    ($($message:tt)+) => { $crate::diagnostics::say($crate::diagnostics::Level::Info, format_args!($($message)+)) };
}
macro_rules! debug {
    ($($message:tt)+) => { $crate::diagnostics::say($crate::diagnostics::Level::Debug, format_args!($($message)+)) };
}
pub(crate) use {debug, error, info, warning};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_shows_characters_that_a_terminal_would_hide() {
        assert_eq!(visible("a\u{202e}b\x1b[2J\u{9b}é\n 日本"), "a\\u{202e}b\\u{1b}[2J\\u{9b}é\n 日本");
    }

    #[test]
    fn each_line_for_the_journal_has_its_priority() {
        assert_eq!(with_priority(Level::Error, "tenfold: error: x\n"), "<3>tenfold: error: x\n");
        assert_eq!(with_priority(Level::Info, "tenfold\n  serves\n"), "<6>tenfold\n<6>  serves\n");
    }
}
