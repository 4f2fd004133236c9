//! The access log, diagnostics, and the process itself.

use super::super::table::Initial::{Follows, Value};
use super::super::table::{Row, one};
use super::super::units::{number, size, switch, word};
use super::super::{Control, Level, LogTarget, Rotate};
use crate::log::{Format, Full, Mode};
use crate::sandbox::OPTIONAL;

const HEADING: &str = "Log and process";

pub(super) static ROWS: &[Row] = &[
    one(
        ("access-log", "PATH|-|off", HEADING),
        Value("-"),
        "a line per answer to this file, to standard output (-), or none",
        |settings, text| {
            settings.access_log = match text.text {
                "off" => LogTarget::Off,
                "-" => LogTarget::Output,
                _ => LogTarget::File(text.path()?),
            };
            Ok(())
        },
    )
    .null_only("off"),
    one(
        ("log-format", "FORMAT", HEADING),
        Value("combined"),
        "of the access log: common, combined, or json (with what each response took)",
        |settings, text| {
            settings.log.format = word(text.text, "log format", Format::WORDS)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("log-mode", "MODE", HEADING),
        Value("buffered"),
        "when lines are written: buffered (when many, and after a second), sync (each at once) or async (by a \
         thread)",
        |settings, text| {
            settings.log.mode = word(text.text, "log mode", Mode::WORDS)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("log-full", "WHAT", HEADING),
        Value("block"),
        "when the queue of log-mode async is full: block (requests wait) or drop (lines are counted)",
        |settings, text| {
            settings.log.full = word(text.text, "way to be full", Full::WORDS)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("log-rotate", "WHEN", HEADING),
        Value("off"),
        "when the access log gets a new file: off, a size (10 MB), a count (100000 lines) or daily",
        |settings, text| {
            settings.log_rotate = rotate(text.text)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("log-level", "LEVEL", HEADING),
        Value("info"),
        "what is said on standard error: error, warn, info or debug",
        |settings, text| {
            settings.log_level = word(text.text, "level", Level::WORDS)?;
            Ok(())
        },
    ),
    one(
        ("user", "NAME", HEADING),
        Follows("nobody when started as root"),
        "whom workers become; for a server that is started as root",
        |settings, text| {
            settings.user = Some(text.text.to_owned());
            Ok(())
        },
    )
    .fixed(),
    one(
        ("control", "PATH|off", HEADING),
        Follows("in the runtime folder, named by the first address"),
        "the socket that `tenfold status` asks",
        |settings, text| {
            settings.control = match text.text {
                "off" => Control::Off,
                _ => Control::At(text.path()?),
            };
            Ok(())
        },
    )
    .fixed(),
    one(
        ("sandbox", "on|off", HEADING),
        Value("on"),
        "confine processes to the system calls of what they run; off only in builds with a sanitizer",
        |settings, text| {
            settings.sandbox = switch(text.text)?;
            match settings.sandbox || OPTIONAL {
                true => Ok(()),
                false => Err("only a build with a sanitizer can serve without the sandbox".into()),
            }
        },
    )
    .fixed(),
];

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
