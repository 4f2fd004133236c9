//! The settings of the access log: its place, its format, and when it is written and rotated.

use std::path::PathBuf;

/// The format of a line of the access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// The Common Log Format: client, time, request line, status, bytes.
    Common,
    /// The same with `Referer` and `User-Agent`.
    #[default]
    Combined,
    /// A JSON object (RFC 8259), with the times of the response.
    Json,
}

impl LogFormat {
    pub(crate) const WORDS: &'static [(&'static str, LogFormat)] =
        &[("common", LogFormat::Common), ("combined", LogFormat::Combined), ("json", LogFormat::Json)];
}

/// When lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// From a buffer of each thread, when it is full or a second old.
    #[default]
    Buffered,
    /// Each line immediately, with its own call.
    Sync,
    /// By a separate thread of each process, through a bounded queue.
    Async,
}

impl Mode {
    pub(crate) const WORDS: &'static [(&'static str, Mode)] =
        &[("async", Mode::Async), ("buffered", Mode::Buffered), ("sync", Mode::Sync)];
}

/// The treatment of a line for which the queue has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Full {
    /// Its request waits.
    #[default]
    Block,
    /// It is dropped and counted.
    Drop,
}

impl Full {
    pub(crate) const WORDS: &'static [(&'static str, Full)] = &[("block", Full::Block), ("drop", Full::Drop)];
}

/// The name of a choice among `words`.
pub(crate) fn name_of<T: PartialEq>(words: &[(&'static str, T)], choice: &T) -> &'static str {
    words.iter().find(|(_, value)| value == choice).map_or("", |(name, _)| *name)
}

/// How an access log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manner {
    pub(crate) format: LogFormat,
    pub(crate) mode: Mode,
    pub(crate) full: Full,
    /// Bytes of lines that wait in the queue of the mode `async`.
    pub(crate) queue: usize,
}

/// The destination of the access log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogTarget {
    #[default]
    Off,
    /// Standard output.
    Output,
    File(PathBuf),
}

/// The condition for a new access log file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Rotate {
    /// On request.
    #[default]
    Off,
    /// At this many bytes.
    Size(u64),
    /// After this many lines.
    Lines(u64),
    /// At the beginning of a day, in UTC.
    Daily,
}
