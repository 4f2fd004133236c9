//! Lines of a format of the user's own. Text from clients is escaped as in `combined`; unknown values are `-`.

use std::io::Write;
use std::time::Duration;

use tenfold_http::RequestSummary;

use super::combined::escape;
use super::line::{Date, LineStart, Times, put_number, put_peer};
use crate::config::values::log::{LinePiece, LineTemplate, LogField};

/// Marks the place of a value that is not known yet. No other text of a line contains this byte.
const LATER: u8 = 0;

/// Writes a line. Without `end`, [`finish`] adds the values that depend on it.
pub(super) fn put(
    template: &LineTemplate,
    line: &mut Vec<u8>,
    date: &mut Date,
    start: LineStart<'_>,
    end: Option<(u64, Times)>,
) {
    let LineStart { peer, request, summary, status, fields } = start;
    let (method, protocol) = match summary {
        RequestSummary::Parsed { method, version, .. } => (Some(method.as_str()), Some(version.as_str())),
        RequestSummary::Unparsed(_) => (None, None),
    };
    let tls = fields.tls;
    for piece in &template.pieces {
        let field = match piece {
            LinePiece::Text(text) => {
                line.extend_from_slice(text.as_bytes());
                continue;
            }
            LinePiece::Field(field) => *field,
        };
        let text = match field {
            LogField::Client => {
                put_peer(line, peer);
                continue;
            }
            LogField::User => {
                put_user(line, fields.user.unwrap_or_default());
                continue;
            }
            LogField::Time => {
                line.extend_from_slice(date.common());
                continue;
            }
            LogField::TimeIso => {
                line.extend_from_slice(date.rfc3339());
                continue;
            }
            LogField::Status => {
                put_number(line, u64::from(status));
                continue;
            }
            LogField::Bytes
            | LogField::ProcessMicroseconds
            | LogField::SendMicroseconds
            | LogField::Sends
            | LogField::Milliseconds => {
                match end {
                    Some((bytes, times)) => put_late(line, field, bytes, times),
                    None => line.push(LATER),
                }
                continue;
            }
            LogField::Request => Some(request),
            LogField::RequestId => fields.request_id,
            LogField::Method => method.map(str::as_bytes),
            LogField::Host => fields.host.map(str::as_bytes),
            LogField::Path => fields.path.map(str::as_bytes),
            LogField::Query => fields.query.map(str::as_bytes),
            LogField::Protocol => protocol.map(str::as_bytes),
            LogField::Referer => fields.referer,
            LogField::Agent => fields.agent,
            LogField::Reason => fields.reason.map(str::as_bytes),
            LogField::TlsVersion => tls.map(|tls| tls.version.as_bytes()),
            LogField::TlsCipher => tls.map(|tls| tls.cipher.as_bytes()),
            LogField::TlsServerName => tls.and_then(|tls| tls.server_name.as_deref()).map(str::as_bytes),
        };
        match text {
            Some(text) if !text.is_empty() => escape(line, text),
            _ => line.push(b'-'),
        }
    }
    line.push(b'\n');
}

/// Writes a user name. A blank in the name would look like the end of the field, so it is escaped.
fn put_user(line: &mut Vec<u8>, name: &[u8]) {
    let begin = line.len();
    escape(line, if name.is_empty() { b"-" } else { name });
    if line[begin..].contains(&b' ') {
        let shown = line.split_off(begin);
        line.extend(shown.split(|byte| *byte == b' ').collect::<Vec<_>>().join(&b"\\x20"[..]));
    }
}

/// Completes a line that [`put`] began as `begun`, and writes it.
pub(super) fn finish(template: &LineTemplate, line: &mut Vec<u8>, begun: &[u8], bytes: u64, times: Times) {
    let mut late = template.fields().filter(|field| field.is_late());
    for (place, part) in begun.split(|byte| *byte == LATER).enumerate() {
        if place > 0
            && let Some(field) = late.next()
        {
            put_late(line, field, bytes, times);
        }
        line.extend_from_slice(part);
    }
}

fn put_late(line: &mut Vec<u8>, field: LogField, bytes: u64, times: Times) {
    let microseconds = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let number = match field {
        LogField::ProcessMicroseconds => times.process.map(microseconds),
        LogField::SendMicroseconds => times.send.map(microseconds),
        LogField::Sends => times.sends.map(u64::from),
        LogField::Milliseconds => {
            let all = times.process.zip(times.send).map(|(process, send)| microseconds(process + send));
            return match all {
                Some(all) => write!(line, "{}.{:03}", all / 1000, all % 1000)
                    .expect("memory does not fail to be written"),
                None => line.push(b'-'),
            };
        }
        _ => Some(bytes),
    };
    match number {
        Some(number) => put_number(line, number),
        None => line.push(b'-'),
    }
}

#[cfg(test)]
mod tests {
    use tenfold_http::{Instant, Method, Peer, Version, clock};

    use super::*;
    use crate::log::line::LogFields;

    fn times() -> Times {
        let micros = Duration::from_micros;
        Times { process: Some(micros(31)), send: Some(micros(1500)), sends: Some(2) }
    }

    fn lines(format: &str, fields: LogFields<'_>, times: Times) -> String {
        clock::set(Instant(1), 1_795_248_000);
        let template = LineTemplate::parse(format).expect("legal");
        let (method, version) = (Method::Get, Version::Http11);
        let summary = RequestSummary::Parsed { method, target: "/a?b", version };
        let peer = Peer::Internet("192.0.2.7:5000".parse().expect("an address"));
        let start = LineStart { peer: &peer, request: b"GET /a?b HTTP/1.1", summary, status: 200, fields };
        let mut date = Date::default();
        let (mut whole, mut begun, mut finished) = (Vec::new(), Vec::new(), Vec::new());
        put(&template, &mut whole, &mut date, start, Some((5, times)));
        put(&template, &mut begun, &mut date, start, None);
        finish(&template, &mut finished, &begun, 5, times);
        assert_eq!(whole, finished, "a line is the same whether its end is known at once or later");
        String::from_utf8(whole).expect("a line is ASCII")
    }

    #[test]
    fn a_name_with_blanks_is_one_field() {
        let fields = LogFields { user: Some(b"x [a] \x01"), ..LogFields::default() };
        assert_eq!(lines("{user} {status}", fields, times()), "x\\x20[a]\\x20\\x01 200\n");
        assert_eq!(lines("{user}", LogFields::default(), times()), "-\n");
    }

    #[test]
    fn a_line_has_its_texts_and_fields() {
        let fields = LogFields {
            user: Some(b"ada"),
            host: Some("a.example"),
            path: Some("/a"),
            query: Some("b"),
            agent: Some(b"x \"y\"\0"),
            ..LogFields::default()
        };
        let format =
            "{client} {user} [{time}] \"{request}\" {status} {bytes} \"{agent}\" {milliseconds}ms {sends}";
        assert_eq!(
            lines(format, fields, times()),
            "192.0.2.7 ada [21/Nov/2026:08:00:00 +0000] \"GET /a?b HTTP/1.1\" 200 5 \"x \\x22y\\x22\\x00\" \
             1.531ms 2\n"
        );
        let format = "{time_iso}|{method}|{host}|{path}|{query}|{protocol}|{process_us}|{send_us}|{{}}";
        assert_eq!(
            lines(format, fields, times()),
            "2026-11-21T08:00:00Z|GET|a.example|/a|b|HTTP/1.1|31|1500|{}\n"
        );
    }

    #[test]
    fn an_unknown_value_is_a_dash() {
        let format =
            "{user} {referer} {tls_version} {tls_cipher} {tls_server_name} {milliseconds} {sends} {bytes}";
        assert_eq!(lines(format, LogFields::default(), Times::default()), "- - - - - - - 5\n");
        assert_eq!(lines("{reason}", LogFields::default(), Times::default()), "-\n");
    }
}
