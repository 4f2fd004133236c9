//! What is asked of the transport.

use super::super::table::Initial::Value;
use super::super::table::{Row, one};
use super::super::units::{number, size, switch};

const HEADING: &str = "TCP";

pub(super) static ROWS: &[Row] = &[
    one(
        ("tcp-nodelay", "on|off", HEADING),
        Value("on"),
        "send at once, however little (TCP_NODELAY)",
        |settings, text| {
            settings.tcp_nodelay = switch(text.text)?;
            Ok(())
        },
    )
    .fixed(),
    one(
        ("backlog", "N", HEADING),
        Value("4096"),
        "connections that the kernel completes ahead of accept",
        |settings, text| {
            settings.backlog = number(text.text, 1..=65_535u32)?;
            Ok(())
        },
    )
    .fixed(),
    one(
        ("defer-accept", "on|off", HEADING),
        Value("on"),
        "accept a connection when its first bytes are there (TCP_DEFER_ACCEPT)",
        |settings, text| {
            settings.defer_accept = switch(text.text)?;
            Ok(())
        },
    )
    .fixed(),
    one(
        ("max-rate", "BYTES|off", HEADING),
        Value("off"),
        "bytes a second of each connection, evenly (SO_MAX_PACING_RATE)",
        |settings, text| {
            settings.max_rate = match text.text {
                "off" => None,
                text => Some(size(text, 1024..=1 << 40).map_err(|why| format!("{why}, or off"))?),
            };
            Ok(())
        },
    ),
];
