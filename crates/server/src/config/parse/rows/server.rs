//! The I/O model, TCP, bounds, proxies, members, the process, and experiments.

use std::time::Duration;

use tenfold_accounts::Registration;
use tenfold_accounts::store::url::DatabaseUrl;
use tenfold_engine::Plan;
use tenfold_http::WriteMode;
use tenfold_http::semantics::forwarded::ForwardedFields;
use tenfold_sys::socket::ListenAddress;

use crate::config::parse::row::Initial::{Follows, Value};
use crate::config::parse::row::{EXPERIMENTS as HEADING, SettingRow, Text};
use crate::config::parse::rows::read::{
    bytes, count, each_or_off, name, number, or_off, parsed, per_second, rows, size, some, switch, time, word,
};
use crate::config::parse::units;
use crate::config::values::log::{Full, LogFormat, LogTarget, Mode, Rotate};
use crate::config::values::members::AccountsLocation;
use crate::config::values::{Control, EngineChoice};
use crate::diagnostics::Level;

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

const TICK: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const MIB: u64 = 1 << 20;

pub(super) static TIME: &[SettingRow] = rows! { "Time":
    One "head-timeout" "TIME" = Value("10s"), not_null;
        limits.head_timeout = time(TICK..=DAY);
        "time for the whole head of a request, however slowly it arrives; then 408";
    One "body-timeout" "TIME" = Value("30s"), not_null;
        limits.body_timeout = time(TICK..=DAY);
        "the window in which a body must keep min-rate";
    One "send-timeout" "TIME" = Value("60s");
        limits.send_timeout = time(TICK..=DAY);
        "the window in which a client must receive min-rate";
    One "min-rate" "BYTES" = Value("240"), not_null;
        limits.min_rate = size(1..=1024 * MIB);
        "minimum number of bytes per second, over each window";
    One "idle-timeout" "TIME" = Value("75s");
        limits.idle_timeout = time(TICK..=DAY);
        "longest idle time of a connection between requests";
    One "drain-timeout" "TIME" = Value("30s");
        drain_timeout = time(TICK..=DAY);
        "time for running responses to finish after TERM";
};

pub(super) static HTTP: &[SettingRow] = rows! { "HTTP":
    One "server-field" "on|off" = Value("on"), not_null;
        server_field = switch;
        "whether responses have the field Server, which never names a version";
    One "http2" "on|off" = Follows("on, but off with write split or per-header and with tls-kernel on"), fixed;
        http2 = some(switch);
        "whether clients may choose HTTP/2, by ALPN with TLS and by its preface without";
    One "http2-streams" "N" = Value("100"), not_null;
        limits.max_streams = count(1..=1000);
        "maximum number of requests that an HTTP/2 connection may have open; beyond it, a request is refused and the client tries again";
};

pub(super) static BOUNDS: &[SettingRow] = rows! { "Bounds":
    One "max-connections" "N" = Follows("from the descriptor limit and memory");
        max_connections = some(count(1..=100_000_000));
        "maximum number of connections of each worker; beyond it, a new connection replaces an idle one or is closed, and both are counted";
    One "max-head" "BYTES" = Value("16 KiB"), not_null;
        limits.max_head = bytes(64..=MIB);
        "maximum size of a request's head; beyond it, 431";
    One "max-body" "BYTES" = Value("1 MiB"), not_null;
        limits.max_body = size(1..=64 * MIB);
        "maximum size of a request's body, if the body is read; beyond it, 413";
    One "work-threads" "N" = Value("2"), not_null;
        work_threads = count(1..=256);
        "number of each process's threads for slow work, and the same number for the passwords of basic authentication";
    One "requests-per-connection" "N|off" = Value("off"), not_null;
        limits.requests_per_connection = or_off(number(1..=u32::MAX));
        "number of requests after which a connection is closed";
    One "max-connections-per-address" "N|off" = Follows("off for loopback; otherwise a quarter of all connections, or 256 if that is more, but at most half"), not_null;
        max_connections_per_address = or_off(number(1..=1_000_000u32));
        "maximum number of connections from one address (IPv6: one /64) to all workers; beyond it, connections are closed and counted; a trusted-proxy has no limit";
    One "max-requests-per-address" "N|off" = Value("off"), not_null;
        max_requests_per_address = or_off(per_second(number(1..=1_000_000u32)));
        "maximum number of requests per second from one address (IPv6: one /64) to all workers; beyond it, 429";
    One "request-burst" "N" = Follows("the value of max-requests-per-address"), not_null;
        request_burst = some(number(1..=1_000_000u32));
        "maximum number of requests that one address can make in a burst after a pause";
    One "max-handshakes-per-address" "N|off" = Follows("off for loopback; otherwise 200"), not_null;
        max_handshakes_per_address = or_off(per_second(number(1..=1_000_000u32)));
        "maximum number of TLS handshakes per second from one address (IPv6: one /64) to all workers, and ten times as many after a pause; beyond it, connections are closed and counted; a trusted-proxy has no limit";
};

pub(super) static PROCESS: &[SettingRow] = rows! { "Log and process":
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
        "the socket for `tenfold status`, `reload`, `stop` and `upgrade`";
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
        (_, Some(count)) => Ok(Rotate::Lines(units::number(count.trim_end(), 1..=u64::MAX)?)),
        _ => match units::size(text, 1024..=1 << 50) {
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

pub(super) static PROXY: &[SettingRow] = rows! { "Behind a proxy":
    Many "trusted-proxy" "ADDRESS|unix" = Value("off"), not_null;
        proxies.proxies = each_or_off;
        "a proxy that names its clients (forwarded-fields, and the listener prefix proxy:): an address, a network, or \
         unix (every client of a Unix socket of this server); repeatable";
    Many "forwarded-fields" "FIELD|off" = Value("x-forwarded-for x-forwarded-proto forwarded"), not_null;
        proxies.fields = forwarded_fields;
        "header fields of a trusted-proxy to use: x-forwarded-for, x-forwarded-proto, x-forwarded-host and forwarded, or \
         off; the proxy must set or remove each of them; repeatable";
};

fn forwarded_fields(given: &[Text<'_>]) -> Result<ForwardedFields, String> {
    let mut fields = ForwardedFields::default();
    let words = given.iter().flat_map(|given| given.text.split(' '));
    for word in words {
        let field = match word {
            "off" if given.len() == 1 && fields.is_empty() => continue,
            "x-forwarded-for" => &mut fields.x_for,
            "x-forwarded-proto" => &mut fields.x_proto,
            "x-forwarded-host" => &mut fields.x_host,
            "forwarded" => &mut fields.forwarded,
            other => {
                return Err(format!(
                    "{other:?} is not x-forwarded-for, x-forwarded-proto, x-forwarded-host or forwarded, nor off alone"
                ));
            }
        };
        *field = true;
    }
    Ok(fields)
}

const SECOND: Duration = Duration::from_secs(1);
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const REGISTRATION: &[(&str, Registration)] = &[
    ("open", Registration::Open),
    ("invitation", Registration::Invitation),
    ("closed", Registration::Closed),
];

pub(super) static MEMBERS: &[SettingRow] = rows! { "Members":
    One "accounts" "URL|off" = Value("off"), fixed, not_null;
        members.accounts = accounts;
        "the members' database: sqlite:PATH, sqlite (at this system's usual path), \
         postgres://USER:PASSWORD@HOST/NAME, mysql://USER:PASSWORD@HOST/NAME, file:PATH (a file that holds such a URL), or off";
    One "accounts-user" "NAME" = Follows("if started as root, tenfold-accounts if that user exists, else the user of the workers"), fixed, not_null;
        members.user = name;
        "the user of the accounts process, if the server is started as root; workers that run as another user cannot read the database";
    Many "protect" "FOLDER" = Value("off"), not_null;
        members.protect = each_or_off;
        "a folder of the site for members only, such as /members/; repeatable";
    One "registration" "WHO" = Value("open"), fixed, not_null;
        members.registration = word("registration", REGISTRATION);
        "access to registration: open (everybody), invitation (with a code of `tenfold users invite`), or closed";
    One "account-templates" "DIR|off" = Value("off"), not_null;
        members.templates = |given: Text<'_>| if given.text == "off" { Ok(None) } else { given.path().map(Some) };
        "a folder with custom templates for the members' pages";
    One "session-idle" "TIME" = Value("24h"), fixed, not_null;
        members.idle = time(SECOND..=YEAR);
        "idle session timeout";
    One "session-lifetime" "TIME" = Value("720h"), fixed, not_null;
        members.absolute = time(SECOND..=YEAR);
        "maximum age of a session, even in use";
    One "password-min-length" "N" = Value("8"), fixed, not_null;
        members.least_password = count(6..=128);
        "minimum number of characters of a new password";
    One "password-memory" "BYTES" = Value("19 MiB"), fixed, not_null;
        members.memory = size(64 * 1024..=1024 * MIB);
        "memory to hash one password (Argon2id)";
    One "password-passes" "N" = Value("2"), fixed, not_null;
        members.passes = number(1..=64u32);
        "passes over password-memory to hash one password (Argon2id)";
    One "login-throttle" "on|off" = Value("on"), fixed, not_null;
        members.throttle = switch;
        "count failed logins by name and by address, with basic authentication too, and refuse further attempts if there are too many";
};

fn accounts(given: Text<'_>) -> Result<Option<AccountsLocation>, String> {
    Ok(match given.text {
        "off" => None,
        "sqlite" => Some(AccountsLocation::Usual),
        url => Some(AccountsLocation::At(url.parse::<DatabaseUrl>()?.beneath(given.base))),
    })
}
