//! Messages on standard error: one line each, none on the path of a request. If the journal reads standard error, each
//! line begins with its priority.

pub(crate) mod day;

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

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

/// From now on, shows messages of `level` and more severe ones.
pub(crate) fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Whether messages begin with their time.
static TIMED: AtomicBool = AtomicBool::new(false);

/// From now on, begins messages with their time, or no longer. The journal has times of its own.
pub(crate) fn show_times(on: bool) {
    TIMED.store(on && !is_read_by_journal(), Ordering::Relaxed);
}

/// The time in front of a message: `2026-11-21T08:00:00Z `.
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

/// Prints `message` if its level is shown.
pub(crate) fn say(level: Level, message: fmt::Arguments<'_>) {
    if !shows(level) {
        return;
    }
    let (name, colour) = match level {
        Level::Error => ("error: ", "\x1b[1;31m"),
        Level::Warn => ("warning: ", "\x1b[1;33m"),
        Level::Info => ("", ""),
        Level::Debug => ("debug: ", "\x1b[2m"),
    };
    let (time, message) = (time(), visible(&message.to_string()));
    let line = match coloured() && !colour.is_empty() {
        true => format!("{time}tenfold: {colour}{name}\x1b[0m{message}\n"),
        false => format!("{time}tenfold: {name}{message}\n"),
    };
    lines(level, &line);
}

/// Whether a terminal does not show a character as one: a control character, or a mark that reorders text.
pub(crate) fn is_hidden(character: char) -> bool {
    character.is_control() || !character.is_ascii() && character.escape_debug().len() > 1
}

/// Escapes hidden characters but tabs and the ends of lines: a database or a file's name may have chosen them.
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

/// Puts the priority in front of each line (`man 3 sd-daemon`).
fn with_priority(level: Level, text: &str) -> String {
    let priority = match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug => 7,
    };
    text.lines().map(|line| format!("<{priority}>{line}\n")).collect()
}

/// Whether standard error is the journal's socket (`JOURNAL_STREAM` in `man 5 systemd.exec`). It is asked once: workers
/// inherit the answer.
pub(crate) fn is_read_by_journal() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
        let own = io::stderr().as_fd().try_clone_to_owned().and_then(|own| File::from(own).metadata());
        own.is_ok_and(|facts| stream == format!("{}:{}", facts.dev(), facts.ino()))
    })
}

/// Writes text unchanged, in one call. Errors are ignored, because there is no other place to report them.
pub(crate) fn raw(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
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
    fn a_message_shows_what_a_terminal_would_hide() {
        assert_eq!(visible("a\u{202e}b\x1b[2J\u{9b}é\n 日本"), "a\\u{202e}b\\u{1b}[2J\\u{9b}é\n 日本");
    }

    #[test]
    fn each_line_for_the_journal_has_its_priority() {
        assert_eq!(with_priority(Level::Error, "tenfold: error: x\n"), "<3>tenfold: error: x\n");
        assert_eq!(with_priority(Level::Info, "tenfold\n  serves\n"), "<6>tenfold\n<6>  serves\n");
    }
}
