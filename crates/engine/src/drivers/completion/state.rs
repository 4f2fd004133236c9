//! The driver's part of a slot.

use crate::worker::flags::flags;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Operations {
    pub(super) in_flight: InFlight,
    /// Sends in flight.
    pub(super) sending: u8,
    pub(super) past: Past,
}

flags! {
    /// Operations in flight on the socket, except sends.
    InFlight {
        /// A receive.
        RECEIVING = 0,
        /// It is a multishot receive.
        MULTISHOT = 1,
        /// The cancellation of a multishot receive, or of all waits of an idle connection.
        CANCELLING = 2,
        /// A wait for room.
        POLLING = 3,
        /// The close.
        CLOSING = 4,
    }
}

flags! {
    /// Events in the life of a connection.
    Past {
        /// The first receive, which is one-shot, has been made.
        GREETED = 0,
        /// The peer has ended its output.
        ENDED = 1,
        /// A send has failed.
        FAILED = 2,
        /// Bytes that wait in the socket must not be sent.
        RESET = 3,
        /// It was idle, and is evicted for a new connection.
        EVICTED = 4,
    }
}

impl Operations {
    /// `operations` have begun.
    pub(super) fn begin(&mut self, operations: InFlight) {
        self.in_flight = self.in_flight.with(operations);
    }

    /// `operations` have ended.
    pub(super) fn end(&mut self, operations: InFlight) {
        self.in_flight = self.in_flight.without(operations);
    }

    /// `past` has happened.
    pub(super) fn note(&mut self, past: Past) {
        self.past = self.past.with(past);
    }
}
