//! The facts about a response that the log needs.

use std::num::NonZeroU32;

/// The status and the body of a staged response: two words, so that it is handed through the layers in
/// registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseSummary {
    /// Bytes of body that follow the head; 0 for a HEAD.
    pub body: u64,
    /// The status code, above it the error number, and the highest bit for a response from the cache.
    status_and_errno: NonZeroU32,
}

const CACHED: u32 = 1 << 31;

impl ResponseSummary {
    /// A response with this status code, which is not 0, and a body of this many bytes.
    #[inline]
    pub fn of(status: u16, body: u64) -> ResponseSummary {
        let status_and_errno = NonZeroU32::new(u32::from(status)).expect("a status code has three digits");
        ResponseSummary { body, status_and_errno }
    }

    /// The same because of an error of the system (`man 3 errno`).
    pub(crate) fn because(self, errno: i32) -> ResponseSummary {
        let errno = u32::from(u16::try_from(errno).unwrap_or_default()) << u16::BITS;
        ResponseSummary { status_and_errno: self.status_and_errno | errno, ..self }
    }

    /// The same from the cache of responses.
    #[inline]
    pub(crate) fn into_cached(self) -> ResponseSummary {
        ResponseSummary { status_and_errno: self.status_and_errno | CACHED, ..self }
    }

    /// Whether it was in the cache of responses.
    #[inline]
    pub fn is_from_cache(&self) -> bool {
        self.status_and_errno.get() & CACHED != 0
    }

    /// The status code.
    #[inline]
    pub fn status(&self) -> u16 {
        (self.status_and_errno.get() & u32::from(u16::MAX)) as u16
    }

    /// The error number behind a 500 or a 503, if the system gave one.
    #[inline]
    pub fn failure(&self) -> Option<i32> {
        let errno = (self.status_and_errno.get() & !CACHED) >> u16::BITS;
        (errno != 0).then_some(errno as i32)
    }
}
