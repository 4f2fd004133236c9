//! The sources of work other than connections: accepts on the listening sockets, and the eventfds.

use std::time::Duration;

use tenfold_http::{Instant, clock};
use tenfold_sys::completion::Completion;
use tenfold_sys::errno;
use tenfold_sys::eventfd::EventFd;
use tenfold_sys::failure::{AfterAccept, after_accept};
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::{Listener, Socket};

use super::ring::OperationQueue;
use super::tag::{OperationKind, tag};
use crate::plan::choice::Accept;
use crate::protocol::{Event, Protocol};
use crate::worker::handoff::{AcceptedConnection, Handoff};
use crate::worker::inbox::Inbox;
use crate::worker::intake::Intake;
use crate::worker::shortage::EXHAUSTED_PAUSE;
use crate::worker::slots::Key;

const LIFECYCLE: u32 = 0xffff_fffd;
const INBOX: u32 = 0xffff_fffe;
const HANDED: u32 = 0xffff_fffc;

pub(super) struct Sources<'a> {
    listeners: &'a [Listener],
    handed: Option<&'a Handoff>,
    /// Whether each accept yields a single connection and is then started again.
    one: bool,
    /// The listeners with an accept in flight.
    accepting: Vec<bool>,
    /// The time at which accepting resumes after descriptors ran out.
    resumes: Instant,
    /// The time of the next renewal of the accepts; `pause` is the interval after it.
    renews: Instant,
    pause: Duration,
    left: bool,
}

/// The first interval between renewals of the accepts; it doubles up to [`LAST_PAUSE`].
///
/// A connection wakes only one of the rings that wait on its socket. That ring may belong to a stuck worker, or to a
/// worker that has just ended and whose ring the kernel has not destroyed yet. Renewed accepts find such connections.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(4);

fn source(place: u32) -> u64 {
    tag(OperationKind::Source, Key { index: place, epoch: 0 })
}

impl<'a> Sources<'a> {
    pub(super) fn new(intake: &Intake<'a>, accept: Accept) -> Sources<'a> {
        let Intake { listeners, handed, .. } = *intake;
        Sources {
            listeners,
            handed,
            one: accept == Accept::One,
            accepting: vec![false; listeners.len()],
            resumes: Instant::NEVER,
            renews: clock::now() + FIRST_PAUSE,
            pause: FIRST_PAUSE,
            left: false,
        }
    }

    pub(super) fn open(&mut self, ring: &mut impl OperationQueue, lifecycle: &EventFd, inbox: &EventFd) {
        ring.poll_read(lifecycle.number(), source(LIFECYCLE));
        ring.poll_read(inbox.number(), source(INBOX));
        if let Some(handed) = self.handed {
            ring.poll_read(handed.event().number(), source(HANDED));
        }
        self.accept(ring);
    }

    /// The next connection from the accepting thread.
    pub(super) fn next_handed(&self) -> Option<AcceptedConnection> {
        self.handed.and_then(Handoff::take)
    }

    /// Whether connections may still arrive although listening has ended: a cancelled accept may have succeeded.
    pub(super) fn expects(&self) -> bool {
        self.accepting.contains(&true) || self.handed.is_some_and(|handed| !handed.is_over())
    }

    fn accept(&mut self, ring: &mut impl OperationQueue) {
        self.resumes = Instant::NEVER;
        for ((listener, accepting), place) in self.listeners.iter().zip(&mut self.accepting).zip(0..) {
            if !std::mem::replace(accepting, true) {
                match self.one {
                    true => ring.accept_one(listener.number(), source(place)),
                    false => ring.accept(listener.number(), source(place)),
                }
            }
        }
    }

    /// The end of the pause, if accepting pauses.
    pub(super) fn resumes(&self) -> Instant {
        self.resumes.min(self.renews)
    }

    pub(super) fn resume(&mut self, ring: &mut impl OperationQueue, now: Instant) {
        if now >= self.resumes && !self.left {
            self.accept(ring);
        }
        if now >= self.renews {
            self.pause = (self.pause * 2).min(LAST_PAUSE);
            let over = self.left || self.listeners.is_empty();
            self.renews = if over { Instant::NEVER } else { now + self.pause };
            if !self.left {
                self.cancel(ring);
            }
        }
    }

    fn cancel(&self, ring: &mut impl OperationQueue) {
        for (listener, place) in self.listeners.iter().zip(0..) {
            ring.cancel_accept(
                listener.number(),
                source(place),
                tag(OperationKind::Cancel, Key { index: u32::MAX, epoch: 0 }),
            );
        }
    }

    /// Stops accepting permanently.
    pub(super) fn leave(&mut self, ring: &mut impl OperationQueue) {
        if !std::mem::replace(&mut self.left, true) {
            self.cancel(ring);
        }
    }

    /// Handles the completion of an accept or a poll. Returns a connection and its listener.
    #[allow(clippy::too_many_arguments, reason = "what a turn of the loop has, each used once")]
    pub(super) fn completed<R: OperationQueue, P: Protocol>(
        &mut self,
        ring: &mut R,
        place: u32,
        completion: Completion<R::Buffer>,
        now: Instant,
        protocol: &P,
        watch: &lifecycle::PhaseWatch,
        inbox: &Inbox,
    ) -> Result<Option<(Socket, u16)>, String> {
        let event = match place {
            LIFECYCLE => Some(watch.event()),
            INBOX => Some(inbox.event()),
            HANDED => self.handed.map(Handoff::event),
            _ => None,
        };
        if let Some(event) = event {
            event.clear();
            if !completion.more {
                ring.poll_read(event.number(), source(place));
            }
            return Ok(None);
        }
        if !completion.more {
            self.accepting[place as usize] = false;
        }
        if completion.result < 0 {
            self.failed(ring, place, completion.result, now, protocol)?;
        } else if !completion.more && !self.left {
            self.accept(ring);
        }
        Ok(completion.socket.map(|socket| (socket, place as u16)))
    }

    fn failed<P: Protocol>(
        &mut self,
        ring: &mut impl OperationQueue,
        place: u32,
        result: i32,
        now: Instant,
        protocol: &P,
    ) -> Result<(), String> {
        let error = std::io::Error::from_raw_os_error(-result);
        if self.left || lifecycle::phase() != Phase::Serving {
            return Ok(());
        }
        match after_accept(&error) {
            _ if -result == errno::ECANCELED => self.accept(ring),
            AfterAccept::Again => self.accept(ring),
            AfterAccept::Wait | AfterAccept::Pause => {
                protocol.observe(Event::Exhausted);
                self.resumes = now + EXHAUSTED_PAUSE;
            }
            AfterAccept::GiveUp => {
                return Err(format!(
                    "cannot accept on {}: {error}",
                    self.listeners[place as usize].address()
                ));
            }
        }
        Ok(())
    }
}
