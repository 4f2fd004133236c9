//! Threads as the kernel numbers them (`man 2 gettid`), and whether one still exists.

use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, nice, test_kill_process};
use rustix::thread::gettid;

/// The number of this thread.
pub fn own() -> Pid {
    gettid()
}

/// Whether no thread and no process has this number. An ended process keeps its number until its parent has waited for
/// it.
pub fn is_gone(number: Pid) -> bool {
    test_kill_process(number) == Err(Errno::SRCH)
}

/// Lowers the priority of this thread (`man 2 nice`).
///
/// # Errors
/// The error of `nice(2)`.
pub fn lower_priority(by: i32) -> io::Result<()> {
    Ok(nice(by).map(drop)?)
}
