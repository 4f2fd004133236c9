//! Signals read as input, for a process that waits in `poll(2)` (`man 2 signalfd`).
//!
//! The supervisor uses it. A worker, whose threads wait in many ways, has handlers: [`crate::process::lifecycle`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

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
    /// USR1: reopen the logs.
    Reopen,
    /// USR2: finish, because a successor serves. For the supervisor: execute the new program.
    Retire,
    /// CHLD: a child has ended.
    Child,
    /// KILL; only for sending.
    Kill,
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
            Signal::HangUp => libc::SIGHUP,
            Signal::Reopen => libc::SIGUSR1,
            Signal::Retire => libc::SIGUSR2,
            Signal::Child => libc::SIGCHLD,
            Signal::Kill => libc::SIGKILL,
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
pub struct Signals(OwnedFd);

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
        Ok(Signals(unsafe { OwnedFd::from_raw_fd(number) }))
    }

    /// The next pending signal, if any. Several signals of the same kind count as one.
    pub fn next(&self) -> Option<Signal> {
        // `struct signalfd_siginfo` is 128 bytes and begins with the signal's number in 32 bits.
        let mut information = [0u8; 128];
        match rustix::io::read(&self.0, &mut information) {
            Ok(128) => {
                let number = u32::from_ne_bytes(information[..4].try_into().expect("4 bytes are 4 bytes"));
                Signal::READ.into_iter().find(|signal| signal.number() as u32 == number)
            }
            _ => None,
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
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
