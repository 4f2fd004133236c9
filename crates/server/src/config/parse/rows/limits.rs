//! Bounds of time and of amounts.

use std::time::Duration;

use super::read::{bytes, count, number, or_off, rows, size, some, time};
use crate::config::parse::row::Initial::{Follows, Value};
use crate::config::parse::row::SettingRow;

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
        max_requests_per_address = or_off(number(1..=1_000_000u32));
        "maximum number of requests per second from one address (IPv6: one /64) to all workers; beyond it, 429";
    One "request-burst" "N" = Follows("the value of max-requests-per-address"), not_null;
        request_burst = some(number(1..=1_000_000u32));
        "maximum number of requests that one address can make in a burst after a pause";
    One "max-handshakes-per-address" "N|off" = Follows("off for loopback; otherwise 200"), not_null;
        max_handshakes_per_address = or_off(number(1..=1_000_000u32));
        "maximum number of TLS handshakes per second from one address (IPv6: one /64) to all workers, and ten times as many after a pause; beyond it, connections are closed and counted; a trusted-proxy has no limit";
};
