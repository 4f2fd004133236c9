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
        ("tcp-cork", "on|off", HEADING),
        Value("off"),
        "hold segments that are not full back until an answer is sent (TCP_CORK): two more calls for each",
        |settings, text| {
            settings.tcp_cork = switch(text.text)?;
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
    one(
        ("fastopen", "N|off", HEADING),
        Value("off"),
        "take requests that come with the SYN, from so many clients at once in their handshake (TCP_FASTOPEN)",
        |settings, text| {
            settings.fastopen = or_off(text.text, |text| number(text, 1..=65_535u32))?;
            Ok(())
        },
    )
    .fixed(),
    one(
        ("linger", "SECONDS|off", HEADING),
        Value("off"),
        "let closing a connection wait until its bytes are acknowledged, so long at most (SO_LINGER)",
        |settings, text| {
            settings.linger = or_off(text.text, |text| number(text, 1..=600u16))?;
            Ok(())
        },
    )
    .fixed(),
    one(
        ("notsent-lowat", "BYTES|off", HEADING),
        Value("off"),
        "unsent bytes of a connection at which the kernel takes no more (TCP_NOTSENT_LOWAT)",
        |settings, text| {
            let bytes = or_off(text.text, |text| size(text, 1..=1 << 30))?;
            settings.notsent_lowat = bytes.map(|bytes| bytes as u32);
            Ok(())
        },
    )
    .fixed(),
];

fn or_off<T>(text: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    match text {
        "off" => Ok(None),
        text => read(text).map(Some).map_err(|why| format!("{why}, or off")),
    }
}
