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
    /// How `accept` waits on sockets that several workers have, since all of them serve; and when it is looked at next.
    pub(super) modes: Option<(Vec<AcceptMode>, Instant)>,
}

impl Revival {
    /// When there is something to do.
    pub(super) fn by(&self) -> Option<Instant> {
        [self.again, self.modes.as_ref().map(|(_, look)| *look)].into_iter().flatten().min()
    }
}
