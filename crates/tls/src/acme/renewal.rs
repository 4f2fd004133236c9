//! The time of a renewal.

use crate::certificates::facts::CertificateFacts;

/// The window that an authority suggests (RFC 9773), in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RenewalWindow {
    pub(super) start: i64,
    pub(super) end: i64,
}

/// Returns the second at which a renewal is due: a time in the window that is constant for the certificate,
/// or the beginning of the last third of the lifetime. A window after the expiry is ignored.
pub(super) fn due(facts: &CertificateFacts, window: Option<RenewalWindow>) -> i64 {
    let lifetime = facts.not_after.saturating_sub(facts.not_before);
    let third = facts.not_after - lifetime / 3;
    match window {
        Some(RenewalWindow { start, end }) if start < end && start < facts.not_after => {
            let [first, second, ..] = facts.key_id().0;
            let part = i64::from(u16::from_be_bytes([first, second]));
            let length = (end - start).min(lifetime.max(1));
            (start + length * part / i64::from(u16::MAX)).min(facts.not_after)
        }
        _ => third,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::generate;

    const START: i64 = 1_800_000_000;
    const DAY: i64 = 86_400;

    fn facts() -> CertificateFacts {
        let pair = generate::pair_between(&["a.test"], &rcgen::PKCS_ED25519, START, START + 90 * DAY);
        CertificateFacts::read(&pair.certificate).expect("a certificate")
    }

    #[test]
    fn a_third_of_the_lifetime_is_left_when_no_window_is_given() {
        assert_eq!(due(&facts(), None), START + 60 * DAY);
    }

    #[test]
    fn a_moment_of_the_window_is_chosen_once() {
        let (facts, window) = (facts(), RenewalWindow { start: START + 5 * DAY, end: START + 7 * DAY });
        let chosen = due(&facts, Some(window));
        assert!((window.start..=window.end).contains(&chosen));
        assert_eq!(due(&facts, Some(window)), chosen);
        // A window in the past demands an immediate renewal, as after a revocation.
        let past = RenewalWindow { start: START - 2 * DAY, end: START - DAY };
        assert!(due(&facts, Some(past)) < START);
    }

    #[test]
    fn a_window_that_makes_no_sense_is_not_followed() {
        for (start, end) in [(5, 5), (6, 5), (90, 95), (1000, 2000)] {
            let window = RenewalWindow { start: START + start * DAY, end: START + end * DAY };
            assert_eq!(due(&facts(), Some(window)), START + 60 * DAY, "{start}..{end}");
        }
        let endless = RenewalWindow { start: START + 80 * DAY, end: i64::MAX / 100_000 };
        assert!(due(&facts(), Some(endless)) <= START + 90 * DAY);
    }
}
