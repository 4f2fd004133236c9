//! The present time of this thread.
//!
//! A driver reads the system's clocks once in each tick of its loop and sets the time with [`set`], so the
//! time is constant within a tick. Tests set any time.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::ops::Add;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;

/// A time on the monotonic clock, in milliseconds since an arbitrary start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

impl Instant {
    /// A time that is never reached.
    pub const NEVER: Instant = Instant(u64::MAX);

    /// Returns the time from `earlier` to this time; zero if `earlier` is later.
    #[inline]
    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    #[inline]
    fn add(self, length: Duration) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(length.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// The length of an HTTP date, `Sat, 21 Nov 2026 08:00:00 GMT` (RFC 9110 §5.6.7).
pub const DATE_BYTES: usize = 29;

thread_local! {
    static NOW: Cell<Instant> = const { Cell::new(Instant(0)) };
    static UNIX: Cell<u64> = const { Cell::new(0) };
    static DATE: RefCell<(u64, [u8; DATE_BYTES])> = const { RefCell::new((u64::MAX, [b' '; DATE_BYTES])) };
}

/// Sets the time of this thread: the monotonic clock, and the seconds since 1970 (UTC).
pub fn set(now: Instant, unix_seconds: u64) {
    NOW.set(now);
    UNIX.set(unix_seconds);
}

/// Returns the monotonic time of this thread.
#[inline]
pub fn now() -> Instant {
    NOW.get()
}

/// Returns the time of this thread in seconds since 1970.
#[inline]
pub fn unix_seconds() -> u64 {
    UNIX.get()
}

/// Calls `use_it` with the present HTTP date, which is formatted at most once a second.
pub fn with_date<T>(use_it: impl FnOnce(&[u8; DATE_BYTES]) -> T) -> T {
    DATE.with_borrow_mut(|(second, text)| {
        let now = UNIX.get();
        if *second != now {
            *text = format_date(now);
            *second = now;
        }
        use_it(text)
    })
}

/// Formats `unix_seconds` as an HTTP date (IMF-fixdate). Times after the year 9999 become its last second.
pub fn format_date(unix_seconds: u64) -> [u8; DATE_BYTES] {
    const LAST: u64 = 253_402_300_799;
    let mut text = [b' '; DATE_BYTES];
    write!(&mut text[..], "{}", HttpDate::from(at(unix_seconds.min(LAST))))
        .expect("an IMF-fixdate has 29 bytes");
    text
}

/// Returns the seconds since 1970 of an HTTP date in any of its formats (RFC 9110 §5.6.7); `None` if it is invalid.
pub fn parse_date(value: &[u8]) -> Option<u64> {
    let date = httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()?;
    Some(date.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

fn at(unix_seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(unix_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_follows_the_clock_set_for_the_thread() {
        set(Instant(1), 784_111_777);
        with_date(|date| assert_eq!(date, b"Sun, 06 Nov 1994 08:49:37 GMT"));
        set(Instant(2), 784_111_778);
        with_date(|date| assert_eq!(date, b"Sun, 06 Nov 1994 08:49:38 GMT"));
    }

    #[test]
    fn a_date_past_the_format_is_its_last_second() {
        assert_eq!(&format_date(u64::MAX), b"Fri, 31 Dec 9999 23:59:59 GMT");
    }
}
