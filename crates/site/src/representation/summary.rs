//! The facts about a response that the log needs.

use std::num::NonZeroU32;

/// The status and the body of a staged response: two words, so that it is returned in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseSummary {
    /// Bytes of body that follow the head; 0 for a HEAD.
    pub body: u64,
    /// The status code; the error number in the bits above it; the highest bit marks a response from the
    /// cache.
    status_and_errno: NonZeroU32,
}

const CACHED: u32 = 1 << 31;

impl ResponseSummary {
    /// Returns the summary of a response. `status` must not be 0.
    #[inline]
    pub fn of(status: u16, body: u64) -> ResponseSummary {
        let status_and_errno = NonZeroU32::new(u32::from(status)).expect("a status code has three digits");
        ResponseSummary { body, status_and_errno }
    }

    /// Adds the error of the system that caused the response (`man 3 errno`).
    pub(crate) fn because(self, errno: i32) -> ResponseSummary {
        let errno = u32::from(u16::try_from(errno).unwrap_or_default()) << u16::BITS;
        ResponseSummary { status_and_errno: self.status_and_errno | errno, ..self }
    }

    /// Marks a response from the cache.
    #[inline]
    pub(crate) fn into_cached(self) -> ResponseSummary {
        ResponseSummary { status_and_errno: self.status_and_errno | CACHED, ..self }
    }

    /// Whether the response came from the cache.
    #[inline]
    pub fn is_from_cache(&self) -> bool {
        self.status_and_errno.get() & CACHED != 0
    }

    /// Returns the status code.
    #[inline]
    pub fn status(&self) -> u16 {
        (self.status_and_errno.get() & u32::from(u16::MAX)) as u16
    }

    /// Returns the error number that caused a 500 or a 503, if the system gave one.
    #[inline]
    pub fn failure(&self) -> Option<i32> {
        let errno = (self.status_and_errno.get() & !CACHED) >> u16::BITS;
        (errno != 0).then_some(errno as i32)
    }
}
