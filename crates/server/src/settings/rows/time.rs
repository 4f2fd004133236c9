//! How long anything may take.

use std::time::Duration;

use super::super::table::Initial::Value;
use super::super::table::{Row, one};
use super::super::units::{duration, size};

const TICK: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const MB: u64 = 1 << 20;
const HEADING: &str = "Time";

pub(super) static ROWS: &[Row] = &[
    one(
        ("head-timeout", "TIME", HEADING),
        Value("10s"),
        "for the whole head of a request, however it trickles; then 408",
        |settings, text| {
            settings.limits.head_timeout = duration(text.text, TICK..=DAY)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("body-timeout", "TIME", HEADING),
        Value("30s"),
        "the window in which a body keeps min-rate",
        |settings, text| {
            settings.limits.body_timeout = duration(text.text, TICK..=DAY)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("send-timeout", "TIME", HEADING),
        Value("60s"),
        "the window in which a client takes min-rate",
        |settings, text| {
            settings.limits.send_timeout = duration(text.text, TICK..=DAY)?;
            Ok(())
        },
    ),
    one(
        ("min-rate", "BYTES", HEADING),
        Value("240"),
        "bytes a second that move at least, over each window",
        |settings, text| {
            settings.limits.min_rate = size(text.text, 1..=1024 * MB)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("idle-timeout", "TIME", HEADING),
        Value("75s"),
        "how long a connection may rest between requests",
        |settings, text| {
            settings.limits.idle_timeout = duration(text.text, TICK..=DAY)?;
            Ok(())
        },
    ),
    one(
        ("drain-timeout", "TIME", HEADING),
        Value("30s"),
        "how long running answers may take to finish after TERM",
        |settings, text| {
            settings.drain_timeout = duration(text.text, TICK..=DAY)?;
            Ok(())
        },
    ),
];
