//! The system's clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub(crate) fn seconds() -> i64 {
    i64::try_from(milliseconds() / 1000).unwrap_or(i64::MAX)
}

/// Milliseconds since 1970.
pub(crate) fn milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
