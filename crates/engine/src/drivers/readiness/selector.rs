//! The operations of a readiness mechanism: watch, change, forget, wait.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use tenfold_sys::readiness::Ready;

/// The events that a registration reports. A registration without interest may still report errors:
/// [`Reporting::errors`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interest {
    /// Readable: bytes, or the peer's end.
    pub(crate) read: bool,
    /// Writable.
    pub(crate) write: bool,
}

impl Interest {
    /// Nothing.
    pub(crate) const NONE: Interest = Interest { read: false, write: false };
    /// Readable.
    pub(crate) const READ: Interest = Interest { read: true, write: false };
}

/// The way in which a mechanism reports events of connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reporting {
    /// Whether a connection's registration ends with its first event; [`Selector::change`] then renews it. A renewed
    /// registration also reports existing bytes and room.
    pub(crate) one_shot: bool,
    /// Whether connections are reported only when they become ready. If so, registered interest stays, and the caller
    /// remembers each report.
    pub(crate) edge: bool,
    /// Whether registrations report errors regardless of their interest.
    pub(crate) errors: bool,
    /// Whether waits end for [`Selector::watch_event`]. If not, they do not block.
    pub(crate) events: bool,
}

impl Default for Reporting {
    fn default() -> Reporting {
        Reporting { one_shot: false, edge: false, errors: true, events: true }
    }
}

/// A readiness mechanism. A word names each registration, and each event has the word of its registration.
///
/// The loop calls it as a trait object, so the loop is compiled once for all mechanisms. An indirect call costs little
/// compared with a system call.
pub(crate) trait Selector {
    /// The way in which it reports events.
    fn reporting(&self) -> Reporting {
        Reporting::default()
    }

    /// A handle with which other threads renew registrations, if the mechanism allows it. Only called with
    /// [`Reporting::one_shot`].
    fn rearm(&self) -> Option<Arc<dyn Rearm>> {
        None
    }

    /// Whether a connection with this descriptor can be watched.
    fn admits(&self, _number: RawFd) -> bool {
        true
    }

    /// Ends a tick; `worked` if the tick accepted, received or sent anything. Only called if waits do not block.
    fn turn_over(&mut self, _worked: bool) {}

    /// Registers a listening socket, or another source of connections, for reading.
    fn watch_source(&mut self, number: RawFd, word: u64) -> io::Result<()> {
        self.watch(number, word, Interest::READ)
    }

    /// Registers an eventfd that ends a wait. Does nothing if waits do not block.
    fn watch_event(&mut self, number: RawFd, word: u64) -> io::Result<()> {
        self.watch_source(number, word)
    }

    /// Registers a connection, or changes what its registration reports.
    fn watch(&mut self, number: RawFd, word: u64, interest: Interest) -> io::Result<()>;

    /// Changes the interest of a registration.
    fn change(&mut self, number: RawFd, word: u64, interest: Interest) -> io::Result<()> {
        self.watch(number, word, interest)
    }

    /// Ends a registration whose descriptor stays open.
    fn forget(&mut self, number: RawFd);

    /// Ends a registration whose descriptor is closed next. Some mechanisms do so by themselves.
    fn closing(&mut self, number: RawFd) {
        self.forget(number);
    }

    /// Waits for at most this many milliseconds, and appends the events to `events`. A signal ends the wait.
    fn wait(&mut self, milliseconds: Option<u32>, events: &mut Vec<Ready>) -> io::Result<()>;
}

/// Renews a connection's registration from a thread other than the loop's.
pub(crate) trait Rearm: Send + Sync {
    /// See [`Selector::change`].
    fn rearm(&self, number: RawFd, word: u64, interest: Interest) -> io::Result<()>;
}
