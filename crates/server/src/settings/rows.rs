//! The settings: one row each.

use std::time::Duration;

use tenfold_engine::Plan;
use tenfold_http::Limits;

use super::table::Initial::{Follows, Value};
use super::table::{Row, Text, many, one};
use super::units::{duration, number, size, switch, word};
use super::{Control, EngineChoice, Level, LogTarget, Rotate};
use crate::log::{Format, Full, Mode};

const TICK: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const MB: u64 = 1 << 20;

const SITE: &str = "The site";
const MODEL: &str = "The I/O model";
const TCP: &str = "TCP";
const TIME: &str = "Time";
const BOUNDS: &str = "Bounds";
const LOG: &str = "Log and process";

/// Every setting, in the order of the help.
pub(crate) static ROWS: &[Row] = &[
    many(
        ("listen", "ADDRESS", SITE),
        Value("127.0.0.1:8080"),
        "where to listen: ADDRESS:PORT, [::]:80 or unix:PATH; can be given several times",
        |settings, texts| {
            settings.listen = texts.iter().map(Text::address).collect::<Result<_, _>>()?;
            if settings.listen.is_empty() { Err("at least one address is needed".into()) } else { Ok(()) }
        },
    )
    .fixed(),
    one(("root", "DIR", SITE), Value("."), "the folder to serve", |settings, text| {
        settings.root = text.path()?;
        Ok(())
    })
    .not_null(),
    one(
        ("index", "NAME", SITE),
        Value("index.html"),
        "the file that is served for a folder",
        |settings, text| {
            if text.text.is_empty() || text.text.contains(['/', '\0']) {
                return Err(format!("{:?} is not the name of a file, such as index.html", text.text));
            }
            settings.index = text.text.to_owned();
            Ok(())
        },
    )
    .not_null(),
    one(
        ("echo", "PATH|off", SITE),
        Value("off"),
        "a path that answers any method with the body of the request, for tests of framing",
        |settings, text| {
            settings.echo = match text.text {
                "off" => None,
                path if is_path(path) => Some(path.to_owned()),
                _ => return Err(format!("{:?} is not the path of a URL, such as /echo, or off", text.text)),
            };
            Ok(())
        },
    )
    .not_null(),
    one(
        ("engine", "MODEL", MODEL),
        Value("auto"),
        "the I/O model: auto, naive, fork, thread, pool, busy, select, poll, epoll or uring; see `tenfold engines`",
        |settings, text| {
            settings.engine = match text.text {
                "auto" => EngineChoice::Auto,
                name => EngineChoice::Named(name.parse().map_err(|why: String| format!("{why} and auto"))?),
            };
            Ok(())
        },
    )
    .fixed(),
    one(
        ("topology", "TOPOLOGY", MODEL),
        Follows("single for one worker, reuseport-processes else"),
        "how workers stand to sockets: single, threads, reuseport-processes, reuseport-threads or handoff",
        |settings, text| {
            settings.topology = Some(text.text.parse()?);
            Ok(())
        },
    )
    .fixed(),
    one(
        ("workers", "N", MODEL),
        Follows("one per processor, where the model can have several"),
        "how many workers",
        |settings, text| {
            settings.workers = Some(number(text.text, 1..=Plan::MOST_WORKERS as u32)? as usize);
            Ok(())
        },
    )
    .fixed(),
    one(
        ("trigger", "PAIR", MODEL),
        Follows("lt+et, where the model has triggers"),
        "when epoll reports, for listener+connections: lt+et, lt+lt, et+lt or et+et",
        |settings, text| {
            settings.trigger = Some(text.text.parse()?);
            Ok(())
        },
    )
    .fixed(),
    one(
        ("send", "SENDER", MODEL),
        Value("auto"),
        "how files are sent: auto (small ones from memory, sendfile beyond), copy or sendfile",
        |settings, text| {
            settings.send = Some(text.text.parse()?);
            Ok(())
        },
    )
    .null_only("auto"),
    one(
        ("pool-threads", "N", MODEL),
        Value("16"),
        "threads of the engine pool: connections that are served at once",
        |settings, text| {
            settings.pool_threads = number(text.text, 1..=4096u32)? as usize;
            Ok(())
        },
    )
    .fixed(),
    one(
        ("pool-queue", "N", MODEL),
        Value("1024"),
        "accepted connections that wait for a thread of the pool; past it they are closed and counted",
        |settings, text| {
            settings.pool_queue = number(text.text, 1..=1_000_000u32)? as usize;
            Ok(())
        },
    )
    .fixed(),
    one(
        ("handoff-queue", "N", MODEL),
        Value("1024"),
        "accepted connections that wait for each worker of topology handoff; past it they are closed and counted",
        |settings, text| {
            settings.handoff_queue = number(text.text, 1..=1_000_000u32)? as usize;
            Ok(())
        },
    )
    .fixed(),
    one(
        ("busy-sleep", "TIME", MODEL),
        Value("1ms"),
        "how long the engine busy sleeps after a turn in which nothing was done; 0ms burns a processor",
        |settings, text| {
            settings.busy_sleep = duration(text.text, Duration::ZERO..=Duration::from_secs(1))?;
            Ok(())
        },
    )
    .fixed(),
    one(
        ("timer", "TIMER", MODEL),
        Value("wheel"),
        "how a loop keeps its deadlines: list, heap, wheel or hierarchical",
        |settings, text| {
            settings.timer = Some(text.text.parse()?);
            Ok(())
        },
    )
    .fixed(),
    one(
        ("timer-update", "WHEN", MODEL),
        Value("lazy"),
        "when a timer is touched: lazy (for an earlier deadline) or eager (for every new one)",
        |settings, text| {
            settings.timer_update = Some(text.text.parse()?);
            Ok(())
        },
    )
    .fixed(),
    one(
        ("tcp-nodelay", "on|off", TCP),
        Value("on"),
        "send at once, however little (TCP_NODELAY)",
        |settings, text| {
            settings.tcp_nodelay = switch(text.text)?;
            Ok(())
        },
    )
    .fixed(),
    one(
        ("backlog", "N", TCP),
        Value("4096"),
        "connections that the kernel completes ahead of accept",
        |settings, text| {
            settings.backlog = number(text.text, 1..=65_535u32)?;
            Ok(())
        },
    )
    .fixed(),
    one(
        ("defer-accept", "on|off", TCP),
        Value("on"),
        "accept a connection when its first bytes are there (TCP_DEFER_ACCEPT)",
        |settings, text| {
            settings.defer_accept = switch(text.text)?;
            Ok(())
        },
    )
    .fixed(),
    one(
        ("head-timeout", "TIME", TIME),
        Value("10s"),
        "for the whole head of a request, however it trickles; then 408",
        |settings, text| {
            settings.limits.head_timeout = duration(text.text, TICK..=DAY)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("body-timeout", "TIME", TIME),
        Value("30s"),
        "the window in which a body keeps min-rate",
        |settings, text| {
            settings.limits.body_timeout = duration(text.text, TICK..=DAY)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("send-timeout", "TIME", TIME),
        Value("60s"),
        "the window in which a client takes min-rate",
        |settings, text| {
            settings.limits.send_timeout = duration(text.text, TICK..=DAY)?;
            Ok(())
        },
    ),
    one(
        ("min-rate", "BYTES", TIME),
        Value("240"),
        "bytes a second that move at least, over each window",
        |settings, text| {
            settings.limits.min_rate = size(text.text, 1..=1024 * MB)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("idle-timeout", "TIME", TIME),
        Value("75s"),
        "how long a connection may rest between requests",
        |settings, text| {
            settings.limits.idle_timeout = duration(text.text, TICK..=DAY)?;
            Ok(())
        },
    ),
    one(
        ("drain-timeout", "TIME", TIME),
        Value("30s"),
        "how long running answers may take to finish after TERM",
        |settings, text| {
            settings.drain_timeout = duration(text.text, TICK..=DAY)?;
            Ok(())
        },
    ),
    one(
        ("max-connections", "N", BOUNDS),
        Follows("from the descriptor limit"),
        "connections at once, of each worker; past it they are closed and counted",
        |settings, text| {
            settings.max_connections = Some(number(text.text, 1..=100_000_000u32)? as usize);
            Ok(())
        },
    ),
    one(
        ("max-head", "BYTES", BOUNDS),
        Value("16 KB"),
        "of a request's head; past it 431",
        |settings, text| {
            settings.limits.max_head = size(text.text, 64..=MB)? as usize;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("max-headers", "N", BOUNDS),
        Value("100"),
        "header fields of a request; past it 431",
        |settings, text| {
            settings.limits.max_headers = number(text.text, 1..=Limits::MOST_HEADERS as u32)? as usize;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("max-target", "BYTES", BOUNDS),
        Value("8 KB"),
        "of a request's target; past it 414",
        |settings, text| {
            settings.limits.max_target = size(text.text, 1..=MB)? as usize;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("max-body", "BYTES", BOUNDS),
        Value("1 MB"),
        "of a request's body, where it is read; past it 413",
        |settings, text| {
            settings.limits.max_body = size(text.text, 1..=64 * MB)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("max-ranges", "N", BOUNDS),
        Value("64"),
        "ranges that one request may ask for; past it the whole file",
        |settings, text| {
            settings.max_ranges = number(text.text, 1..=1000u32)? as usize;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("requests-per-connection", "N|off", BOUNDS),
        Value("off"),
        "requests on one connection, which is then closed",
        |settings, text| {
            settings.limits.requests_per_connection = match text.text {
                "off" => None,
                text => Some(number(text, 1..=u32::MAX).map_err(|why| format!("{why}, or off"))?),
            };
            Ok(())
        },
    )
    .not_null(),
    one(
        ("access-log", "PATH|-|off", LOG),
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
        ("log-format", "FORMAT", LOG),
        Value("combined"),
        "of the access log: common, combined, or json (with what each response took)",
        |settings, text| {
            settings.log.format = word(text.text, "log format", Format::WORDS)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("log-mode", "MODE", LOG),
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
        ("log-full", "WHAT", LOG),
        Value("block"),
        "when the queue of log-mode async is full: block (requests wait) or drop (lines are counted)",
        |settings, text| {
            settings.log.full = word(text.text, "way to be full", Full::WORDS)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("log-rotate", "WHEN", LOG),
        Value("off"),
        "when the access log gets a new file: off, a size (10 MB), a count (100000 lines) or daily",
        |settings, text| {
            settings.log_rotate = rotate(text.text)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("log-level", "LEVEL", LOG),
        Value("info"),
        "what is said on standard error: error, warn, info or debug",
        |settings, text| {
            settings.log_level = word(text.text, "level", Level::WORDS)?;
            Ok(())
        },
    ),
    one(
        ("user", "NAME", LOG),
        Follows("nobody when started as root"),
        "whom workers become; for a server that is started as root",
        |settings, text| {
            settings.user = Some(text.text.to_owned());
            Ok(())
        },
    )
    .fixed(),
    one(
        ("control", "PATH|off", LOG),
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
];

/// Whether `text` can be the path of a request, as it stands there.
fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#".contains(&byte))
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
