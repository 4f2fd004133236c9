//! How much one address may have, on the whole server.

use super::super::table::Initial::{Follows, Value};
use super::super::table::{Row, one};
use super::super::units::number;

const HEADING: &str = "Bounds";

pub(super) static ROWS: &[Row] = &[
    one(
        ("max-connections-per-address", "N|off", HEADING),
        Follows("off loopback a quarter of all connections, at least 256; else off"),
        "connections at once of one address, of all workers (IPv6: of its /64); past it they are closed and \
         counted; a trusted-proxy has no bound",
        |settings, text| {
            settings.max_connections_per_address = number_or_off(text.text)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("max-requests-per-address", "N|off", HEADING),
        Value("off"),
        "requests a second of one address, of all workers (IPv6: of its /64); past it 429",
        |settings, text| {
            settings.max_requests_per_address = number_or_off(text.text)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("request-burst", "N", HEADING),
        Follows("as many as max-requests-per-address"),
        "requests that one address may make at once after a pause",
        |settings, text| {
            settings.request_burst = Some(number(text.text, 1..=1_000_000u32)?);
            Ok(())
        },
    )
    .not_null(),
    one(
        ("max-addresses", "N", HEADING),
        Value("65536"),
        "addresses that are known at once, where anything is bounded by address; past it new ones are turned away",
        |settings, text| {
            settings.max_addresses = number(text.text, 64..=10_000_000u32)? as usize;
            Ok(())
        },
    )
    .fixed()
    .not_null(),
];

fn number_or_off(text: &str) -> Result<Option<u32>, String> {
    match text {
        "off" => Ok(None),
        text => number(text, 1..=1_000_000u32).map(Some).map_err(|why| format!("{why}, or off")),
    }
}
