//! The operations of a readiness mechanism: watch, change, forget, wait.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use tenfold_sys::readiness::Ready;

/// The events that a registration reports. One without interest may still report errors: [`Selector::HEARS_ERRORS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interest {
    /// Something to read, or the peer's end.
    pub(crate) read: bool,
    /// Room to write.
    pub(crate) write: bool,
}

impl Interest {
    /// Nothing at all.
    pub(crate) const NONE: Interest = Interest { read: false, write: false };
    /// Something to read.
    pub(crate) const READ: Interest = Interest { read: true, write: false };
}

/// A readiness mechanism. Registrations are named by a word that comes back with each event.
pub(crate) trait Selector {
    /// Whether it has to be told after each turn if anything was done: [`Selector::turn_over`].
    const SLEEPS: bool = false;

    /// Whether a registration of a connection ends with its report, and [`Selector::change`] begins it anew.
    /// A registration reports bytes and room that are there already.
    const ONE_SHOT: bool = false;

    /// How other threads begin registrations anew, where the mechanism lets them. Asked for where
    /// registrations are [`Selector::ONE_SHOT`].
    fn rearm(&self) -> Option<Arc<dyn Rearm>> {
        None
    }

    /// Whether registrations hear of errors, whatever their interest.
    const HEARS_ERRORS: bool = true;

    /// Whether a connection with this descriptor can be watched.
    fn admits(&self, _number: RawFd) -> bool {
        true
    }

    /// A turn is over; says whether anything was accepted, received or sent in it.
    fn turn_over(&mut self, _worked: bool) {}

    /// Whether connections are reported only when they become ready. Interest that was registered stays
    /// then, and what was reported once has to be remembered.
    fn edge(&self) -> bool {
        false
    }

    /// Registers a listening socket, or whatever else brings connections, for reading.
    fn watch_source(&mut self, number: RawFd, word: u64) -> io::Result<()> {
        self.watch(number, word, Interest::READ)
    }

    /// Registers an eventfd that ends a wait. Needless where no wait lasts.
    fn watch_event(&mut self, number: RawFd, word: u64) -> io::Result<()> {
        self.watch_source(number, word)
    }

    /// Registers a connection, or changes what its registration reports.
    fn watch(&mut self, number: RawFd, word: u64, interest: Interest) -> io::Result<()>;

    /// Changes what a registration hears of.
    fn change(&mut self, number: RawFd, word: u64, interest: Interest) -> io::Result<()> {
        self.watch(number, word, interest)
    }

    /// Ends a registration whose descriptor stays open.
    fn forget(&mut self, number: RawFd);

    /// Ends a registration whose descriptor is closed next. Some mechanisms do so by themselves.
    fn closing(&mut self, number: RawFd) {
        self.forget(number);
    }

    /// Waits at most so many milliseconds, and puts what is ready into `events`. A signal ends the wait.
    fn wait(&mut self, milliseconds: Option<u32>, events: &mut Vec<Ready>) -> io::Result<()>;
}

/// Begins a connection's registration anew from another thread than the loop's.
pub(crate) trait Rearm: Send + Sync {
    /// See [`Selector::change`].
    fn rearm(&self, number: RawFd, word: u64, interest: Interest) -> io::Result<()>;
}
