//! The state of revivals of listening sockets: see [`super::revive`].

use std::collections::HashSet;
use std::time::Instant;

use tenfold_sys::socket::{AcceptMode, ListenAddress};

/// The state of revivals.
#[derive(Debug, Default)]
pub(super) struct Revival {
    /// The end of the pause before sockets are checked again.
    pub(super) again: Option<Instant>,
    /// Whether workers must be replaced to get exchanged sockets.
    pub(super) renews: bool,
    /// Addresses whose revival and failure were reported.
    pub(super) reported: HashSet<(ListenAddress, bool)>,
    /// The mode of `accept` on shared sockets, as the first workers set it. Later workers set the same. The mode is not
    /// read again, because an intruder could have changed it.
    pub(super) modes: Vec<AcceptMode>,
    /// The time of the next comparison, if there are shared sockets.
    pub(super) look: Option<Instant>,
}

impl Revival {
    /// Returns the time of the next action.
    pub(super) fn by(&self) -> Option<Instant> {
        [self.again, self.look].into_iter().flatten().min()
    }
}
