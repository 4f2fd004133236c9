//! Signals read as input, for a process that waits in `poll(2)` (`man 2 signalfd`).
//!
//! The supervisor uses it. A worker, whose threads wait in many ways, has handlers: [`crate::process::lifecycle`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// A signal with a meaning for a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// INT: stop immediately.
    Interrupt,
    /// TERM: drain within a bound.
    Terminate,
    /// QUIT: drain.
    Quit,
    /// HUP: reload the configuration.
    HangUp,
    /// HUP because the controlling terminal is gone; only for reading. It is not read if the parent of this process
    /// ignored HUP, as nohup(1) does.
    TerminalLost,
    /// USR1: reopen the logs.
    Reopen,
    /// USR2: finish, because a successor serves. For the supervisor: execute the new program.
    Retire,
    /// CHLD: a child has ended.
    Child,
    /// KILL; only for sending.
    Kill,
    /// CONT: continue a stopped process; only for sending.
    Continue,
}

impl Signal {
    const READ: [Signal; 7] = [
        Signal::Interrupt,
        Signal::Terminate,
        Signal::Quit,
        Signal::HangUp,
        Signal::Reopen,
        Signal::Retire,
        Signal::Child,
    ];

    fn number(self) -> libc::c_int {
        match self {
            Signal::Interrupt => libc::SIGINT,
            Signal::Terminate => libc::SIGTERM,
            Signal::Quit => libc::SIGQUIT,
            Signal::HangUp | Signal::TerminalLost => libc::SIGHUP,
            Signal::Reopen => libc::SIGUSR1,
            Signal::Retire => libc::SIGUSR2,
            Signal::Child => libc::SIGCHLD,
            Signal::Kill => libc::SIGKILL,
            Signal::Continue => libc::SIGCONT,
        }
    }

    pub(crate) fn to_rustix(self) -> rustix::process::Signal {
        rustix::process::Signal::from_named_raw(self.number()).expect("each of these signals has a name")
    }
}

/// The signals that ask a server for work and whose default action ends a process, blocked until [`Signals`] reads them.
/// INT, TERM and QUIT still end a start that takes long.
#[derive(Debug)]
pub struct Held {
    before: libc::sigset_t,
}

impl Held {
    /// Blocks HUP, USR1 and USR2 in the calling thread, which must be the only one.
    pub fn begin() -> Held {
        let set = set_of(&[Signal::HangUp, Signal::Reopen, Signal::Retire]);
        let mut before = set_of(&[]);
        // SAFETY: both sets are initialised and outlive the call, which has no other reason to fail.
        unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, &raw mut before) };
        Held { before }
    }

    /// Restores the former mask, for a program other than the server.
    pub fn release(self) {
        // SAFETY: the set is initialised and outlives the call; the old one is not requested.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }
}

/// Starts the program of `command` with an empty mask. The standard library would pass it the mask of this process.
pub fn clear_mask(command: &mut Command) {
    // SAFETY: between fork and exec, the function only calls sigprocmask(2), which is async-signal-safe.
    unsafe { command.pre_exec(unblock_all) };
}

/// Empties the mask of the calling thread.
pub(crate) fn unblock_all() -> io::Result<()> {
    let none = set_of(&[]);
    // SAFETY: `none` outlives the call; the old mask is not requested.
    match unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn set_of(signals: &[Signal]) -> libc::sigset_t {
    // SAFETY: all-zero bytes are an empty signal set on Linux.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    for signal in signals {
        // SAFETY: the set is initialised and the number is a signal's.
        unsafe { libc::sigaddset(&raw mut set, signal.number()) };
    }
    set
}

/// The signals of [`Signal`], blocked in this process and readable from a descriptor. A forked child inherits the mask
/// until [`crate::process::lifecycle::install_worker_signals`] unblocks them, so no signal is lost in between.
#[derive(Debug)]
pub struct Signals {
    descriptor: OwnedFd,
    /// Whether the parent ignored HUP. The kernel still queues it, because it is blocked.
    ignores_hangup: bool,
}

impl Signals {
    /// Blocks the signals of the calling thread, which must be the only one, and opens the descriptor. A parent may have
    /// ignored SIGCHLD, which `execve(2)` keeps: the kernel would then reap children without a signal.
    ///
    /// # Errors
    /// The error of `sigprocmask(2)` and `signalfd(2)`: no descriptors are left, mostly.
    pub fn new() -> io::Result<Signals> {
        // SAFETY: the default action runs no code of this process.
        if unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
        let set = set_of(&Signal::READ);
        // SAFETY: the set outlives the call; the old one is not requested.
        if unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the set outlives the call; -1 requests a new descriptor.
        let number = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
        Ok(Signals { descriptor, ignores_hangup: ignores(libc::SIGHUP) })
    }

    /// The next pending signal, if any. Several signals of the same kind count as one.
    pub fn next(&self) -> Option<Signal> {
        loop {
            let mut information = [0u8; 128];
            let Ok(128) = rustix::io::read(&self.descriptor, &mut information) else { return None };
            // `struct signalfd_siginfo` begins with the signal's number, an error, the code and the sender.
            let word = |at: usize| {
                u32::from_ne_bytes(information[4 * at..4 * at + 4].try_into().expect("4 bytes are 4 bytes"))
            };
            let signal = Signal::READ.into_iter().find(|signal| signal.number() as u32 == word(0))?;
            return match signal {
                Signal::HangUp if !is_terminal_lost(word(2), word(3)) => Some(Signal::HangUp),
                Signal::HangUp if self.ignores_hangup => continue,
                Signal::HangUp => Some(Signal::TerminalLost),
                other => Some(other),
            };
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Whether a HUP with this code and sender reports the loss of the controlling terminal. The kernel sends it to the
/// foreground, and a shell that leads the session sends it to its other jobs.
fn is_terminal_lost(code: u32, sender: u32) -> bool {
    /// `SI_KERNEL` (`man 2 sigaction`).
    const KERNEL: u32 = 0x80;
    // SAFETY: getsid(2) takes no pointer.
    let leader = unsafe { libc::getsid(0) };
    // In a container, a process outside has the number 0.
    let is_leader = sender != 0 && u32::try_from(leader) == Ok(sender);
    code == KERNEL || is_leader && !has_terminal()
}

/// Whether this process has a controlling terminal (`man 4 tty`).
fn has_terminal() -> bool {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    !matches!(rustix::fs::open("/dev/tty", flags, Mode::empty()), Err(Errno::NXIO | Errno::IO))
}

/// Whether this process ignores a signal.
fn ignores(signal: libc::c_int) -> bool {
    // SAFETY: all-zero bytes are a valid `sigaction`.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: no action is set, and `action` outlives the call.
    let result = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    result == 0 && action.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::alone::alone;

    #[test]
    fn a_program_starts_without_the_blocked_signals_of_its_parent() {
        let held = Held::begin();
        let mut command = Command::new("grep");
        command.args(["SigBlk", "/proc/self/status"]);
        let blocked = |command: &mut Command| {
            let output = command.output().expect("grep is a program").stdout;
            let line = String::from_utf8(output).expect("it is text");
            let mask = line.split_ascii_whitespace().nth(1).expect("a mask");
            u64::from_str_radix(mask, 16).expect("a number")
        };
        assert_ne!(blocked(&mut command) & 1 << (libc::SIGHUP - 1), 0);
        clear_mask(&mut command);
        assert_eq!(blocked(&mut command), 0);
        held.release();
        assert_eq!(blocked(Command::new("grep").args(["SigBlk", "/proc/self/status"])), 0);
    }

    #[test]
    fn ends_of_children_are_reported_also_if_the_parent_ignored_them() {
        // The kernel would reap the children of other tests meanwhile.
        alone(module_path!(), "ends_of_children_are_reported_also_if_the_parent_ignored_them", || {
            // SAFETY: an ignored signal runs no code of this process.
            unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
            let signals = Signals::new().expect("there are descriptors");
            let mut child = std::process::Command::new("true").spawn().expect("true is a program");
            assert!(child.wait().expect("the kernel kept its status").success());
            drop(signals);
        });
    }
}
