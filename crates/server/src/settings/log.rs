//! The settings of the access log: its place, its format, and when it is written and rotated.

use std::path::PathBuf;
use std::sync::Arc;

use super::log_format::{LineTemplate, LogField};

/// The format of a line of the access log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// The Common Log Format: client, time, request line, status, bytes.
    Common,
    /// The same with `Referer` and `User-Agent`.
    #[default]
    Combined,
    /// A JSON object (RFC 8259), with the times of the response.
    Json,
    /// A text with fields.
    Own(Arc<LineTemplate>),
}

impl LogFormat {
    /// Reads a name, or a text with fields.
    pub(crate) fn read(text: &str) -> Result<LogFormat, String> {
        match text {
            "common" => Ok(LogFormat::Common),
            "combined" => Ok(LogFormat::Combined),
            "json" => Ok(LogFormat::Json),
            template if template.contains('{') => {
                LineTemplate::parse(template).map(|template| LogFormat::Own(Arc::new(template)))
            }
            other => Err(format!(
                "there is no log format {other:?}; there are common, combined, json, and a text with fields such as \
                 {{client}} {{status}}"
            )),
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            LogFormat::Common => "common",
            LogFormat::Combined => "combined",
            LogFormat::Json => "json",
            LogFormat::Own(_) => "a format of its own",
        }
    }

    /// Whether lines show the times of responses.
    pub(crate) fn shows_times(&self) -> bool {
        match self {
            LogFormat::Json => true,
            LogFormat::Own(template) => template.fields().any(LogField::is_time),
            LogFormat::Common | LogFormat::Combined => false,
        }
    }

    /// Whether lines show the user of a request.
    pub(crate) fn shows_user(&self) -> bool {
        match self {
            LogFormat::Json => true,
            LogFormat::Own(template) => template.fields().any(|field| field == LogField::User),
            LogFormat::Common | LogFormat::Combined => false,
        }
    }
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
