//! The idle connections of a worker that retires.

use std::time::Duration;

use tenfold_http::{Instant, clock};
use tenfold_sys::lifecycle::Phase;

/// The longest wait of an idle connection in a retiring worker. A request on its way arrives within seconds, and clients
/// that poll a server ask more often than that. After a reload, the quietest client would otherwise keep a process for all
/// of `idle-timeout`.
pub(crate) const LONGEST_IDLE: Duration = Duration::from_secs(30);

/// The deadline of an idle connection that would wait until `by` in a worker that serves.
#[inline]
pub(crate) fn idle_until(by: Instant, phase: Phase) -> Instant {
    if phase == Phase::Serving { by } else { by.min(clock::now() + LONGEST_IDLE) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retiring_worker_waits_for_the_earlier_of_both_deadlines() {
        clock::set(Instant(1_000), 0);
        let (early, late) = (Instant(20_000), Instant(90_000));
        assert_eq!(idle_until(late, Phase::Serving), late);
        assert_eq!(idle_until(late, Phase::Retiring), Instant(31_000));
        assert_eq!(idle_until(early, Phase::Retiring), early);
    }
}
