//! The settings of the access log: its destination, format, time of writing, and rotation.

use std::path::PathBuf;
use std::sync::Arc;

/// The format of a line of the access log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// The Common Log Format: client, time, request line, status, bytes.
    Common,
    /// The Common Log Format with `Referer` and `User-Agent`.
    #[default]
    Combined,
    /// A JSON object (RFC 8259), with the times of the response.
    Json,
    /// A format of the user's own.
    Own(Arc<LineTemplate>),
}

impl LogFormat {
    /// Reads the name of a format, or a text with fields.
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

    /// The name of the format.
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

/// The time of writing lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// From a buffer of each thread, if it is full or a second old.
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

/// The treatment of a line if the queue has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Full {
    /// The request waits.
    #[default]
    Block,
    /// The line is dropped and counted.
    Drop,
}

impl Full {
    pub(crate) const WORDS: &'static [(&'static str, Full)] = &[("block", Full::Block), ("drop", Full::Drop)];
}

/// The name of a choice among `words`.
pub(crate) fn name_of<T: PartialEq>(words: &[(&'static str, T)], choice: &T) -> &'static str {
    words.iter().find(|(_, value)| value == choice).map_or("", |(name, _)| *name)
}

/// The manner of writing an access log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manner {
    pub(crate) format: LogFormat,
    pub(crate) mode: Mode,
    pub(crate) full: Full,
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

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinePiece {
    /// Written unchanged.
    Text(Box<str>),
    Field(LogField),
}

/// Defines the values in a line, by their names in the format `json`.
macro_rules! log_fields {
    ($($field:ident = $name:literal,)*) => {
        /// A value in a line.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum LogField {
            $($field,)*
        }

        impl LogField {
            const NAMES: &'static [(&'static str, LogField)] = &[$(($name, LogField::$field),)*];
        }
    };
}

log_fields! {
    Client = "client",
    User = "user",
    RequestId = "request_id",
    Time = "time",
    TimeIso = "time_iso",
    Request = "request",
    Method = "method",
    Host = "host",
    Path = "path",
    Query = "query",
    Protocol = "protocol",
    Status = "status",
    Reason = "reason",
    Bytes = "bytes",
    Referer = "referer",
    Agent = "agent",
    ProcessMicroseconds = "process_us",
    SendMicroseconds = "send_us",
    Sends = "sends",
    Milliseconds = "milliseconds",
    TlsVersion = "tls_version",
    TlsCipher = "tls_cipher",
    TlsServerName = "tls_server_name",
}

impl LogField {
    /// Whether the value is known only after the response has been sent.
    pub(crate) fn is_late(self) -> bool {
        self == LogField::Bytes || self.is_time()
    }

    /// Whether the value is a measured time of the response.
    pub(crate) fn is_time(self) -> bool {
        use LogField::{Milliseconds, ProcessMicroseconds, SendMicroseconds, Sends};
        matches!(self, ProcessMicroseconds | SendMicroseconds | Sends | Milliseconds)
    }
}

/// A parsed format. Its texts have no control characters, so a line of the log is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineTemplate {
    pub(crate) pieces: Vec<LinePiece>,
}

impl LineTemplate {
    /// Parses a text in which `{name}` is a field, and `{{` and `}}` are braces.
    pub(crate) fn parse(text: &str) -> Result<LineTemplate, String> {
        if text.chars().any(char::is_control) {
            return Err("a log format is one line without control characters".into());
        }
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
                continue;
            }
            let (name, after) = match (brace, rest.split_once('}')) {
                ("{", Some(parts)) => parts,
                _ => {
                    return Err(format!(
                        "{brace:?} stands alone; write {{name}} for a field, and {brace}{brace} for a brace"
                    ));
                }
            };
            let field = LogField::NAMES.iter().find(|(known, _)| *known == name);
            let (_, field) = field.ok_or_else(|| {
                let all: Vec<_> = LogField::NAMES.iter().map(|(name, _)| *name).collect();
                format!("there is no field {name:?} of the log; there are {}", all.join(", "))
            })?;
            if !plain.is_empty() {
                pieces.push(LinePiece::Text(std::mem::take(&mut plain).into()));
            }
            pieces.push(LinePiece::Field(*field));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(LinePiece::Text(plain.into()));
        }
        Ok(LineTemplate { pieces })
    }

    /// Its fields, in order.
    pub(crate) fn fields(&self) -> impl Iterator<Item = LogField> {
        self.pieces.iter().filter_map(|piece| match piece {
            LinePiece::Field(field) => Some(*field),
            LinePiece::Text(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_texts_and_fields() {
        let text = |text: &str| LinePiece::Text(text.into());
        let template = LineTemplate::parse("{client} -> {{{status}}}!").expect("legal");
        let field = LinePiece::Field;
        assert_eq!(
            template.pieces,
            [field(LogField::Client), text(" -> {"), field(LogField::Status), text("}!")]
        );
    }

    #[test]
    fn a_wrong_format_names_the_remedy() {
        for (wrong, words) in [
            ("{colour}", "there is no field \"colour\" of the log; there are client, user, "),
            ("{client", "\"{\" stands alone; write {name} for a field, and {{ for a brace"),
            ("{client} }", "\"}\" stands alone"),
            ("{client}\n", "one line"),
        ] {
            let message = LineTemplate::parse(wrong).expect_err(wrong);
            assert!(message.contains(words), "{wrong:?}: {message}");
        }
    }
}
