//! Completions: waiting for them, and reading their results.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use io_uring::cqueue;
use io_uring::types::{SubmitArgs, Timespec};

use super::buffers::{BufferPool, RingBuffer};
use super::held::{HeldTable, OperationResult};
use super::ring::Ring;
use super::word::{ACCEPT, Cqe, HELD};

/// An operation that has completed, or an intermediate result of a multishot operation.
pub type RingCompletion = crate::completion::Completion<RingBuffer>;

impl Ring {
    /// Submits everything, waits for a completion, `timeout` or a signal, and appends the completions to `into`.
    ///
    /// # Errors
    /// The error of `io_uring_enter(2)`. EAGAIN and ENOMEM are a shortage ([`crate::errors::failure::is_shortage`]):
    /// `into` has the completions so far, and the next wait submits the rest.
    pub fn wait(&mut self, timeout: Option<Duration>, into: &mut Vec<RingCompletion>) -> io::Result<()> {
        debug_assert!(self.chain.is_empty(), "a chain has its end before it is handed over");
        while !self.overflow.is_empty() {
            let submitted = self.submit();
            self.refill();
            // A kernel may accept no more operations while completions are unread.
            self.reap(into);
            submitted?;
        }
        let timeout = if into.is_empty() { timeout } else { Some(Duration::ZERO) };
        let result = match timeout {
            Some(Duration::ZERO) => self.look(),
            Some(length) => {
                let limit = Timespec::from(length);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit))
            }
            None => self.ring.submit_and_wait(1),
        };
        self.reap(into);
        match result {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::ETIME | libc::EBUSY)) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Submits everything and completes what has happened, without waiting. With deferred task work this takes a call
    /// that asks for events.
    fn look(&mut self) -> io::Result<usize> {
        const GETEVENTS: u32 = 1;
        let count = self.ring.submission().len() as u32;
        // SAFETY: the memory of the entries outlives them, as for `push`; there is no argument.
        unsafe { self.ring.submitter().enter::<libc::sigset_t>(count, 0, GETEVENTS, None) }
    }

    /// Reads the results that exist.
    pub(super) fn reap(&mut self, into: &mut Vec<RingCompletion>) {
        let Ring { ring, pool, held_table, in_flight, .. } = self;
        let mut read = |cqe: Cqe| {
            *in_flight -= usize::from(!cqueue::more(cqe.flags));
            into.extend(cqe.read(pool, held_table));
        };
        for entry in ring.completion() {
            let cqe = Cqe { word: entry.user_data(), result: entry.result(), flags: entry.flags() };
            #[cfg(any(test, feature = "test-hooks"))]
            let Some(cqe) = self.faults.filter(cqe) else { continue };
            read(cqe);
        }
        #[cfg(any(test, feature = "test-hooks"))]
        self.faults.late().into_iter().for_each(read);
    }
}

impl Cqe {
    /// Converts it to a completion; `None` if it is the notification of a send that failed.
    fn read(self, pool: &Rc<BufferPool>, held_table: &mut HeldTable) -> Option<RingCompletion> {
        let Cqe { word, result, flags } = self;
        let more = cqueue::more(flags);
        let buffer = cqueue::buffer_select(flags).map(|id| pool.take(id, result.max(0) as usize));
        let mut socket = None;
        if word & (HELD | ACCEPT) == ACCEPT && result >= 0 {
            // SAFETY: the kernel created this descriptor for an accept of ours, and each completion is read once.
            socket = Some(unsafe { OwnedFd::from_raw_fd(result) }.into());
        }
        let outcome = match () {
            () if word & HELD == 0 => {
                OperationResult { tag: word & !ACCEPT, result, memory: None, released: None }
            }
            () if more => held_table.go_on(word, result),
            () => held_table.end(word, result, cqueue::notif(flags))?,
        };
        let OperationResult { tag, result, memory, released } = outcome;
        Some(RingCompletion { tag, result, more, buffer, memory, socket, released })
    }
}
