//! How connections are driven.

use std::time::Duration;

use tenfold_engine::Plan;
use tenfold_http::Write;

use super::super::EngineChoice;
use super::super::table::Initial::{Follows, Value};
use super::super::table::{Row, one};
use super::super::units::{duration, number, word};

const HEADING: &str = "The I/O model";

pub(super) static ROWS: &[Row] = &[
    one(
        ("engine", "MODEL", HEADING),
        Value("auto"),
        "the I/O model: auto, naive, fork, thread, pool, busy, select, poll, epoll, libevent, asio, asio-proactor or uring; see \
         `tenfold engines`",
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
        ("topology", "TOPOLOGY", HEADING),
        Follows("single for one worker, reuseport-processes else"),
        "how workers stand to sockets: single, threads, reuseport-processes, reuseport-threads or handoff",
        |settings, text| {
            settings.topology = Some(text.text.parse()?);
            Ok(())
        },
    )
    .fixed(),
    one(
        ("workers", "N", HEADING),
        Follows("one per processor, where the model can have several"),
        "how many workers",
        |settings, text| {
            settings.workers = Some(number(text.text, 1..=Plan::MOST_WORKERS as u32)? as usize);
            Ok(())
        },
    )
    .fixed(),
    one(
        ("dispatch", "HOW", HEADING),
        Value("inline"),
        "who works: inline (the loop), reactor (a pool reads, processes and writes) or proactor (a pool processes)",
        |settings, text| {
            settings.dispatch = Some(text.text.parse()?);
            Ok(())
        },
    )
    .fixed(),
    one(
        ("libevent-method", "METHOD", HEADING),
        Follows("the one that libevent prefers"),
        "the system call that the engine libevent waits in: epoll, poll or select",
        |settings, text| {
            settings.libevent_method = Some(text.text.parse()?);
            Ok(())
        },
    )
    .fixed(),
    one(
        ("trigger", "PAIR", HEADING),
        Follows("lt+et, where the model has triggers"),
        "when epoll or libevent reports, for listener+connections: lt+et, lt+lt, et+lt or et+et",
        |settings, text| {
            settings.trigger = Some(text.text.parse()?);
            Ok(())
        },
    )
    .fixed(),
    one(
        ("send", "SENDER", HEADING),
        Value("auto"),
        "how files are sent: auto (small ones from memory, sendfile beyond), copy, mmap, sendfile, splice or zerocopy",
        |settings, text| {
            settings.send = Some(text.text.parse()?);
            Ok(())
        },
    )
    .null_only("auto"),
    one(
        ("write", "HOW", HEADING),
        Value("joined"),
        "how head and body leave: joined (one call), split (two) or per-header (a call for each line of the head)",
        |settings, text| {
            settings.limits.write = word(text.text, "way to write", Write::WORDS)?;
            Ok(())
        },
    )
    .null_only("joined"),
    one(
        ("accept", "all|one", HEADING),
        Value("all"),
        "how many connections are accepted when some wait: all, or one for each time that the model is told",
        |settings, text| {
            settings.accept = Some(text.text.parse()?);
            Ok(())
        },
    )
    .fixed(),
    one(
        ("pool-threads", "N", HEADING),
        Value("16"),
        "threads of the engine pool, or of each worker with dispatch reactor or proactor",
        |settings, text| {
            settings.pool_threads = number(text.text, 1..=4096u32)? as usize;
            Ok(())
        },
    )
    .fixed(),
    one(
        ("pool-queue", "N", HEADING),
        Value("1024"),
        "what waits for a thread of the pool; past it connections are closed and counted, requests (proactor) get 503",
        |settings, text| {
            settings.pool_queue = number(text.text, 1..=1_000_000u32)? as usize;
            Ok(())
        },
    )
    .fixed(),
    one(
        ("handoff-queue", "N", HEADING),
        Value("1024"),
        "accepted connections that wait for each worker of topology handoff; past it they are closed and counted",
        |settings, text| {
            settings.handoff_queue = number(text.text, 1..=1_000_000u32)? as usize;
            Ok(())
        },
    )
    .fixed(),
    one(
        ("busy-sleep", "TIME", HEADING),
        Value("1ms"),
        "how long the engine busy sleeps after a turn in which nothing was done; 0ms burns a processor",
        |settings, text| {
            settings.busy_sleep = duration(text.text, Duration::ZERO..=Duration::from_secs(1))?;
            Ok(())
        },
    )
    .fixed(),
    one(
        ("timer", "TIMER", HEADING),
        Value("wheel"),
        "how a loop keeps its deadlines: list, heap, wheel or hierarchical",
        |settings, text| {
            settings.timer = Some(text.text.parse()?);
            Ok(())
        },
    )
    .fixed(),
    one(
        ("timer-update", "WHEN", HEADING),
        Value("lazy"),
        "when a timer is touched: lazy (for an earlier deadline) or eager (for every new one)",
        |settings, text| {
            settings.timer_update = Some(text.text.parse()?);
            Ok(())
        },
    )
    .fixed(),
];
