//! A format of the user's own for the access log: a text with fields, such as `{client} {status}`.

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinePiece {
    /// Written unchanged.
    Text(Box<str>),
    Field(LogField),
}

/// A value that a line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogField {
    Client,
    User,
    RequestId,
    Time,
    TimeIso,
    Request,
    Method,
    Host,
    Path,
    Query,
    Protocol,
    Status,
    Bytes,
    Referer,
    Agent,
    ProcessMicroseconds,
    SendMicroseconds,
    Sends,
    Milliseconds,
    TlsVersion,
    TlsCipher,
    TlsServerName,
}

impl LogField {
    /// The fields by name. The names are those of the format `json`.
    const NAMES: &'static [(&'static str, LogField)] = &[
        ("client", LogField::Client),
        ("user", LogField::User),
        ("request_id", LogField::RequestId),
        ("time", LogField::Time),
        ("time_iso", LogField::TimeIso),
        ("request", LogField::Request),
        ("method", LogField::Method),
        ("host", LogField::Host),
        ("path", LogField::Path),
        ("query", LogField::Query),
        ("protocol", LogField::Protocol),
        ("status", LogField::Status),
        ("bytes", LogField::Bytes),
        ("referer", LogField::Referer),
        ("agent", LogField::Agent),
        ("process_us", LogField::ProcessMicroseconds),
        ("send_us", LogField::SendMicroseconds),
        ("sends", LogField::Sends),
        ("milliseconds", LogField::Milliseconds),
        ("tls_version", LogField::TlsVersion),
        ("tls_cipher", LogField::TlsCipher),
        ("tls_server_name", LogField::TlsServerName),
    ];

    /// Whether it is known only after the response has been sent.
    pub(crate) fn is_late(self) -> bool {
        self == LogField::Bytes || self.is_time()
    }

    /// Whether responses are measured for it.
    pub(crate) fn is_time(self) -> bool {
        use LogField::{Milliseconds, ProcessMicroseconds, SendMicroseconds, Sends};
        matches!(self, ProcessMicroseconds | SendMicroseconds | Sends | Milliseconds)
    }
}

/// A format, read once. Its texts have no control characters, so a line stays a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineTemplate {
    pub(crate) pieces: Vec<LinePiece>,
}

impl LineTemplate {
    /// Reads a text in which `{name}` is a field, and `{{` and `}}` are braces.
    ///
    /// # Errors
    /// In words: an unknown field, a brace without its other half, or a control character.
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
