//! Threads as the kernel counts them (`man 2 gettid`), and whether one is still there.

use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, nice, test_kill_process};
use rustix::thread::gettid;

/// The number of this thread.
pub fn own() -> Pid {
    gettid()
}

/// Whether no thread and no process has this number. One that has ended keeps it until its parent knows.
pub fn is_gone(number: Pid) -> bool {
    test_kill_process(number) == Err(Errno::SRCH)
}

/// Lets this thread give way to others (`man 2 nice`).
///
/// # Errors
/// What `nice(2)` says.
pub fn give_way(by: i32) -> io::Result<()> {
    Ok(nice(by).map(drop)?)
}
