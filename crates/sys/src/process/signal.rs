//! Signals that are read like input, for a process that waits in `poll(2)` (`man 2 signalfd`).
//!
//! For the supervisor. A worker, whose threads wait in many ways, has handlers: [`crate::process::lifecycle`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

/// A signal that means something to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// INT: stop at once.
    Interrupt,
    /// TERM: drain within a bound.
    Terminate,
    /// QUIT: drain.
    Quit,
    /// HUP: read the configuration again.
    HangUp,
    /// USR1: open the logs again.
    Reopen,
    /// CHLD: a child has ended.
    Child,
    /// KILL; it can be sent only.
    Kill,
}

impl Signal {
    const READ: [Signal; 6] =
        [Signal::Interrupt, Signal::Terminate, Signal::Quit, Signal::HangUp, Signal::Reopen, Signal::Child];

    fn number(self) -> libc::c_int {
        match self {
            Signal::Interrupt => libc::SIGINT,
            Signal::Terminate => libc::SIGTERM,
            Signal::Quit => libc::SIGQUIT,
            Signal::HangUp => libc::SIGHUP,
            Signal::Reopen => libc::SIGUSR1,
            Signal::Child => libc::SIGCHLD,
            Signal::Kill => libc::SIGKILL,
        }
    }

    pub(crate) fn to_rustix(self) -> rustix::process::Signal {
        rustix::process::Signal::from_named_raw(self.number()).expect("each of these signals has a name")
    }
}

/// The signals of [`Signal`], blocked in this process and readable from a descriptor. A child that is
/// forked has them blocked, too, until [`crate::process::lifecycle::install_worker_signals`] lets them in: none is
/// lost in between.
#[derive(Debug)]
pub struct Signals(OwnedFd);

impl Signals {
    /// Blocks the signals of the calling thread, which has to be the only one, and opens the descriptor.
    ///
    /// # Errors
    /// What `sigprocmask(2)` and `signalfd(2)` say: no descriptors are left, mostly.
    pub fn new() -> io::Result<Signals> {
        // SAFETY: all-zero bytes are an empty signal set on Linux.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        for signal in Signal::READ {
            // SAFETY: the set is initialised and the number is a signal's.
            unsafe { libc::sigaddset(&raw mut set, signal.number()) };
        }
        // SAFETY: the set outlives the call; the old one is not asked for.
        if unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the set outlives the call; -1 asks for a new descriptor.
        let number = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC) };
        if number < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and nobody else owns it.
        Ok(Signals(unsafe { OwnedFd::from_raw_fd(number) }))
    }

    /// The next signal that came, where one did. Those that came several times meanwhile come once.
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
