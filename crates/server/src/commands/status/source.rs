//! The two sources of a report: the control socket of this machine, and an admin listener.

use std::fmt::Display;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use tenfold_sys::socket::ListenAddress;

use crate::commands::output::escape_json;
use crate::diagnostics::is_hidden;
use crate::sandbox::apart::read_to_end;
use crate::status::report::StatusReport;

/// The longest wait for a report.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most bytes of a report.
const LONGEST: u64 = 4 << 20;

/// The server to ask.
pub(crate) enum StatusSource {
    Control(PathBuf),
    /// The address of an admin listener, as typed.
    Admin(String),
}

impl StatusSource {
    /// Requests a report. Returns its text and the parsed report.
    pub(in crate::commands) fn ask(&self) -> Result<(String, StatusReport), String> {
        let (text, whom) = match self {
            StatusSource::Control(path) => (ask_control(path), path.display().to_string()),
            StatusSource::Admin(address) => (ask_admin(address), address.clone()),
        };
        let text = text.map_err(|error| match (error.kind(), self) {
            (ErrorKind::InvalidData, StatusSource::Admin(_)) => {
                format!("{whom} is no admin listener: {error}")
            }
            _ => unanswered(&whom, &error),
        })?;
        let report = serde_json::from_str(&text).and_then(|mut value| {
            escape_controls(&mut value);
            serde_json::from_value(value)
        });
        let report = report.map_err(|error| {
            format!(
                "the process at {whom} does not answer as a server of this version; use the program of that server: \
                 {error}"
            )
        })?;
        Ok((escape_json(&text), report))
    }
}

/// The message if `whom` sent no report.
pub(in crate::commands) fn unanswered(whom: impl Display, error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => {
            format!("cannot connect to {whom}: {error}; run the command as root or as the user of the server")
        }
        _ => format!("no server answers at {whom}: {error}"),
    }
}

/// Escapes hidden characters in all texts, because the other process may not be a server and could control the
/// terminal.
fn escape_controls(value: &mut Value) {
    match value {
        Value::String(text) if text.contains(is_hidden) => *text = text.escape_debug().to_string(),
        Value::Array(all) => all.iter_mut().for_each(escape_controls),
        Value::Object(all) => {
            let escaped = std::mem::take(all).into_iter().map(|(key, mut value)| {
                escape_controls(&mut value);
                (key.escape_debug().to_string(), value)
            });
            all.extend(escaped);
        }
        _ => {}
    }
}

fn ask_control(path: &Path) -> io::Result<String> {
    let stream = UnixStream::connect(path)?;
    let text = read_to_end(&stream, LONGEST as usize, Instant::now() + PATIENCE)?;
    String::from_utf8(text).map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
}

fn ask_admin(address: &str) -> io::Result<String> {
    let address = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
    if let Ok(ListenAddress::Unix(path)) = address.parse() {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        return fetch(stream, "localhost");
    }
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for at in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&at, PATIENCE) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                return fetch(stream, address);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Requests the status over `stream`. The server closes the connection after the response, so the body is the rest.
fn fetch(mut stream: impl Read + Write, host: &str) -> io::Result<String> {
    write!(stream, "GET /status HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.take(LONGEST).read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    match head.split(' ').nth(1) {
        Some("200") => Ok(body.to_owned()),
        status => {
            let status = status.unwrap_or("no HTTP");
            let why = format!(
                "it answered /status with {status}; without an address, `tenfold status` finds the server"
            );
            Err(io::Error::new(ErrorKind::InvalidData, why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_cannot_write_to_the_terminal_of_its_reader() {
        let mut value = serde_json::json!({ "engine": "\u{1b}[31mred", "listen": ["a\nb", "127.0.0.1:80"], "process": 7, "responses": { "\u{1b}]0;x": 1 } });
        escape_controls(&mut value);
        let escaped = serde_json::json!({ "engine": "\\u{1b}[31mred", "listen": ["a\\nb", "127.0.0.1:80"], "process": 7, "responses": { "\\u{1b}]0;x": 1 } });
        assert_eq!(value, escaped);
    }

    #[test]
    fn marks_that_reorder_text_are_shown_as_escapes() {
        let mut value = serde_json::json!({ "engine": "epoll\u{202e}gnp", "listen": ["unix:/tmp/\u{fc}"] });
        escape_controls(&mut value);
        let escaped = serde_json::json!({ "engine": "epoll\\u{202e}gnp", "listen": ["unix:/tmp/\u{fc}"] });
        assert_eq!(value, escaped);
    }

    #[test]
    fn escaped_json_means_the_same_and_has_only_printable_characters() {
        let text = "{\n\t\"a\u{9b}31m\": \"\u{7f}\u{202e}\u{e0041} \u{fc}\u{1f600}\\u001b\" }\r\n";
        let escaped = escape_json(text);
        assert_eq!(
            escaped,
            "{\n\t\"a\\u009b31m\": \"\\u007f\\u202e\\udb40\\udc41 \u{fc}\u{1f600}\\u001b\" }\r\n"
        );
        let value = |text| serde_json::from_str::<Value>(text).expect("it is JSON");
        assert_eq!(value(&escaped), value(text));
    }
}
