//! The phase of this process, from serving to stopping, which signals change.
//!
//! A signal handler may only store into atomics and call `write(2)` (`man 7 signal-safety`). So it only changes the
//! phase and writes to the eventfd of every watching worker.

use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, Ordering, fence};

use crate::process::signal::unblock_all;
use crate::readiness::eventfd::EventFd;

/// The phase of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// Accept and serve.
    Serving = 0,
    /// Accept nothing, end each connection with its next response or at its deadline, and exit. An idle connection stays
    /// open: a request may be on its way, which a close would lose.
    Retiring = 1,
    /// Accept nothing, finish current work, close idle connections, and exit.
    Draining = 2,
    /// Exit immediately.
    Stopping = 3,
}

/// The most workers of a process that can watch the phase.
pub const MOST_WATCHERS: usize = 512;

static PHASE: AtomicU8 = AtomicU8::new(0);
static REOPENED: AtomicU32 = AtomicU32::new(0);
static WATCHERS: [AtomicI32; MOST_WATCHERS] = [const { AtomicI32::new(-1) }; MOST_WATCHERS];

/// The current phase of this process.
#[inline]
pub fn phase() -> Phase {
    match PHASE.load(Ordering::Relaxed) {
        0 => Phase::Serving,
        1 => Phase::Retiring,
        2 => Phase::Draining,
        _ => Phase::Stopping,
    }
}

/// Advances to a later phase and notifies watchers; an earlier phase changes nothing.
pub fn advance(to: Phase) {
    PHASE.fetch_max(to as u8, Ordering::Relaxed);
    wake();
}

/// Resets the phase, for a process that was just forked and for tests.
pub fn reset() {
    PHASE.store(Phase::Serving as u8, Ordering::Relaxed);
    for watcher in &WATCHERS {
        watcher.store(-1, Ordering::Relaxed);
    }
}

/// The number of requests to reopen the logs (`USR1`).
pub fn reopened() -> u32 {
    REOPENED.load(Ordering::Relaxed)
}

/// An eventfd that is written at every change of phase and at `USR1`, as long as this value lives.
#[derive(Debug)]
pub struct PhaseWatch {
    place: usize,
    /// Never closed, because a signal handler may still write to it.
    event: ManuallyDrop<EventFd>,
}

impl PhaseWatch {
    /// Starts watching; a change that has already happened is reported immediately.
    ///
    /// # Errors
    /// No descriptor is left, or [`MOST_WATCHERS`] watch already.
    pub fn new() -> io::Result<PhaseWatch> {
        let event = ManuallyDrop::new(EventFd::new()?);
        let number = event.number();
        let free = WATCHERS.iter().position(|place| {
            place.compare_exchange(-1, number, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        });
        match free {
            Some(place) => {
                // A signal sets the phase and then reads the watchers, so either the signal or this check sees the other.
                fence(Ordering::SeqCst);
                if phase() != Phase::Serving {
                    event.signal();
                }
                Ok(PhaseWatch { place, event })
            }
            None => Err(io::Error::other("too many workers in one process")),
        }
    }

    /// The eventfd.
    pub fn event(&self) -> &EventFd {
        &self.event
    }
}

impl Drop for PhaseWatch {
    fn drop(&mut self) {
        // `reset` may have freed the place.
        let ours = self.event.number();
        let _ = WATCHERS[self.place].compare_exchange(ours, -1, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Lets signals control this process as a worker: `USR2` retires, `QUIT` and `TERM` drain, `INT` stops,
/// `USR1` reopens logs. `HUP` is ignored, because the supervisor handles it. Broken pipes and the file size limit become
/// errors instead of signals.
pub fn install_worker_signals() -> io::Result<()> {
    for signal in [libc::SIGQUIT, libc::SIGTERM, libc::SIGINT, libc::SIGUSR1, libc::SIGUSR2] {
        install(signal, on_signal as *const () as libc::sighandler_t, 0)?;
    }
    for signal in [libc::SIGHUP, libc::SIGPIPE, libc::SIGXFSZ] {
        install(signal, libc::SIG_IGN, 0)?;
    }
    unblock_all()
}

/// Sets the handler of a signal. Without SA_RESTART among `flags`, a waiting call ends with EINTR.
pub(in crate::process) fn install(
    signal: libc::c_int,
    handler: libc::sighandler_t,
    flags: libc::c_int,
) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid sigaction with an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    (action.sa_sigaction, action.sa_flags) = (handler, flags);
    // SAFETY: `action` is initialised and outlives the call; the old action is not requested.
    let result = unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

extern "C" fn on_signal(signal: libc::c_int) {
    match signal {
        libc::SIGUSR1 => {
            REOPENED.fetch_add(1, Ordering::Relaxed);
        }
        libc::SIGUSR2 => {
            PHASE.fetch_max(Phase::Retiring as u8, Ordering::Relaxed);
        }
        libc::SIGINT => {
            PHASE.fetch_max(Phase::Stopping as u8, Ordering::Relaxed);
        }
        _ => {
            PHASE.fetch_max(Phase::Draining as u8, Ordering::Relaxed);
        }
    }
    wake();
}

/// Async-signal-safe: uses atomics and `write(2)`, and preserves errno.
fn wake() {
    fence(Ordering::SeqCst);
    // SAFETY: errno belongs to this thread, and its value is restored.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    for watcher in &WATCHERS {
        let number = watcher.load(Ordering::Relaxed);
        if number >= 0 {
            let one = 1u64.to_ne_bytes();
            // SAFETY: `one` is 8 readable bytes. The descriptor is an eventfd of `PhaseWatch`, which is never closed.
            unsafe { libc::write(number, one.as_ptr().cast(), one.len()) };
        }
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}
