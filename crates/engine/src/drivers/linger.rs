//! Lingering: after the output is shut down, received bytes are discarded, so that a reset does not destroy the
//! response (RFC 9112 §9.6).
//!
//! The bound is a time, as in nginx (`lingering_time`, `lingering_timeout`), and not a number of bytes: a client may
//! read the response only after it has sent a long body.

use std::io::ErrorKind;
use std::time::Duration;

use tenfold_http::{Instant, clock};
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Socket;

use crate::plan::Bounds;
use crate::senders::failure::interrupted;

/// The calls of a loop for one connection before other connections have their turn; each discards at most 64 KiB.
pub(crate) const TURN_CALLS: usize = 4;

/// The longest wait for bytes in a worker that leaves. Its last responses announce the close, also to clients that send
/// nothing; these must not delay its end.
const LEAVING_WAIT: Duration = Duration::from_secs(2);

/// The result of one call that discards bytes.
pub(crate) enum Discarded {
    /// Bytes, and more may wait.
    Some,
    /// No bytes now, but more may follow.
    Nothing,
    /// The peer has ended its output, or has left.
    Over,
}

/// Makes one call that discards received bytes.
pub(crate) fn discard(socket: &Socket) -> Discarded {
    match socket.discard_input() {
        Ok(0) => Discarded::Over,
        Ok(_) => Discarded::Some,
        Err(error) if interrupted(&error) => Discarded::Some,
        Err(error) if error.kind() == ErrorKind::WouldBlock => Discarded::Nothing,
        Err(_) => Discarded::Over,
    }
}

/// The lower half of the present in milliseconds, as a slot stores it.
pub(crate) fn now() -> u32 {
    clock::now().0 as u32
}

/// The deadline of a connection that has lingered since `begun` and has received bytes now.
pub(crate) fn deadline(begun: u32, bounds: &Bounds) -> Instant {
    let lasted = Duration::from_millis(now().wrapping_sub(begun).into());
    let wait = match lifecycle::phase() {
        Phase::Serving => bounds.linger_wait,
        _ => bounds.linger_wait.min(LEAVING_WAIT),
    };
    clock::now() + bounds.linger_time.saturating_sub(lasted).min(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_extend_the_wait_and_not_the_whole_time() {
        let bounds = Bounds::default();
        // The lower half wraps around.
        let first = Instant((1 << 32) - 4_000);
        clock::set(first, 0);
        let begun = now();
        for (passed, left) in
            [(0, 5_000), (4_000, 5_000), (24_999, 5_000), (27_000, 3_000), (30_000, 0), (40_000, 0)]
        {
            let present = first + Duration::from_millis(passed);
            clock::set(present, 0);
            assert_eq!(deadline(begun, &bounds), present + Duration::from_millis(left), "after {passed} ms");
        }
    }
}
