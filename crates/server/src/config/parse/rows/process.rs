//! The access log, diagnostics, and the process itself.

use tenfold_sys::socket::ListenAddress;

use super::read::{count, name, or_off, rows, switch, word};
use crate::config::parse::row::Initial::{Follows, Value};
use crate::config::parse::row::{SettingRow, Text};
use crate::config::parse::units::{number, size};
use crate::config::values::Control;
use crate::config::values::log::{Full, LogFormat, LogTarget, Mode, Rotate};
use crate::diagnostics::Level;

pub(super) static ROWS: &[SettingRow] = rows! { "Log and process":
    One "access-log" "PATH|-|off" = Value("-"), not_null;
        access_log = access_log;
        "where to write a line for each response: a file, standard output (-), or off";
    One "log-format" "FORMAT" = Value("combined"), not_null;
        log.format = |given: Text<'_>| LogFormat::read(given.text);
        "format of the access log: common, combined, json (with the time of each response), or a text with fields such as {client} {user} [{time}] \"{request}\" {status} {bytes} {milliseconds}";
    One "request-id" "on|off" = Value("off"), not_null;
        request_id = switch;
        "identify each request by X-Request-Id, in its response and in log-format json: that of a trusted-proxy, or a new one";
    One "server-timing" "on|off" = Value("off"), not_null;
        server_timing = switch;
        "show visitors the engine, its system calls and the worker in the field Server-Timing of each response: for demonstrations";
    One "log-mode" "MODE" = Value("buffered"), not_null;
        log.mode = word("log mode", Mode::WORDS);
        "how to write lines: buffered (in batches, at least every second), sync (each immediately) or async (by a thread)";
    One "log-full" "WHAT" = Value("block"), not_null;
        log.full = word("rule for a full queue", Full::WORDS);
        "if the queue of log-mode async is full: block (requests wait) or drop (lines are lost and counted)";
    One "log-rotate" "WHEN" = Value("off"), not_null;
        log_rotate = |given: Text<'_>| rotate(given.text);
        "when to start a new access log file: off, a size (10 MiB), a count (100000 lines) or daily";
    One "log-keep" "N|off" = Value("off"), not_null;
        log_keep = or_off(count(1..=100_000));
        "maximum number of rotated log files; older ones are removed";
    One "log-level" "LEVEL" = Value("info");
        log_level = word("level", Level::WORDS);
        "least severe messages on standard error: error, warn, info or debug";
    One "user" "NAME" = Follows("nobody if started as root"), fixed;
        user = name;
        "the user that workers run as, if the server is started as root";
    One "control" "PATH|off" = Follows("in the runtime folder, named by the first address"), fixed;
        control = control;
        "the socket for `tenfold status` and `tenfold upgrade`";
    One "admin" "ADDRESS|off" = Value("off"), fixed;
        admin = or_off(admin);
        "an address for metrics and health checks: 127.0.0.1:9145 or unix:PATH; serves /metrics, /status, /healthz and /readyz";
};

fn access_log(given: Text<'_>) -> Result<LogTarget, String> {
    Ok(match given.text {
        "off" => LogTarget::Off,
        "-" => LogTarget::Output,
        _ => LogTarget::File(given.path()?),
    })
}

fn rotate(text: &str) -> Result<Rotate, String> {
    let lines = text.strip_suffix("lines").or_else(|| text.strip_suffix("line"));
    match (text, lines) {
        ("off", _) => Ok(Rotate::Off),
        ("daily", _) => Ok(Rotate::Daily),
        (_, Some(count)) => Ok(Rotate::Lines(number(count.trim_end(), 1..=u64::MAX)?)),
        _ => match size(text, 1024..=1 << 50) {
            Ok(bytes) => Ok(Rotate::Size(bytes)),
            Err(why) => Err(format!("{why}, and neither off, daily nor a count such as 100000 lines")),
        },
    }
}

fn control(given: Text<'_>) -> Result<Control, String> {
    if given.text == "off" { Ok(Control::Off) } else { given.path().map(Control::At) }
}

fn admin(given: Text<'_>) -> Result<ListenAddress, String> {
    given.address(given.text)
}
