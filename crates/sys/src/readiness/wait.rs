//! One wait for a few descriptors (`man 2 poll`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// The state of a descriptor after a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// It can be read, has an error, or is closed at the other end.
    pub any: bool,
    /// Its other end is closed.
    pub hung_up: bool,
}

/// Waits until one of `descriptors` can be read, for at most `limit`. Returns the state of each.
///
/// # Errors
/// The error of `poll(2)`; a signal is an error too.
pub fn for_input(descriptors: &[BorrowedFd<'_>], limit: Option<Duration>) -> io::Result<Vec<Reported>> {
    let mut all: Vec<_> = descriptors.iter().map(|one| PollFd::new(one, PollFlags::IN)).collect();
    poll(&mut all, limit.and_then(|limit| Timespec::try_from(limit).ok()).as_ref())?;
    let report = |one: &PollFd<'_>| Reported {
        any: !one.revents().is_empty(),
        hung_up: one.revents().contains(PollFlags::HUP),
    };
    Ok(all.iter().map(report).collect())
}

/// Makes reads and writes of `descriptor` fail with `WouldBlock` instead of waiting. The flag belongs to the open file:
/// it also applies to other processes with the same open file, such as the shell of a terminal.
pub fn never_block(descriptor: impl AsFd) -> io::Result<()> {
    let flags = fcntl_getfl(&descriptor)?;
    Ok(fcntl_setfl(&descriptor, flags | OFlags::NONBLOCK)?)
}

/// Waits until `descriptor` can be written, at most for `limit`. Returns whether it can, or has an error.
///
/// # Errors
/// The error of `poll(2)`; a signal is an error too.
pub fn for_output(descriptor: BorrowedFd<'_>, limit: Duration) -> io::Result<bool> {
    let limit = Timespec::try_from(limit).ok();
    Ok(poll(&mut [PollFd::new(&descriptor, PollFlags::OUT)], limit.as_ref())? > 0)
}
