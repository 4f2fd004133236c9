//! One wait for a few descriptors (`man 2 poll`).

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;

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
/// The error of `poll(2)`; a signal is an error, too.
pub fn for_input(descriptors: &[BorrowedFd<'_>], limit: Option<Duration>) -> io::Result<Vec<Reported>> {
    let mut all: Vec<_> = descriptors.iter().map(|one| PollFd::new(one, PollFlags::IN)).collect();
    poll(&mut all, limit.and_then(|limit| Timespec::try_from(limit).ok()).as_ref())?;
    let report = |one: &PollFd<'_>| Reported {
        any: !one.revents().is_empty(),
        hung_up: one.revents().contains(PollFlags::HUP),
    };
    Ok(all.iter().map(report).collect())
}

/// As [`for_input`], or until one of `listening` does not listen any more, of which nothing is reported. One that has
/// begun to connect is noticed when it is connected or has failed.
///
/// # Errors
/// The error of `poll(2)`; a signal is an error, too.
pub fn for_input_or_shutdown(
    descriptors: &[BorrowedFd<'_>],
    listening: &[BorrowedFd<'_>],
    limit: Option<Duration>,
) -> io::Result<()> {
    let mut all: Vec<_> = descriptors.iter().map(|one| PollFd::new(one, PollFlags::IN)).collect();
    // Only a connection can be written.
    all.extend(listening.iter().map(|one| PollFd::new(one, PollFlags::RDHUP | PollFlags::OUT)));
    poll(&mut all, limit.and_then(|limit| Timespec::try_from(limit).ok()).as_ref())?;
    Ok(())
}

/// Whether a listening socket does not listen any more. A TCP socket says so. A Unix socket whose input is shut down does
/// not, but `poll(2)` reports it as ended.
pub fn is_shut_down(listening: BorrowedFd<'_>) -> bool {
    if sockopt::socket_acceptconn(listening) == Ok(false) {
        return true;
    }
    let mut one = [PollFd::new(&listening, PollFlags::RDHUP)];
    let polled = poll(&mut one, Some(&Timespec::default()));
    polled.is_ok() && one[0].revents().intersects(PollFlags::HUP | PollFlags::RDHUP)
}

/// Waits until `descriptor` can be written, at most for `limit`. Returns whether it can, or has an error.
///
/// # Errors
/// The error of `poll(2)`; a signal is an error, too.
pub fn for_output(descriptor: BorrowedFd<'_>, limit: Duration) -> io::Result<bool> {
    let limit = Timespec::try_from(limit).ok();
    Ok(poll(&mut [PollFd::new(&descriptor, PollFlags::OUT)], limit.as_ref())? > 0)
}
