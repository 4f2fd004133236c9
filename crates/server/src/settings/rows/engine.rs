//! How connections are driven, and the options of their transport.

use std::time::Duration;

use tenfold_engine::Plan;
use tenfold_http::WriteMode;

use super::read::{count, number, or_off, parsed, rows, size, some, switch, time, word};
use crate::settings::row::Initial::{Follows, Value};
use crate::settings::row::{SettingRow, Text, one};
use crate::settings::values::EngineChoice;

pub(super) static MODEL: &[SettingRow] = rows! { "The I/O model":
    one "engine" "MODEL" = Value("auto"), fixed;
        engine = engine;
        "the I/O model: auto, naive, fork, thread, pool, busy, select, poll, epoll, libevent, asio, asio-proactor or uring; see `tenfold engines`";
    one "topology" "TOPOLOGY" = Follows("single for one worker, reuseport-processes else"), fixed;
        topology = some(parsed);
        "how workers stand to sockets: single, threads, reuseport-processes, reuseport-threads or handoff";
    one "workers" "N" = Follows("one per processor, where the model can have several"), fixed;
        workers = some(count(1..=Plan::MOST_WORKERS as u32));
        "how many workers";
    one "dispatch" "HOW" = Value("inline"), fixed;
        dispatch = some(parsed);
        "who works: inline (the loop), reactor (a pool reads, processes and writes) or proactor (a pool processes)";
    one "libevent-method" "METHOD" = Follows("the one that libevent prefers"), fixed;
        libevent_method = some(parsed);
        "the system call that the engine libevent waits in: epoll, poll or select";
    one "trigger" "PAIR" = Follows("lt+et, where the model has triggers"), fixed;
        trigger = some(parsed);
        "when epoll or libevent reports, for listener+connections: lt+et, lt+lt, et+lt or et+et";
    one "send" "SENDER" = Value("auto"), null_only("auto");
        send = some(parsed);
        "how files are sent: auto (small ones from memory, sendfile beyond), copy, mmap, sendfile, splice or zerocopy";
    one "write" "HOW" = Value("joined"), null_only("joined");
        limits.write = word("way to write", WriteMode::WORDS);
        "how head and body leave: joined (one call), split (two) or per-header (a call for each line of the head)";
    one "accept" "all|one" = Value("all"), fixed;
        accept = some(parsed);
        "how many connections are accepted when some wait: all, or one for each time that the model is told";
    one "pool-threads" "N" = Value("16"), fixed;
        pool_threads = count(1..=4096);
        "threads of the engine pool, or of each worker with dispatch reactor or proactor";
    one "pool-queue" "N" = Value("1024"), fixed;
        pool_queue = count(1..=1_000_000);
        "what waits for a thread of the pool; past it connections are closed and counted, requests (proactor) get 503";
    one "handoff-queue" "N" = Value("1024"), fixed;
        handoff_queue = count(1..=1_000_000);
        "accepted connections that wait for each worker of topology handoff; past it they are closed and counted";
    one "busy-sleep" "TIME" = Value("1ms"), fixed;
        busy_sleep = time(Duration::ZERO..=Duration::from_secs(1));
        "how long the engine busy sleeps after a turn in which nothing was done; 0ms burns a processor";
    one "timer" "TIMER" = Value("wheel"), fixed;
        timer = some(parsed);
        "how a loop keeps its deadlines: list, heap, wheel or hierarchical";
    one "timer-update" "WHEN" = Value("lazy"), fixed;
        timer_update = some(parsed);
        "when a timer is touched: lazy (for an earlier deadline) or eager (for every new one)";
};

pub(super) static TCP: &[SettingRow] = rows! { "TCP":
    one "tcp-nodelay" "on|off" = Value("on"), fixed;
        tcp_nodelay = switch;
        "send at once, however little (TCP_NODELAY)";
    one "tcp-cork" "on|off" = Value("off"), fixed;
        tcp_cork = switch;
        "hold segments that are not full back until an answer is sent (TCP_CORK): two more calls for each";
    one "backlog" "N" = Value("4096"), fixed;
        backlog = number(1..=65_535u32);
        "connections that the kernel completes ahead of accept";
    one "defer-accept" "on|off" = Value("on"), fixed;
        defer_accept = switch;
        "accept a connection when its first bytes are there (TCP_DEFER_ACCEPT)";
    one "max-rate" "BYTES|off" = Value("off");
        max_rate = or_off(size(1024..=1 << 40));
        "bytes a second of each connection, evenly (SO_MAX_PACING_RATE)";
    one "fastopen" "N|off" = Value("off"), fixed;
        fastopen = or_off(number(1..=65_535u32));
        "take requests that come with the SYN, from so many clients at once in their handshake (TCP_FASTOPEN)";
    one "linger" "SECONDS|off" = Value("off"), fixed;
        linger = or_off(number(1..=600u16));
        "let closing a connection wait until its bytes are acknowledged, so long at most (SO_LINGER)";
    one "notsent-lowat" "BYTES|off" = Value("off"), fixed;
        notsent_lowat = or_off(|given| size(1..=1 << 30)(given).map(|bytes| bytes as u32));
        "unsent bytes of a connection at which the kernel takes no more (TCP_NOTSENT_LOWAT)";
};

fn engine(given: Text<'_>) -> Result<EngineChoice, String> {
    match given.text {
        "auto" => Ok(EngineChoice::Auto),
        name => name.parse().map(EngineChoice::Named).map_err(|why| format!("{why} and auto")),
    }
}
