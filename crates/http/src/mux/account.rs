//! The account of unpaid work of a connection.
//!
//! A peer can cause work that no response pays for: resets, empty frames, changes of settings. Each piece of such
//! work costs points. Completed responses and time pay them back. A new variant of such an attack needs no counter
//! of its own, only a price.

use crate::clock::Instant;

/// The points of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    points: u32,
    /// The time of the last payment by time.
    paid: Instant,
}

/// The connection has caused more work than it paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overdrawn;

impl Account {
    /// The most points. A browser that cancels 100 images, or 66 with deferred responses, stays below it.
    const MOST: u32 = 2000;
    /// The points that a second pays back.
    const A_SECOND: u64 = 200;
    /// The points that a completed response pays back.
    const A_RESPONSE: u32 = 10;

    /// The price of a frame without an effect: PING, SETTINGS, PRIORITY, an empty or tiny frame, an unknown type.
    pub(crate) const FRAME: u32 = 2;
    /// The price of a stream that either side resets: the work of its request is wasted.
    pub(crate) const RESET: u32 = 10;
    /// The price of a reset before a deferred response: its request was looked up, and its work may have begun.
    pub(crate) const ABANDONED: u32 = 30;

    pub(crate) fn new(now: Instant) -> Account {
        Account { points: 0, paid: now }
    }

    /// Charges `price` points.
    pub(crate) fn charge(&mut self, price: u32, now: Instant) -> Result<(), Overdrawn> {
        let milliseconds = u64::try_from(now.since(self.paid).as_millis()).unwrap_or(u64::MAX);
        let back = milliseconds.saturating_mul(Account::A_SECOND) / 1000;
        if back > 0 {
            self.paid = now;
            self.points = self.points.saturating_sub(u32::try_from(back).unwrap_or(u32::MAX));
        }
        self.points = self.points.saturating_add(price);
        if self.points > Account::MOST { Err(Overdrawn) } else { Ok(()) }
    }

    /// Records a completed response.
    pub(crate) fn pay(&mut self) {
        self.points = self.points.saturating_sub(Account::A_RESPONSE);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn responses_and_time_pay_for_work() {
        let begin = Instant(1000);
        let mut account = Account::new(begin);
        let each = Account::RESET;
        let most = Account::MOST / each;
        for _ in 0..most {
            assert_eq!(account.charge(each, begin), Ok(()));
        }
        assert_eq!(account.charge(1, begin), Err(Overdrawn));
        account.pay();
        assert_eq!(account.charge(1, begin), Ok(()));
        let later = begin + Duration::from_secs(60);
        for _ in 0..most {
            assert_eq!(account.charge(each, later), Ok(()));
        }
        assert_eq!(account.charge(1, later), Err(Overdrawn));
    }

    #[test]
    fn frequent_charges_do_not_lose_the_payment_by_time() {
        let mut account = Account::new(Instant(0));
        // A point each 10 ms is half of what time pays back.
        for step in 0..100_000 {
            assert_eq!(account.charge(1, Instant(step * 10)), Ok(()));
        }
    }
}
