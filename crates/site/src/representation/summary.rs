//! The facts about a response that the log needs.

use std::num::NonZeroU32;

use crate::reason::{self, Reason};

/// The status and the body of a staged response: two words, so that it is returned in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseSummary {
    /// Bytes of body that follow the head; 0 for a HEAD.
    pub body: u64,
    /// From the lowest bit: the status code; the number of the reason; the error number; a mark of a response from
    /// the cache.
    bits: NonZeroU32,
}

const STATUS_BITS: u32 = 10;
const CACHED: u32 = 1 << 31;

impl ResponseSummary {
    /// Returns the summary of a response. `status` must not be 0.
    #[inline]
    pub fn of(status: u16, body: u64) -> ResponseSummary {
        let bits = NonZeroU32::new(u32::from(status)).expect("a status code has three digits");
        debug_assert!(status < 1 << STATUS_BITS, "{status} has more than three digits");
        ResponseSummary { body, bits }
    }

    /// Adds the reason for an error, once.
    pub(crate) fn with_reason(self, reason: Reason) -> ResponseSummary {
        ResponseSummary { bits: self.bits | reason.number() << STATUS_BITS, ..self }
    }

    /// Adds the error of the system that caused the response (`man 3 errno`).
    pub(crate) fn because(self, errno: i32) -> ResponseSummary {
        let errno = u32::from(u16::try_from(errno).unwrap_or_default()) << u16::BITS;
        ResponseSummary { bits: self.bits | errno, ..self }
    }

    /// Marks a response from the cache.
    #[inline]
    pub(crate) fn into_cached(self) -> ResponseSummary {
        ResponseSummary { bits: self.bits | CACHED, ..self }
    }

    /// Whether the response came from the cache.
    #[inline]
    pub fn is_from_cache(&self) -> bool {
        self.bits.get() & CACHED != 0
    }

    /// Returns the status code.
    #[inline]
    pub fn status(&self) -> u16 {
        (self.bits.get() & ((1 << STATUS_BITS) - 1)) as u16
    }

    /// Returns the reason for an error, in words; None for a success.
    pub fn reason(&self) -> Option<&'static str> {
        let number = (self.bits.get() & u32::from(u16::MAX)) >> STATUS_BITS;
        (self.status() >= 400).then(|| reason::words(number, self.status()))
    }

    /// Returns the error number that caused a 500 or a 503, if the system gave one.
    #[inline]
    pub fn failure(&self) -> Option<i32> {
        let errno = (self.bits.get() & !CACHED) >> u16::BITS;
        (errno != 0).then_some(errno as i32)
    }
}
