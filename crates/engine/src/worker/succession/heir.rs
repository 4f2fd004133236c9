//! The present worker of a place: it takes over connections of former ones.

use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use tenfold_http::layer::wipe;
use tenfold_http::{Connection, Instant, Local, Peer, clock};
use tenfold_sys::messages;
use tenfold_sys::socket::Socket;

use super::message::{MOST_BYTES, MovedConnection};
use super::pair::{QUEUE, RECEIVED, SENT, Succession};
use crate::protocol::{Event, Protocol};
use crate::worker::eviction::MOST_LEAVING;

/// The receiving side of a loop.
pub(crate) struct Heir<'a> {
    succession: Option<&'a Succession>,
    /// Whether messages may wait.
    pub(crate) pending: bool,
    /// The number of messages when it last looked.
    seen: u64,
    /// The room of the loop when it was last known here.
    pub(crate) room: usize,
    /// The part of it that former workers were told of.
    told: u64,
    /// Whether a message came that no worker sends unless it is compromised. Its descriptors were closed, which may have
    /// taken long, so there must be no further ones.
    spoiled: bool,
}

/// A connection that was taken over.
pub(crate) struct Inherited<T> {
    pub(crate) socket: Socket,
    pub(crate) peer: SocketAddr,
    pub(crate) listener: u16,
    pub(crate) served: bool,
    pub(crate) deadline: Instant,
    pub(crate) memory: T,
}

impl<'a> Heir<'a> {
    /// The receiving side of a loop with room for `room` connections.
    pub(crate) fn new(succession: Option<&'a Succession>, room: usize) -> Heir<'a> {
        let pending = succession.is_some();
        let mut heir = Heir { succession, pending, seen: 0, room, told: u64::MAX, spoiled: false };
        heir.tell_room(room);
        heir
    }

    /// The descriptor that is readable when messages have come.
    pub(crate) fn number(&self) -> Option<RawFd> {
        self.succession.map(Succession::receiver)
    }

    /// Messages have come.
    pub(crate) fn ready(&mut self) {
        self.pending = self.succession.is_some();
    }

    /// Looks whether messages have come, for a loop that does not wait for the descriptor.
    pub(crate) fn look(&mut self) {
        self.pending |=
            self.succession.is_some_and(|own| own.word(SENT).load(Ordering::Acquire) != self.seen);
    }

    /// Tells former workers how many more connections there is room for.
    #[inline]
    pub(crate) fn tell_room(&mut self, room: usize) {
        self.room = room;
        let told = QUEUE.min(room as u64);
        if told != self.told {
            self.tell(told);
        }
    }

    fn tell(&mut self, room: u64) {
        self.told = room;
        if let Some(own) = self.succession {
            own.room(own.generation.number.into()).store(room, Ordering::Relaxed);
        }
    }

    /// Takes over no more. Remaining messages go to the next worker of the place.
    pub(crate) fn leave(&mut self) {
        (self.succession, self.pending) = (None, false);
    }

    /// Takes over no more if a message was malformed. Returns the descriptor of messages, to forget.
    pub(crate) fn leave_if_spoiled<P: Protocol>(&mut self, protocol: &P) -> Option<RawFd> {
        let number = self.number().filter(|_| self.spoiled)?;
        self.leave();
        protocol.observe(Event::Spoiled);
        Some(number)
    }

    /// Receives the connections that wait, one batch, until a malformed message. The loop has `count` connections of at
    /// most `bound`.
    pub(crate) fn receive<P: Protocol>(
        &mut self,
        protocol: &P,
        (count, bound): (usize, usize),
    ) -> Vec<Inherited<P::State>> {
        let mut inherited = Vec::new();
        let Some(own) = self.succession else { return inherited };
        self.seen = own.word(SENT).load(Ordering::Acquire);
        self.pending = true;
        let mut messages_received = 0;
        // Some may have been sent before accepted ones took the room.
        let most = bound.saturating_add(MOST_LEAVING).saturating_sub(count);
        let mut bytes = [0; MOST_BYTES + 1];
        while messages_received < QUEUE {
            let Ok(received) = messages::receive(&own.pair.receiver, &mut bytes) else {
                self.pending = false;
                break;
            };
            messages_received += 1;
            let moved = MovedConnection::from_bytes(&bytes[..received.length]);
            if moved.is_some() && received.lost_descriptor() {
                continue;
            }
            let moved = moved.filter(|_| received.whole);
            let (Some(moved), Some(socket)) = (moved, received.into_connection()) else {
                self.spoiled = true;
                break;
            };
            let fits = moved.era == own.generation.era && usize::from(moved.listener) < own.listeners;
            // It may have been reset on its way.
            let peer = socket.peer().ok().flatten();
            if let (true, Some(peer)) = (fits && inherited.len() < most, peer) {
                inherited.extend(take_over(protocol, moved, socket, peer));
            }
        }
        wipe(&mut bytes);
        // In this order: room is never more than there is.
        let room = bound.saturating_sub(count + inherited.len());
        self.tell_room(if self.spoiled { 0 } else { room });
        own.word(RECEIVED).fetch_add(messages_received, Ordering::Release);
        inherited
    }
}

fn take_over<P: Protocol>(
    protocol: &P,
    moved: MovedConnection,
    socket: Socket,
    peer: SocketAddr,
) -> Option<Inherited<P::State>> {
    let MovedConnection { listener, served, remaining, state, .. } = moved;
    let connection = Connection::plaintext(Peer::Internet(peer), Local { listener });
    let memory = protocol.take_over(&connection, state)?;
    protocol.adopt(&connection.peer);
    let latest = if served { protocol.next_request_by() } else { protocol.first_bytes_by() };
    let deadline = (clock::now() + remaining).min(latest);
    Some(Inherited { socket, peer, listener, served, deadline, memory })
}
