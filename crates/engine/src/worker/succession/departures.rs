//! The connections of a leaving worker. Each moves to its heir as soon as it is idle.

use std::time::Duration;

use tenfold_http::{Connection, Instant, Local, Peer, clock};
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Socket;

use super::message::MovedConnection;
use super::pair::{Sent, Succession};
use crate::protocol::{Event, Protocol};
use crate::worker::slots::{Key, SlotState};
use crate::worker::tick::Tick;

/// The most connections that move in one tick.
const BATCH: usize = 64;
/// The pause while the queue to the heir is full, and while the heir is.
const BUSY_PAUSE: Duration = Duration::from_millis(10);
const REFUSED_PAUSE: Duration = Duration::from_secs(1);
/// The time after which responses announce the close of connections that could not move yet.
const LONGEST_HANDOVER: Duration = Duration::from_secs(10);

/// The sending side of a loop.
pub(crate) struct Departures<'a> {
    succession: Option<&'a Succession>,
    /// Connections that may be idle.
    idle: Vec<Key>,
    /// The end of the time in which responses do not announce a close; none until the worker leaves.
    keeps_until: Option<Instant>,
    paused_until: Instant,
    /// The time of the next step without an event.
    pub(crate) wakes: Instant,
}

/// Whether a connection can move now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quiet {
    /// No operation is in flight.
    Yes,
    /// The loop waits for operations in flight.
    Soon,
    /// It is closed or served.
    Never,
}

/// A loop that hands its connections over.
pub(crate) trait Departing<'a>: Tick {
    type Protocol: Protocol<State = Self::Memory>;

    fn departures(&mut self) -> &mut Departures<'a>;

    fn protocol(&self) -> &'a Self::Protocol;

    /// Ends the operations in flight of connection `key`, which is idle.
    fn quiet(&mut self, key: Key) -> Quiet;

    /// Connection `key` stays here: starts again what [`Departing::quiet`] ended.
    fn stay(&mut self, key: Key);

    /// Drops connection `key`, whose socket has another owner now.
    fn let_go(&mut self, key: Key);

    /// Moves connections that are idle, at most one batch.
    fn depart(&mut self) {
        let Some(heir) = self.departures().succession else { return settle() };
        let now = clock::now();
        if !heir.is_open() {
            self.departures().end().into_iter().for_each(|key| self.stay(key));
            return settle();
        }
        if self.departures().keeps_until.is_none() {
            let idle = self.parts().connections.keys(|slot| slot.state == SlotState::Parked);
            let departures = self.departures();
            (departures.idle, departures.keeps_until) = (idle, Some(now + LONGEST_HANDOVER));
        }
        // A client that never pauses is told to close.
        let by = self.departures().keeps_until.unwrap_or(now);
        if by <= now {
            settle();
        }
        if now < self.departures().paused_until {
            return;
        }
        self.departures().wakes = if by > now { by } else { Instant::NEVER };
        let (mut keys, mut left) = (std::mem::take(&mut self.departures().idle), BATCH);
        keys.retain(|&key| {
            if left == 0 {
                return true;
            }
            match self.offer(key, heir) {
                Offered::Moved => left -= 1,
                Offered::Stays => self.stay(key),
                Offered::Waits => return true,
                Offered::Paused(pause) => {
                    self.stay(key);
                    self.departures().paused_until = now + pause;
                    left = 0;
                    return true;
                }
            }
            false
        });
        let departures = self.departures();
        if left == 0 {
            departures.wakes = departures.wakes.min(departures.paused_until.max(now));
        }
        departures.idle.append(&mut keys);
        // A connection that stays is listed again whenever its receive ends.
        departures.idle.sort_unstable_by_key(|key| key.word());
        departures.idle.dedup();
        if !self.departures().wants_quiet() {
            let waiting = self.departures().idle.clone();
            waiting.into_iter().for_each(|key| self.stay(key));
        }
    }

    fn offer(&mut self, key: Key, heir: &Succession) -> Offered {
        let protocol = self.protocol();
        let Some(slot) = self.parts().connections.find(key) else { return Offered::Stays };
        let (Peer::Internet(_), SlotState::Parked) = (slot.peer(), slot.state) else { return Offered::Stays };
        // An heir takes over nothing else. A passed socket may be one of MPTCP.
        if !slot.socket.as_ref().is_some_and(Socket::is_tcp) {
            return Offered::Stays;
        }
        let connection = Connection::plaintext(slot.peer(), Local { listener: slot.listener });
        let Some(state) = protocol.hand_over(&connection, &slot.memory) else { return Offered::Stays };
        match self.quiet(key) {
            Quiet::Yes => {}
            Quiet::Soon => return Offered::Waits,
            Quiet::Never => return Offered::Stays,
        }
        let Some(slot) = self.parts().connections.find(key) else { return Offered::Stays };
        let Some(socket) = &slot.socket else { return Offered::Stays };
        let remaining = slot.deadline.since(clock::now());
        let moved = MovedConnection {
            era: heir.generation.era,
            listener: slot.listener,
            served: slot.served,
            remaining,
            state,
        };
        match heir.send(socket, &moved) {
            Sent::Moved => {
                let peer = slot.peer();
                protocol.on_close(|| peer);
                self.let_go(key);
                protocol.observe(Event::HandedOver);
                Offered::Moved
            }
            Sent::Busy => Offered::Paused(BUSY_PAUSE),
            Sent::Refused => {
                settle();
                Offered::Paused(REFUSED_PAUSE)
            }
        }
    }
}

/// The result of an attempt to move a connection.
pub(crate) enum Offered {
    Moved,
    /// It cannot move, or it is not idle.
    Stays,
    /// Operations are in flight.
    Waits,
    /// The heir takes none for this long.
    Paused(Duration),
}

/// From now on, responses announce the close of connections that are still here.
fn settle() {
    if lifecycle::phase() == Phase::HandingOver {
        lifecycle::advance(Phase::Retiring);
    }
}

impl<'a> Departures<'a> {
    pub(crate) fn new(succession: Option<&'a Succession>) -> Departures<'a> {
        Departures {
            succession,
            idle: Vec::new(),
            keeps_until: None,
            paused_until: Instant(0),
            wakes: Instant::NEVER,
        }
    }

    /// None moves from now on. Returns those that were going to, which may wait for nothing yet.
    pub(crate) fn end(&mut self) -> Vec<Key> {
        (self.succession, self.wakes) = (None, Instant::NEVER);
        std::mem::take(&mut self.idle)
    }

    /// Connection `key` is idle now.
    #[inline]
    pub(crate) fn rest(&mut self, key: Key) {
        if self.keeps_until.is_some() && self.succession.is_some() {
            self.idle.push(key);
        }
    }

    /// Whether a connection that becomes idle moves soon, so that nothing need be started for it.
    pub(crate) fn wants_quiet(&self) -> bool {
        self.keeps_until.is_some() && self.succession.is_some() && self.paused_until <= clock::now()
    }
}
