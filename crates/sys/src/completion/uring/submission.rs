//! Submission: the queue, its overflow, and chains.

use std::io;

use io_uring::squeue::{Entry, Flags};

use super::ring::{Ring, Sizes};

impl Ring {
    /// Adds an operation to a chain, but not its last.
    pub(super) fn link(&mut self, entry: Entry) {
        self.in_flight += 1;
        #[cfg(any(test, feature = "test-hooks"))]
        let entry = self.faults.spoil(entry);
        self.chain.push(entry);
        assert!(self.chain.len() < Sizes::LEAST_SUBMISSIONS as usize, "a chain is short");
    }

    /// Adds an operation, or the last of a chain.
    pub(super) fn push(&mut self, entry: Entry) {
        self.in_flight += 1;
        #[cfg(any(test, feature = "test-hooks"))]
        let entry = self.faults.spoil(entry);
        if !self.chain.is_empty() {
            return self.push_chain(entry);
        }
        if !self.overflow.is_empty() {
            return self.overflow.push_back(entry);
        }
        // SAFETY: the memory of the operation is in the table of held resources, or in the pool of buffers, until its
        // completion is read; neither is freed while it is in flight. Discarded bytes go to static memory.
        if unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.overflow.push_back(entry);
        }
    }

    /// Ends a chain. It is submitted in one call: at the end of a call the kernel breaks links, and later operations
    /// would overtake.
    fn push_chain(&mut self, last: Entry) {
        self.chain.push(last);
        // SAFETY: as for `push`.
        let fits =
            self.overflow.is_empty() && unsafe { self.ring.submission().push_multiple(&self.chain) }.is_ok();
        if fits {
            self.chain.clear();
        } else {
            self.overflow.extend(self.chain.drain(..));
        }
    }

    /// Submits the queue.
    pub(super) fn submit(&self) -> io::Result<()> {
        match self.ring.submit() {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Moves overflowing operations into the queue as far as they fit; chains are never split.
    pub(super) fn refill(&mut self) {
        let Ring { ring, overflow, chain, .. } = self;
        let mut queue = ring.submission();
        while !overflow.is_empty() {
            let linked = overflow.iter().take_while(|entry| is_linked(entry)).count();
            chain.extend(overflow.drain(..overflow.len().min(linked + 1)));
            // SAFETY: as for `push`.
            if unsafe { queue.push_multiple(chain) }.is_err() {
                for entry in chain.drain(..).rev() {
                    overflow.push_front(entry);
                }
                return;
            }
            chain.clear();
        }
    }
}

/// Whether the next operation waits for this one.
fn is_linked(entry: &Entry) -> bool {
    const FLAGS: usize = 1;
    // SAFETY: `Entry` is a `struct io_uring_sqe` of 64 initialised bytes.
    let bytes = unsafe { &*std::ptr::from_ref(entry).cast::<[u8; size_of::<Entry>()]>() };
    // `flags` is the second byte (`man 2 io_uring_enter`).
    bytes[FLAGS] & Flags::IO_LINK.bits() != 0
}
