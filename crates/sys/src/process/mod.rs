//! Processes: forked, waited for, signalled, and ended with their parent.

#[cfg(test)]
pub(crate) mod alone;
mod descendants;
pub mod exec;
pub mod landlock;
pub mod lifecycle;
pub mod limits;
pub mod sacrifice;
pub mod seccomp;
pub mod signal;
pub mod task;
pub mod terminal;
pub mod threads;
pub mod usage;
pub mod user;

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub use descendants::{adopt_orphans, descendants, end_descendants, parent};
pub use rustix::process::Pid;
use rustix::process::{
    DumpableBehavior, WaitId, WaitIdOptions, WaitOptions, getpid, getppid, kill_process, kill_process_group,
    set_dumpable_behavior, set_parent_process_death_signal, wait, waitid,
};

use crate::process::signal::Signal;

/// The time in which killed children must end. A child that waits for a disk can take longer.
const LATEST_END: Duration = Duration::from_secs(1);
/// The interval between two checks.
const TICK: Duration = Duration::from_millis(1);

/// The side of a [`fork`] that this process is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// The process that called, with the number of the new process.
    Parent(Pid),
    /// The new process.
    Child,
}

/// The names of all live [`Unforkable`] values.
static UNFORKABLE: Mutex<Vec<&str>> = Mutex::new(Vec::new());

/// Refuses forks while it lives, for memory that the kernel or a library finds by its address. A child would have its own
/// copy at that address, and the kernel would still use the memory of the parent.
#[derive(Debug)]
pub(crate) struct Unforkable(&'static str);

impl Unforkable {
    /// Refuses forks on behalf of `name`.
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

/// Creates a second process like this one (`man 2 fork`).
///
/// # Errors
/// The process has other threads (their locks would stay locked in the child), or that is unknown because `/proc` is
/// missing. It has an io_uring or an Asio context. Or the system refuses: too many processes, no memory.
pub fn fork() -> io::Result<Fork> {
    let threads = threads()?;
    if threads != 1 {
        return Err(io::Error::other(format!("cannot fork a process with {threads} threads safely")));
    }
    if let Some(name) = UNFORKABLE.lock().unwrap_or_else(PoisonError::into_inner).first() {
        return Err(io::Error::other(format!(
            "cannot fork a process that uses {name}: the child would share it"
        )));
    }
    // SAFETY: this is the only thread. So no thread that is absent from the child holds a lock of the allocator or of
    // the standard library, and the child may call any function.
    match unsafe { libc::fork() } {
        0 => Ok(Fork::Child),
        number @ 1.. => Ok(Fork::Parent(Pid::from_raw(number).expect("it is not 0"))),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The number of threads of this process.
///
/// # Errors
/// `/proc` is not mounted.
pub fn threads() -> io::Result<usize> {
    const TASKS: &str = "/proc/self/task";
    // The links of a directory are its own, that of its parent, and one for each folder: here, each thread. One call
    // replaces a read of the directory. A sandbox that emulates /proc counts otherwise.
    if fs::metadata(TASKS)?.nlink() == 3 {
        return Ok(1);
    }
    Ok(fs::read_dir(TASKS)?.count())
}

/// This process.
pub fn own() -> Pid {
    getpid()
}

/// Sends a signal. Processes that have ended are ignored.
pub fn send_signal(process: Pid, signal: Signal) {
    let _ = kill_process(process, signal.to_rustix());
}

/// Sends a signal to a process group. A group without processes is ignored.
pub fn send_signal_to_group(leader: Pid, signal: Signal) {
    let _ = kill_process_group(leader, signal.to_rustix());
}

/// Makes this process the leader of a new process group, so that no signal to its former group reaches it.
pub fn leave_group() -> io::Result<()> {
    Ok(rustix::process::setpgid(None, None)?)
}

/// Ends this process by ALRM after `time`, and at least a second, unless it ends earlier (`man 2 alarm`). A child does not
/// inherit the request, a program that this process executes does.
pub fn end_after(time: Duration) {
    let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX).max(1);
    // SAFETY: the call takes a number and touches no memory of this process.
    unsafe { libc::alarm(seconds) };
}

/// The way a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitStatus {
    /// It exited with this code.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
}

impl fmt::Display for WaitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitStatus::Exited(code) => write!(f, "exited with code {code}"),
            WaitStatus::Killed(number) => match signal_name(*number) {
                Some(name) => write!(f, "was killed by signal {number} ({name})"),
                None => write!(f, "was killed by signal {number}"),
            },
        }
    }
}

fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        libc::SIGABRT => "ABRT: aborted",
        libc::SIGBUS => "BUS: bus error, such as an unreadable page of a mapped file",
        libc::SIGILL => "ILL: illegal instruction",
        libc::SIGINT => "INT",
        libc::SIGKILL => "KILL: sent by a user, or by the kernel because memory ran out",
        libc::SIGQUIT => "QUIT",
        libc::SIGSEGV => "SEGV: segmentation fault",
        libc::SIGSYS => "SYS: a filter refused a system call",
        libc::SIGTERM => "TERM",
        _ => return None,
    })
}

/// Returns one child that has ended, if any. It does not block.
pub fn reap() -> io::Result<Option<(Pid, WaitStatus)>> {
    match rustix::io::retry_on_intr(|| wait(WaitOptions::NOHANG)) {
        Ok(None) | Err(rustix::io::Errno::CHILD) => Ok(None),
        Ok(Some((pid, status))) => {
            let end = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => WaitStatus::Exited(code),
                (None, number) => WaitStatus::Killed(number.unwrap_or_default()),
            };
            Ok(Some((pid, end)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether `process` is a child of this process that was not reaped.
pub fn is_child(process: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::Pid(process), options), Err(rustix::io::Errno::CHILD))
}

/// Kills a child that was not reaped, and reaps it.
pub fn end_child(process: Pid) {
    send_signal(process, Signal::Kill);
    let _ = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(process), WaitIdOptions::EXITED));
}

/// Kills the children among `processes` that were not reaped, and reaps them. It waits at most a second and ignores
/// children that end later.
pub fn end_children(processes: impl IntoIterator<Item = Pid>) {
    // Another process can have the number of a child that was reaped.
    let mut left: Vec<Pid> = processes.into_iter().filter(|process| is_child(*process)).collect();
    left.iter().for_each(|child| send_signal(*child, Signal::Kill));
    let by = Instant::now() + LATEST_END;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    loop {
        left.retain(|child| matches!(waitid(WaitId::Pid(*child), options), Ok(None)));
        if left.is_empty() || by <= Instant::now() {
            return;
        }
        thread::sleep(TICK);
    }
}

/// Requests `signal` for this process when `parent` ends (`PR_SET_PDEATHSIG`). Call it after the last change of user,
/// which resets the request. Returns whether the parent still exists.
pub fn end_with(parent: Pid, signal: Signal) -> io::Result<bool> {
    set_parent_process_death_signal(Some(signal.to_rustix()))?;
    // The parent may have ended before the call; then this process has another parent.
    Ok(getppid() == Some(parent))
}

/// Replaces standard input and output of this process by `/dev/null`.
pub fn leave_streams() -> io::Result<()> {
    let null = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    Ok(rustix::stdio::dup2_stdout(&null)?)
}

/// Closes the memory of this process to every process without capabilities, including those of its own user: no
/// `ptrace`, no `/proc/PID/mem`, no core file (`PR_SET_DUMPABLE` 0). Call it after the last change of user, which
/// resets it.
///
/// A process that is traced already stays open: its tracer controls it, and could not show strings and paths otherwise.
pub fn hide_memory() -> io::Result<()> {
    if is_traced() {
        return Ok(());
    }
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// Whether a tracer is attached to this process.
fn is_traced() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|number| number.trim() != "0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_several_threads_cannot_fork() {
        // The test harness runs tests on other threads.
        let error = fork().expect_err("there are several threads");
        assert!(error.to_string().contains("cannot fork a process with"), "{error}");
    }

    #[test]
    fn ended_children_are_gone() {
        let begin = || std::process::Command::new("sleep").arg("60").spawn().expect("coreutils");
        let pid = |child: std::process::Child| i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let children = [begin(), begin()].map(|child| pid(child).expect("it has a number"));
        assert!(children.iter().all(|child| is_child(*child)));
        end_children(children);
        assert!(!children.iter().any(|child| is_child(*child)));
    }

    #[test]
    fn a_process_that_is_no_child_is_not_ended() {
        // The process in the background is a child of the shell, which ends.
        let script = "sleep 60 >/dev/null 2>&1 & echo $!";
        let output = std::process::Command::new("sh").args(["-c", script]).output().expect("a shell");
        let number = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number");
        let stranger = Pid::from_raw(number).expect("it is not 0");
        end_children([stranger]);
        let state = fs::read_to_string(format!("/proc/{number}/stat"));
        send_signal(stranger, Signal::Kill);
        assert!(state.is_ok_and(|state| !state.contains(" Z ")), "it was killed");
    }

    #[test]
    fn a_wait_status_is_readable() {
        assert_eq!(WaitStatus::Exited(3).to_string(), "exited with code 3");
        assert_eq!(WaitStatus::Killed(11).to_string(), "was killed by signal 11 (SEGV: segmentation fault)");
        assert_eq!(WaitStatus::Killed(64).to_string(), "was killed by signal 64");
    }
}
