//! The driver's part of a slot.

use bitflags::bitflags;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Operations {
    pub(super) in_flight: InFlight,
    /// Sends in flight.
    pub(super) sending: u8,
    pub(super) past: Past,
}

bitflags! {
    /// Operations in flight on the socket, except sends.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct InFlight: u8 {
        /// A receive.
        const RECEIVING = 1 << 0;
        /// The receive is a multishot receive.
        const MULTISHOT = 1 << 1;
        /// The cancellation of a multishot receive.
        const CANCELLING = 1 << 2;
        /// A wait for room.
        const POLLING = 1 << 3;
        /// The close.
        const CLOSING = 1 << 4;
    }
}

bitflags! {
    /// Events in the life of a connection.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct Past: u8 {
        /// The first receive, which is one-shot, has been made.
        const GREETED = 1 << 0;
        /// The peer has ended its output.
        const ENDED = 1 << 1;
        /// A send has failed.
        const FAILED = 1 << 2;
        /// Bytes that wait in the socket must not be sent.
        const RESET = 1 << 3;
        /// The connection is evicted.
        const EVICTED = 1 << 4;
        /// Its output was shut down, and received bytes are discarded.
        const LINGERED = 1 << 5;
        /// It is closed because it is idle: the protocol's last bytes follow the sends in flight.
        const LEAVING = 1 << 6;
    }
}
