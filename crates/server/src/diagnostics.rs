//! Messages on standard error: one line each, none on the path of a request.

use std::fmt;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU8, Ordering};

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
    /// How it happened.
    Debug,
}

impl Level {
    /// The levels by name.
    pub(crate) const WORDS: &'static [(&'static str, Level)] =
        &[("error", Level::Error), ("warn", Level::Warn), ("info", Level::Info), ("debug", Level::Debug)];
}

static LEVEL: AtomicU8 = AtomicU8::new(Level::Info as u8);

/// Says from now on what is at `level` or graver.
pub(crate) fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Whether a message of `level` is shown.
pub(crate) fn shows(level: Level) -> bool {
    level as u8 <= LEVEL.load(Ordering::Relaxed)
}

/// Says `message` where the level allows it.
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
    let line = match coloured() && !colour.is_empty() {
        true => format!("tenfold: {colour}{name}\x1b[0m{message}\n"),
        false => format!("tenfold: {name}{message}\n"),
    };
    raw(&line);
}

/// Writes text as it is, in one call; when standard error is gone there is nobody to tell.
pub(crate) fn raw(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Whether standard error is a terminal that is shown colour.
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
