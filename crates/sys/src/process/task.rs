//! Threads as the kernel numbers them (`man 2 gettid`), and whether one still exists.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, nice, pidfd_open, pidfd_send_signal, test_kill_process};
use rustix::thread::gettid;

use super::signal::Signal;

/// The number of this thread.
pub fn own() -> Pid {
    gettid()
}

/// Whether no thread and no process has this number. An ended process keeps its number until its parent has waited for
/// it.
pub fn is_gone(number: Pid) -> bool {
    test_kill_process(number) == Err(Errno::SRCH)
}

/// A process, whichever process has its number later (`man 2 pidfd_open`).
#[derive(Debug)]
pub struct ProcessWatch(OwnedFd);

impl ProcessWatch {
    /// Watches the process that has this number now.
    ///
    /// # Errors
    /// The error of `pidfd_open(2)`: the process does not exist.
    pub fn new(number: Pid) -> io::Result<ProcessWatch> {
        Ok(ProcessWatch(pidfd_open(number, PidfdFlags::empty())?))
    }

    /// Whether the process has ended, also if its parent has not waited for it.
    pub fn has_ended(&self) -> io::Result<bool> {
        let mut watched = [PollFd::new(&self.0, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        Ok(poll(&mut watched, Some(&now))? != 0)
    }

    /// Sends a signal to the process, and never to a later process with the same number.
    ///
    /// # Errors
    /// The error of `pidfd_send_signal(2)`: the process has ended, or belongs to another user.
    pub fn send(&self, signal: Signal) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.0, signal.to_rustix())?)
    }
}

/// Lowers the priority of this thread (`man 2 nice`).
pub fn lower_priority(by: i32) -> io::Result<()> {
    Ok(nice(by).map(drop)?)
}
