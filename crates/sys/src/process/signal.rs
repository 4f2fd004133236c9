//! Signals read as input, for a process that waits in `poll(2)` (`man 2 signalfd`).
//!
//! The supervisor uses it. A worker, whose threads wait in many ways, has handlers: [`crate::process::lifecycle`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

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
        // SAFETY: all-zero bytes are an empty signal set on Linux.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        for signal in Signal::READ {
            // SAFETY: the set is initialised and the number is a signal's.
            unsafe { libc::sigaddset(&raw mut set, signal.number()) };
        }
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
    use crate::process::alone::is_alone;

    #[test]
    fn ends_of_children_are_reported_also_if_the_parent_ignored_them() {
        // The kernel would reap the children of other tests meanwhile.
        if !is_alone("process::signal::tests::ends_of_children_are_reported_also_if_the_parent_ignored_them")
        {
            return;
        }
        // SAFETY: an ignored signal runs no code of this process.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        let signals = Signals::new().expect("there are descriptors");
        let mut child = std::process::Command::new("true").spawn().expect("true is a program");
        assert!(child.wait().expect("the kernel kept its status").success());
        drop(signals);
    }
}
