//! Whether this process serves, drains or stops, as its signals say.
//!
//! A handler may only store into atomics and call `write(2)` (`man 7 signal-safety`), so that is all it
//! does: the phase changes, and every worker that asked to be told has its eventfd written.

use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, Ordering, fence};

use crate::readiness::eventfd::EventFd;

/// What a worker is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    /// Accept and serve.
    Serving = 0,
    /// Accept nothing, finish what was begun, close what rests, and leave.
    Draining = 1,
    /// Leave now.
    Stopping = 2,
}

/// Workers of a process that can be told of a change.
pub const MOST_WATCHERS: usize = 512;

static PHASE: AtomicU8 = AtomicU8::new(0);
static REOPENED: AtomicU32 = AtomicU32::new(0);
static WATCHERS: [AtomicI32; MOST_WATCHERS] = [const { AtomicI32::new(-1) }; MOST_WATCHERS];

/// What this process is to do now.
#[inline]
pub fn phase() -> Phase {
    match PHASE.load(Ordering::Relaxed) {
        0 => Phase::Serving,
        1 => Phase::Draining,
        _ => Phase::Stopping,
    }
}

/// Goes on to a later phase, and tells who watches; an earlier one changes nothing.
pub fn advance(to: Phase) {
    PHASE.fetch_max(to as u8, Ordering::Relaxed);
    wake();
}

/// Begins anew: for a process that was just forked, and for tests.
pub fn reset() {
    PHASE.store(Phase::Serving as u8, Ordering::Relaxed);
    for watcher in &WATCHERS {
        watcher.store(-1, Ordering::Relaxed);
    }
}

/// How often logs were asked to be opened anew (`USR1`).
pub fn reopened() -> u32 {
    REOPENED.load(Ordering::Relaxed)
}

/// An eventfd that is written at every change of phase, and at `USR1`, as long as this value lives.
#[derive(Debug)]
pub struct Watch {
    place: usize,
    /// Never closed: a signal that is being handled may still write to it.
    event: ManuallyDrop<EventFd>,
}

impl Watch {
    /// Asks to be told; of a change that has been, at once.
    ///
    /// # Errors
    /// When the process has no descriptor left, or [`MOST_WATCHERS`] watch already.
    pub fn new() -> io::Result<Watch> {
        let event = ManuallyDrop::new(EventFd::new()?);
        let number = event.number();
        let free = WATCHERS.iter().position(|place| {
            place.compare_exchange(-1, number, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        });
        match free {
            Some(place) => {
                // A signal sets the phase and then looks for who watches: one of both sees the other.
                fence(Ordering::SeqCst);
                if phase() != Phase::Serving {
                    event.signal();
                }
                Ok(Watch { place, event })
            }
            None => Err(io::Error::other("too many workers in one process")),
        }
    }

    /// The eventfd.
    pub fn event(&self) -> &EventFd {
        &self.event
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Only where it is still ours: `reset` may have given the place away.
        let ours = self.event.number();
        let _ = WATCHERS[self.place].compare_exchange(ours, -1, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Lets signals steer this process as a worker: `QUIT` and `TERM` drain, `INT` stops, `USR1` opens logs
/// anew, `HUP` means nothing (the supervisor's business), a broken pipe and a file at its limit are errors and
/// no signals.
///
/// # Errors
/// What `sigaction(2)` says.
pub fn install_worker_signals() -> io::Result<()> {
    for signal in [libc::SIGQUIT, libc::SIGTERM, libc::SIGINT, libc::SIGUSR1] {
        install(signal, on_signal as *const () as libc::sighandler_t)?;
    }
    for signal in [libc::SIGHUP, libc::SIGPIPE, libc::SIGXFSZ] {
        install(signal, libc::SIG_IGN)?;
    }
    unblock_all()
}

fn install(signal: libc::c_int, handler: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: all-zero bytes are a valid sigaction: no flags (a waiting call ends with EINTR), empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    // SAFETY: `action` is initialised and outlives the call; the old action is not asked for.
    let result = unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn unblock_all() -> io::Result<()> {
    // SAFETY: all-zero bytes are an empty signal set on Linux.
    let none: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `none` outlives the call; the old mask is not asked for.
    let result = unsafe { libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

extern "C" fn on_signal(signal: libc::c_int) {
    match signal {
        libc::SIGUSR1 => {
            REOPENED.fetch_add(1, Ordering::Relaxed);
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

/// Async-signal-safe: atomics and `write(2)`, with errno as it was.
fn wake() {
    fence(Ordering::SeqCst);
    // SAFETY: errno is this thread's own; it is read and written back as it was.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    for watcher in &WATCHERS {
        let number = watcher.load(Ordering::Relaxed);
        if number >= 0 {
            let one = 1u64.to_ne_bytes();
            // SAFETY: `one` is 8 readable bytes. The descriptor is an eventfd of `Watch`, which is never closed.
            unsafe { libc::write(number, one.as_ptr().cast(), one.len()) };
        }
    }
    // SAFETY: as above.
    unsafe { *errno = before };
}
