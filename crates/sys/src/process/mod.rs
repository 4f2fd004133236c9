//! Processes: made, waited for, told things, and ended with their parent.

pub mod landlock;
pub mod lifecycle;
pub mod limits;
pub mod seccomp;
pub mod signal;
pub mod task;
pub mod terminal;
pub mod user;

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};

pub use rustix::process::Pid;
use rustix::process::{
    DumpableBehavior, WaitOptions, getpid, getppid, kill_process, set_dumpable_behavior,
    set_parent_process_death_signal, wait,
};

use crate::process::signal::Signal;

/// On which side of a [`fork`] this process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// The one that called, and the number of the new one.
    Parent(Pid),
    /// The new one.
    Child,
}

/// What lives in this process and is [`Unforkable`].
static UNFORKABLE: Mutex<Vec<&str>> = Mutex::new(Vec::new());

/// Refuses forks as long as it lives: for memory that the kernel, or a library, finds by its address. A child would
/// have another thing, or nothing, at that address, and would change what the parent finds.
#[derive(Debug)]
pub(crate) struct Unforkable(&'static str);

impl Unforkable {
    /// For something with this name.
    pub(crate) fn new(name: &'static str) -> Unforkable {
        UNFORKABLE.lock().unwrap_or_else(PoisonError::into_inner).push(name);
        Unforkable(name)
    }
}

impl Drop for Unforkable {
    fn drop(&mut self) {
        let mut all = UNFORKABLE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = all.iter().position(|name| *name == self.0) {
            all.swap_remove(place);
        }
    }
}

/// Makes a second process like this one (`man 2 fork`).
///
/// # Errors
/// When the process has other threads (what they held would be held for ever in the child), when that cannot
/// be found out because `/proc` is missing, when the process has an io_uring or an Asio context, and what the
/// system says: too many processes, no memory.
pub fn fork() -> io::Result<Fork> {
    let threads = threads()?;
    if threads != 1 {
        return Err(io::Error::other(format!("a process with {threads} threads cannot be forked safely")));
    }
    if let Some(name) = UNFORKABLE.lock().unwrap_or_else(PoisonError::into_inner).first() {
        return Err(io::Error::other(format!(
            "cannot fork a process that uses {name}: the child would share it"
        )));
    }
    // SAFETY: this is the only thread, so no lock of the allocator or of the standard library is held by a
    // thread that does not exist in the child, and the child may do whatever the parent may.
    match unsafe { libc::fork() } {
        0 => Ok(Fork::Child),
        number @ 1.. => Ok(Fork::Parent(Pid::from_raw(number).expect("it is not 0"))),
        _ => Err(io::Error::last_os_error()),
    }
}

/// How many threads this process has.
///
/// # Errors
/// When `/proc` is not mounted.
pub fn threads() -> io::Result<usize> {
    const TASKS: &str = "/proc/self/task";
    // A directory has a link for itself, one from its parent, and one for each folder in it; here those are
    // the threads. One call instead of reading the directory; sandboxes that emulate /proc count otherwise.
    if fs::metadata(TASKS)?.nlink() == 3 {
        return Ok(1);
    }
    Ok(fs::read_dir(TASKS)?.count())
}

/// This process.
pub fn own() -> Pid {
    getpid()
}

/// Sends a signal. A process that has ended meanwhile is told nothing.
pub fn tell(process: Pid, signal: Signal) {
    let _ = kill_process(process, signal.to_rustix());
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Exited(code) => write!(f, "exited with code {code}"),
            End::Killed(number) => match signal_name(*number) {
                Some(name) => write!(f, "was killed by signal {number} ({name})"),
                None => write!(f, "was killed by signal {number}"),
            },
        }
    }
}

fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        libc::SIGABRT => "ABRT, it gave up",
        libc::SIGBUS => "BUS, a page could not be read",
        libc::SIGILL => "ILL, an instruction the processor does not have",
        libc::SIGINT => "INT",
        libc::SIGKILL => "KILL: by somebody, or the kernel was out of memory",
        libc::SIGQUIT => "QUIT",
        libc::SIGSEGV => "SEGV, a memory error",
        libc::SIGSYS => "SYS, a system call that a filter forbids",
        libc::SIGTERM => "TERM",
        _ => return None,
    })
}

/// One child that has ended, where there is one. Does not wait.
///
/// # Errors
/// What `waitpid(2)` says, other than that there are no children.
pub fn reap() -> io::Result<Option<(Pid, End)>> {
    match rustix::io::retry_on_intr(|| wait(WaitOptions::NOHANG)) {
        Ok(None) | Err(rustix::io::Errno::CHILD) => Ok(None),
        Ok(Some((pid, status))) => {
            let end = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => End::Exited(code),
                (None, number) => End::Killed(number.unwrap_or_default()),
            };
            Ok(Some((pid, end)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Lets `signal` come to this process when `parent` ends (`PR_SET_PDEATHSIG`). Called after the last change
/// of user, which forgets it. Says whether the parent is still there.
///
/// # Errors
/// What `prctl(2)` says.
pub fn end_with(parent: Pid, signal: Signal) -> io::Result<bool> {
    set_parent_process_death_signal(Some(signal.to_rustix()))?;
    // It may have ended before the call; then this is another's child already.
    Ok(getppid() == Some(parent))
}

/// Closes the memory of this process to every process without capabilities, those of its own user included: no
/// `ptrace`, no `/proc/PID/mem`, no core file (`PR_SET_DUMPABLE` 0). Called after the last change of user, which sets
/// it anew.
///
/// # Errors
/// What `prctl(2)` says.
pub fn hide_memory() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_several_threads_is_not_forked() {
        // The test harness runs tests on threads of their own.
        let error = fork().expect_err("there are several threads");
        assert!(error.to_string().contains("threads cannot be forked"), "{error}");
    }

    #[test]
    fn an_end_says_what_happened() {
        assert_eq!(End::Exited(3).to_string(), "exited with code 3");
        assert_eq!(End::Killed(11).to_string(), "was killed by signal 11 (SEGV, a memory error)");
        assert_eq!(End::Killed(64).to_string(), "was killed by signal 64");
    }
}
