//! Accepting: all waiting connections, one batch per tick, with a pause when descriptors run out. With `accept one`,
//! one connection per event of a level-triggered listener.

use tenfold_http::Instant;
use tenfold_sys::failure::{AfterAccept, after_accept, is_shortage};
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Listener;

use super::selector::Selector;
use crate::plan::choice::Accept;
use crate::protocol::{Event, Protocol};
use crate::worker::handoff::{AcceptedConnection, Handoff};
use crate::worker::intake::Intake;
use crate::worker::shortage::EXHAUSTED_PAUSE;
use crate::worker::slots::Key;

/// The most connections accepted in one tick, so that a flood of new ones does not starve the others.
const BATCH: usize = 256;

/// The words of registrations that are not connections, beyond every slot number.
pub(super) const FIRST_SPECIAL: u32 = 0xffff_0000;
pub(super) const INBOX: u32 = 0xffff_fffe;
pub(super) const LIFECYCLE: u32 = 0xffff_fffd;
pub(super) const HANDED: u32 = 0xffff_fffc;

pub(super) fn special(place: u32) -> u64 {
    Key { index: place, epoch: 0 }.word()
}

/// The time of [`Acceptor::due`] if connections may wait.
pub(super) const AT_ONCE: Instant = Instant(0);

/// The source of a worker's connections: its listening sockets, or the thread that accepts for it.
pub(crate) struct Acceptor<'a> {
    listeners: &'a [Listener],
    handed: Option<&'a Handoff>,
    /// The time of the next accept: [`AT_ONCE`], or the end of a pause.
    pub(super) due: Instant,
    /// Whether the accepting thread may have queued connections.
    handed_ready: bool,
    /// The listeners that may have waiting connections.
    ready: Vec<bool>,
    /// The time at which accepting resumes after descriptors or memory ran out.
    resumes: Instant,
    open: bool,
    left: usize,
    /// Whether to accept only one connection per event of a listener.
    one: bool,
}

impl<'a> Acceptor<'a> {
    pub(crate) fn new(intake: &Intake<'a>, accept: Accept) -> Acceptor<'a> {
        let Intake { listeners, handed, .. } = *intake;
        let ready = vec![false; listeners.len()];
        let (resumes, handed_ready) = (Instant::NEVER, false);
        Acceptor {
            listeners,
            handed,
            due: Instant::NEVER,
            handed_ready,
            ready,
            resumes,
            open: false,
            left: BATCH,
            one: accept == Accept::One,
        }
    }

    /// Registers the sources.
    pub(crate) fn begin<P: Protocol>(
        &mut self,
        selector: &mut dyn Selector,
        now: Instant,
        protocol: &P,
    ) -> Result<(), String> {
        if let Some(handed) = self.handed {
            let watched = selector.watch_source(handed.event().number(), special(HANDED));
            watched.map_err(|error| format!("cannot watch for connections: {error}"))?;
        }
        self.open(selector, now, protocol)
    }

    fn open<P: Protocol>(
        &mut self,
        selector: &mut dyn Selector,
        now: Instant,
        protocol: &P,
    ) -> Result<(), String> {
        self.open = true;
        for (listener, place) in self.listeners.iter().zip(FIRST_SPECIAL..) {
            let watched = listener
                .set_nonblocking(true)
                .and_then(|()| selector.watch_source(listener.number(), special(place)));
            match watched {
                Ok(()) => {}
                Err(error) if is_shortage(&error) => {
                    self.pause(selector, now, protocol);
                    return Ok(());
                }
                Err(error) => return Err(format!("cannot watch {}: {error}", listener.address())),
            }
        }
        (self.due, self.resumes) = (AT_ONCE, Instant::NEVER);
        // Connections that already wait are reported, also with edge triggering.
        self.ready.fill(true);
        Ok(())
    }

    /// Stops accepting for a while: a level-triggered listener would make the loop spin meanwhile.
    fn pause<P: Protocol>(&mut self, selector: &mut dyn Selector, now: Instant, protocol: &P) {
        protocol.observe(Event::Exhausted);
        self.close(selector);
        self.resumes = now + EXHAUSTED_PAUSE;
        self.due = self.due.min(self.resumes);
    }

    /// Ends the registrations; waiting connections are left to the workers that share the sockets.
    pub(crate) fn close(&mut self, selector: &mut dyn Selector) {
        if std::mem::take(&mut self.open) {
            self.listeners.iter().for_each(|listener| selector.forget(listener.number()));
        }
        self.ready.fill(false);
        self.resumes = Instant::NEVER;
        self.due = if self.handed_ready { AT_ONCE } else { Instant::NEVER };
    }

    /// The accepting thread may have queued connections.
    pub(crate) fn handed(&mut self) {
        if let Some(handed) = self.handed {
            handed.event().clear();
            (self.handed_ready, self.due) = (true, AT_ONCE);
        }
    }

    /// Whether connections may still arrive although listening has ended.
    pub(crate) fn expects(&self) -> bool {
        self.handed.is_some_and(|handed| !handed.is_over())
    }

    /// Listener `place` has connections waiting.
    pub(crate) fn ready(&mut self, place: usize) {
        if self.open {
            (self.ready[place], self.due) = (true, AT_ONCE);
        }
    }

    /// Begins a batch, and ends a pause that has expired.
    pub(crate) fn resume<P: Protocol>(
        &mut self,
        selector: &mut dyn Selector,
        now: Instant,
        protocol: &P,
    ) -> Result<(), String> {
        self.left = BATCH;
        if now >= self.resumes { self.open(selector, now, protocol) } else { Ok(()) }
    }

    /// The next connection; `None` if no more wait, or the batch is complete.
    pub(crate) fn next<P: Protocol>(
        &mut self,
        selector: &mut dyn Selector,
        now: Instant,
        protocol: &P,
    ) -> Result<Option<AcceptedConnection>, String> {
        while self.left > 0 {
            if let Some(handed) = self.handed.filter(|_| self.handed_ready) {
                self.left -= 1;
                match handed.take() {
                    Some(connection) => return Ok(Some(connection)),
                    None => self.handed_ready = false,
                }
            }
            let Some(place) = self.ready.iter().position(|&ready| ready) else {
                self.due = self.resumes;
                return Ok(None);
            };
            let listener = &self.listeners[place];
            let error = match listener.accept(true) {
                Ok((socket, peer)) => {
                    self.left -= 1;
                    self.ready[place] = !self.one;
                    return Ok(Some((socket, peer, u16::try_from(place).unwrap_or(u16::MAX))));
                }
                Err(error) => error,
            };
            match after_accept(&error) {
                // Failed connections count too, so that other work gets its turn.
                AfterAccept::Again => self.left -= 1,
                AfterAccept::Wait => self.ready[place] = false,
                // Sockets are shut down when the server leaves.
                _ if lifecycle::phase() != Phase::Serving => self.ready[place] = false,
                AfterAccept::Pause => {
                    self.pause(selector, now, protocol);
                    return Ok(None);
                }
                AfterAccept::GiveUp => {
                    return Err(format!("cannot accept on {}: {error}", listener.address()));
                }
            }
        }
        Ok(None)
    }
}
