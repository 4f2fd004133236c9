//! Bounds of time and of amounts.

use std::time::Duration;

use tenfold_http::Limits;

use super::read::{bytes, count, number, or_off, rows, size, some, time};
use crate::settings::row::Initial::{Follows, Value};
use crate::settings::row::{SettingRow, one};

const TICK: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const MIB: u64 = 1 << 20;

pub(super) static TIME: &[SettingRow] = rows! { "Time":
    one "head-timeout" "TIME" = Value("10s"), not_null;
        limits.head_timeout = time(TICK..=DAY);
        "for the whole head of a request, however it trickles; then 408";
    one "body-timeout" "TIME" = Value("30s"), not_null;
        limits.body_timeout = time(TICK..=DAY);
        "the window in which a body keeps min-rate";
    one "send-timeout" "TIME" = Value("60s");
        limits.send_timeout = time(TICK..=DAY);
        "the window in which a client takes min-rate";
    one "min-rate" "BYTES" = Value("240"), not_null;
        limits.min_rate = size(1..=1024 * MIB);
        "bytes a second that move at least, over each window";
    one "idle-timeout" "TIME" = Value("75s");
        limits.idle_timeout = time(TICK..=DAY);
        "how long a connection may rest between requests";
    one "drain-timeout" "TIME" = Value("30s");
        drain_timeout = time(TICK..=DAY);
        "how long running answers may take to finish after TERM";
};

pub(super) static BOUNDS: &[SettingRow] = rows! { "Bounds":
    one "max-connections" "N" = Follows("from the descriptor limit");
        max_connections = some(count(1..=100_000_000));
        "connections at once, of each worker; past it a new one takes the place of an idle one, or is closed; both are counted";
    one "max-head" "BYTES" = Value("16 KiB"), not_null;
        limits.max_head = bytes(64..=MIB);
        "of a request's head; past it 431";
    one "max-headers" "N" = Value("100"), not_null;
        limits.max_headers = count(1..=Limits::MOST_HEADERS as u32);
        "header fields of a request; past it 431";
    one "max-target" "BYTES" = Value("8 KiB"), not_null;
        limits.max_target = bytes(1..=MIB);
        "of a request's target; past it 414";
    one "max-body" "BYTES" = Value("1 MiB"), not_null;
        limits.max_body = size(1..=64 * MIB);
        "of a request's body, where it is read; past it 413";
    one "max-ranges" "N" = Value("64"), not_null;
        max_ranges = count(1..=1000);
        "ranges that one request may ask for; past it the whole file";
    one "work-threads" "N" = Value("2"), not_null;
        work_threads = count(1..=256);
        "threads of each process for what would hold up others, and as many for passwords of basic authentication";
    one "work-queue" "N" = Value("64"), not_null;
        work_queue = count(1..=100_000);
        "answers that wait for one of these threads; past it 503";
    one "requests-per-connection" "N|off" = Value("off"), not_null;
        limits.requests_per_connection = or_off(number(1..=u32::MAX));
        "requests on one connection, which is then closed";
    one "max-connections-per-address" "N|off" = Follows("off loopback a quarter of all connections, at least 256; else off"), not_null;
        max_connections_per_address = or_off(number(1..=1_000_000u32));
        "connections at once of one address, of all workers (IPv6: of its /64); past it they are closed and counted; a trusted-proxy has no bound";
    one "max-requests-per-address" "N|off" = Value("off"), not_null;
        max_requests_per_address = or_off(number(1..=1_000_000u32));
        "requests a second of one address, of all workers (IPv6: of its /64); past it 429";
    one "request-burst" "N" = Follows("as many as max-requests-per-address"), not_null;
        request_burst = some(number(1..=1_000_000u32));
        "requests that one address may make at once after a pause";
    one "max-addresses" "N" = Value("65536"), fixed, not_null;
        max_addresses = count(64..=10_000_000);
        "addresses that are known at once, where anything is bounded by address; past it new ones are turned away";
};
