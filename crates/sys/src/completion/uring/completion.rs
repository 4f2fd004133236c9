//! The way of results back: waiting for completions, and what they bring.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use io_uring::cqueue;
use io_uring::types::{SubmitArgs, Timespec};

use super::buffers::{Pool, RingBuffer};
use super::held::{Belongings, Outcome};
use super::ring::Ring;
use super::word::{ACCEPT, HELD, Told};

/// An operation that has completed, or has one more result: a multishot one goes on.
pub type Completion = crate::completion::Completion<RingBuffer>;

impl Ring {
    /// Hands everything over, waits for at least one completion, for `timeout` or a signal, and puts the
    /// completions into `into`.
    ///
    /// # Errors
    /// What `io_uring_enter(2)` says. EAGAIN and ENOMEM are a shortage ([`crate::errors::failure::is_shortage`]): what
    /// had completed is in `into`, and what was not taken is handed over by the next wait.
    pub fn wait(&mut self, timeout: Option<Duration>, into: &mut Vec<Completion>) -> io::Result<()> {
        debug_assert!(self.chain.is_empty(), "a chain has its end before it is handed over");
        while !self.overflow.is_empty() {
            let submitted = self.submit();
            self.refill();
            // A kernel may take no more operations while completions wait to be read.
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

    /// Hands everything over and lets what has happened complete, without waiting: with deferred task work
    /// that takes a call which asks for events.
    fn look(&mut self) -> io::Result<usize> {
        const GETEVENTS: u32 = 1;
        let count = self.ring.submission().len() as u32;
        // SAFETY: what the entries point to outlives them, as for `push`; there is no argument.
        unsafe { self.ring.submitter().enter::<libc::sigset_t>(count, 0, GETEVENTS, None) }
    }

    /// Reads the results that are there.
    pub(super) fn reap(&mut self, into: &mut Vec<Completion>) {
        let Ring { ring, pool, belongings, in_flight, .. } = self;
        let mut read = |told: Told| {
            *in_flight -= usize::from(!cqueue::more(told.flags));
            into.extend(told.read(pool, belongings));
        };
        for entry in ring.completion() {
            let told = Told { word: entry.user_data(), result: entry.result(), flags: entry.flags() };
            #[cfg(any(test, feature = "test-layer"))]
            let Some(told) = self.faults.told(told) else { continue };
            read(told);
        }
        #[cfg(any(test, feature = "test-layer"))]
        self.faults.late().into_iter().for_each(read);
    }
}

impl Told {
    /// What it brings; nothing where it is the last word on a send that came to nothing.
    fn read(self, pool: &Rc<Pool>, belongings: &mut Belongings) -> Option<Completion> {
        let Told { word, result, flags } = self;
        let more = cqueue::more(flags);
        let buffer = cqueue::buffer_select(flags).map(|id| pool.take(id, result.max(0) as usize));
        let mut socket = None;
        if word & (HELD | ACCEPT) == ACCEPT && result >= 0 {
            // SAFETY: the kernel made this descriptor for an accept of ours, and each of its completions is
            // read once.
            socket = Some(unsafe { OwnedFd::from_raw_fd(result) }.into());
        }
        let outcome = match () {
            () if word & HELD == 0 => Outcome { tag: word & !ACCEPT, result, memory: None, released: None },
            () if more => belongings.go_on(word, result),
            () => belongings.end(word, result, cqueue::notif(flags))?,
        };
        let Outcome { tag, result, memory, released } = outcome;
        Some(Completion { tag, result, more, buffer, memory, socket, released })
    }
}
