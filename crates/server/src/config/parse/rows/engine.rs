//! The I/O model, TCP, and experiments.

use std::time::Duration;

use tenfold_engine::Plan;
use tenfold_http::WriteMode;

use super::read::{count, number, or_off, parsed, rows, size, some, switch, time, word};
use crate::config::parse::row::Initial::{Follows, Value};
use crate::config::parse::row::{EXPERIMENTS as HEADING, SettingRow, Text};
use crate::config::values::EngineChoice;

pub(super) static MODEL: &[SettingRow] = rows! { "The I/O model":
    One "engine" "MODEL" = Value("auto"), fixed;
        engine = engine;
        "the I/O model: auto, naive, fork, thread, pool, busy, select, poll, epoll, libevent, asio, asio-proactor or uring; see `tenfold engines`";
    One "topology" "TOPOLOGY" = Follows("single for one worker, reuseport-processes for more"), fixed;
        topology = some(parsed);
        "how workers share the listening sockets: single, threads, reuseport-processes, reuseport-threads or handoff";
    One "workers" "N" = Follows("one per processor, if the model can have several"), fixed;
        workers = some(count(1..=Plan::MOST_WORKERS as u32));
        "number of workers";
    One "send" "SENDER" = Value("auto"), not_null;
        send = some(parsed);
        "how to send files: auto (small files from memory, larger files with sendfile), copy, mmap, sendfile, splice or zerocopy";
};

pub(super) static TCP: &[SettingRow] = rows! { "TCP":
    One "backlog" "N" = Value("511"), fixed;
        backlog = number(1..=65_535u32);
        "maximum number of established connections that wait for accept";
    One "max-rate" "BYTES|off" = Value("off");
        max_rate = or_off(size(1024..=1 << 40));
        "maximum send rate of each connection, in bytes per second (SO_MAX_PACING_RATE)";
};

/// Experiments.
pub(super) static EXPERIMENTS: &[SettingRow] = rows! { HEADING:
    One "dispatch" "HOW" = Value("inline"), fixed;
        dispatch = some(parsed);
        "the threads that handle requests: inline (the event loop), reactor (a pool reads, processes and writes) or proactor (a pool only processes)";
    One "libevent-method" "METHOD" = Follows("the one that libevent prefers"), fixed;
        libevent_method = some(parsed);
        "the system call in which the engine libevent waits: epoll, poll or select";
    One "trigger" "PAIR" = Follows("lt+et, if the model has triggers"), fixed;
        trigger = some(parsed);
        "level-triggered (lt) or edge-triggered (et) events of epoll or libevent, for listener+connections: lt+et, lt+lt, et+lt or et+et";
    One "write" "HOW" = Value("joined"), not_null;
        limits.write = word("write mode", WriteMode::WORDS);
        "system calls to send a head and its body: joined (one call), split (two calls) or per-header (a call for each header line)";
    One "accept" "all|one" = Value("all"), fixed;
        accept = some(parsed);
        "connections to accept for each event of the listener: all that wait, or one";
    One "pool-threads" "N" = Value("16"), fixed;
        pool_threads = count(1..=4096);
        "number of threads of the engine pool, or of each worker with dispatch reactor or proactor";
    One "pool-queue" "N" = Value("1024"), fixed;
        pool_queue = count(1..=1_000_000);
        "length of the queue for threads of the pool; if it is full, connections are closed and counted, and requests (proactor) get 503";
    One "handoff-queue" "N" = Value("1024"), fixed;
        handoff_queue = count(1..=1_000_000);
        "length of each worker's queue of accepted connections with topology handoff; if it is full, connections are closed and counted";
    One "busy-sleep" "TIME" = Value("1ms"), fixed;
        busy_sleep = time(Duration::ZERO..=Duration::from_secs(1));
        "how long the engine busy sleeps after an iteration without work; 0ms uses a whole processor";
    One "timer" "TIMER" = Value("wheel"), fixed;
        timer = some(parsed);
        "the data structure for deadlines: wheel or list";
    One "tcp-nodelay" "on|off" = Value("on"), fixed;
        tcp_nodelay = switch;
        "send small segments immediately (TCP_NODELAY)";
    One "tcp-cork" "on|off" = Value("off"), fixed;
        tcp_cork = switch;
        "hold back partial segments until the response is complete (TCP_CORK); costs two more system calls per response";
    One "defer-accept" "on|off" = Value("on"), fixed;
        defer_accept = switch;
        "accept a connection only after its first bytes have arrived (TCP_DEFER_ACCEPT)";
    One "fastopen" "N|off" = Value("off"), fixed;
        fastopen = or_off(number(1..=65_535u32));
        "accept requests in the SYN, from at most N connections in their handshake (TCP_FASTOPEN)";
    One "linger" "SECONDS|off" = Value("off"), fixed;
        linger = or_off(number(1..=600u16));
        "on close, wait up to SECONDS for unsent data to be acknowledged (SO_LINGER)";
    One "notsent-lowat" "BYTES|off" = Value("off"), fixed;
        notsent_lowat = or_off(|given| size(1..=1 << 30)(given).map(|bytes| bytes as u32));
        "unsent bytes of a connection above which the kernel accepts no more (TCP_NOTSENT_LOWAT)";
};

fn engine(given: Text<'_>) -> Result<EngineChoice, String> {
    match given.text {
        "auto" => Ok(EngineChoice::Auto),
        name => name.parse().map(EngineChoice::Named).map_err(|why| {
            let hint = if name.contains("uring") { " (io_uring is uring)" } else { "" };
            format!("{why} and auto{hint}")
        }),
    }
}
