//! How much there may be of anything.

use tenfold_http::Limits;

use super::super::table::Initial::{Follows, Value};
use super::super::table::{Row, one};
use super::super::units::{number, size};

const MB: u64 = 1 << 20;
const HEADING: &str = "Bounds";

pub(super) static ROWS: &[Row] = &[
    one(
        ("max-connections", "N", HEADING),
        Follows("from the descriptor limit"),
        "connections at once, of each worker; past it a new one takes the place of an idle one, or is closed; both \
         are counted",
        |settings, text| {
            settings.max_connections = Some(number(text.text, 1..=100_000_000u32)? as usize);
            Ok(())
        },
    ),
    one(
        ("max-head", "BYTES", HEADING),
        Value("16 KB"),
        "of a request's head; past it 431",
        |settings, text| {
            settings.limits.max_head = size(text.text, 64..=MB)? as usize;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("max-headers", "N", HEADING),
        Value("100"),
        "header fields of a request; past it 431",
        |settings, text| {
            settings.limits.max_headers = number(text.text, 1..=Limits::MOST_HEADERS as u32)? as usize;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("max-target", "BYTES", HEADING),
        Value("8 KB"),
        "of a request's target; past it 414",
        |settings, text| {
            settings.limits.max_target = size(text.text, 1..=MB)? as usize;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("max-body", "BYTES", HEADING),
        Value("1 MB"),
        "of a request's body, where it is read; past it 413",
        |settings, text| {
            settings.limits.max_body = size(text.text, 1..=64 * MB)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("max-ranges", "N", HEADING),
        Value("64"),
        "ranges that one request may ask for; past it the whole file",
        |settings, text| {
            settings.max_ranges = number(text.text, 1..=1000u32)? as usize;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("work-threads", "N", HEADING),
        Value("2"),
        "threads of each process for what would hold up others, and as many for passwords of basic authentication",
        |settings, text| {
            settings.work_threads = number(text.text, 1..=256u32)? as usize;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("work-queue", "N", HEADING),
        Value("64"),
        "answers that wait for one of these threads; past it 503",
        |settings, text| {
            settings.work_queue = number(text.text, 1..=100_000u32)? as usize;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("requests-per-connection", "N|off", HEADING),
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
];
