//! The state of revivals of listening sockets: see [`super::revive`].

use std::collections::HashSet;
use std::time::Instant;

use tenfold_sys::socket::{AcceptMode, ListenAddress};

/// The state of revivals.
#[derive(Debug, Default)]
pub(super) struct Revival {
    /// When sockets are looked at again, after a pause.
    pub(super) again: Option<Instant>,
    /// Whether workers need the sockets that took the place of theirs.
    pub(super) renews: bool,
    /// Addresses whose revival and failure were reported.
    pub(super) reported: HashSet<(ListenAddress, bool)>,
    /// How `accept` waits on sockets that several workers have, since the first workers serve. Later ones set the same:
    /// a state that is read again could be one that an intruder has left.
    pub(super) modes: Vec<AcceptMode>,
    /// When they are compared next, while there are any.
    pub(super) look: Option<Instant>,
}

impl Revival {
    /// When there is something to do.
    pub(super) fn by(&self) -> Option<Instant> {
        [self.again, self.look].into_iter().flatten().min()
    }
}
