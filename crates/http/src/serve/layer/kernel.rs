//! Output of a layer that the kernel seals.

use crate::io::SealedOutput;

/// Bytes that sealing adds to a TLS 1.3 record: the header, the content type and the tag.
const EXPANSION: u64 = 5 + 1 + 16;

/// Plaintext and flushes after which the number of sealed records is read from the kernel.
const ASK_AFTER_BYTES: u64 = 1 << 30;
const ASK_AFTER_FLUSHES: u32 = 1 << 12;

/// The output of a connection since the kernel seals with the present key.
#[derive(Debug)]
pub struct KernelSealing {
    begin: SealedOutput,
    /// Bytes passed to the kernel for sealing.
    content: u64,
    /// Bytes and flushes since the kernel's number was last read.
    unasked: u64,
    flushes: u32,
}

impl KernelSealing {
    /// The most plaintext passed to the kernel in one call.
    pub(super) const MOST_BYTES: u64 = ASK_AFTER_BYTES;

    /// Returns the state at the beginning of the kernel's sealing.
    pub fn new(begin: SealedOutput) -> KernelSealing {
        KernelSealing { begin, content: 0, unasked: 0, flushes: 0 }
    }

    /// Counts bytes passed to the kernel.
    pub fn count(&mut self, bytes: u64) {
        self.content += bytes;
        self.unasked += bytes;
    }

    /// Whether the kernel's number must be read again. Called before each flush.
    pub(super) fn has_to_ask(&mut self) -> bool {
        self.flushes += 1;
        let due = self.unasked >= ASK_AFTER_BYTES || self.flushes >= ASK_AFTER_FLUSHES;
        if due {
            (self.unasked, self.flushes) = (0, 0);
        }
        due
    }

    /// Whether all passed bytes are in the socket's queue. The kernel keeps sealed records for which the
    /// queue has no room, and a close drops them.
    pub(super) fn is_queued(&self, now: SealedOutput) -> bool {
        let records = now.record.wrapping_sub(self.begin.record);
        let queued = now.queued.wrapping_sub(self.begin.queued);
        queued >= self.content + records * EXPANSION
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_the_expansion_of_every_record_have_to_be_queued() {
        let mut sealing = KernelSealing::new(SealedOutput { queued: 1000, record: 2 });
        assert!(sealing.is_queued(SealedOutput { queued: 1000, record: 2 }));
        sealing.count(100);
        assert!(!sealing.is_queued(SealedOutput { queued: 1000, record: 2 }), "the record is incomplete");
        assert!(!sealing.is_queued(SealedOutput { queued: 1143, record: 4 }));
        assert!(sealing.is_queued(SealedOutput { queued: 1144, record: 4 }));
    }

    #[test]
    fn the_kernel_is_asked_after_a_gigabyte_or_many_flushes() {
        let mut sealing = KernelSealing::new(SealedOutput { queued: 0, record: 0 });
        let asked = |sealing: &mut KernelSealing| (1..).find(|_| sealing.has_to_ask());
        assert_eq!(asked(&mut sealing), Some(4096));
        assert_eq!(asked(&mut sealing), Some(4096));
        sealing.count(1 << 30);
        assert_eq!(asked(&mut sealing), Some(1));
    }
}
