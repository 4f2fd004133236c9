//! The state of revivals of listening sockets: see [`super::revive`].

use std::collections::HashSet;
use std::time::Instant;

use tenfold_sys::socket::ListenAddress;

/// The state of revivals.
#[derive(Debug, Default)]
pub(super) struct Revival {
    /// The end of the pause before sockets are checked again.
    pub(super) again: Option<Instant>,
    /// The first generation whose workers have the exchanged sockets. None once one that has them serves.
    pub(super) renewed_by: Option<u32>,
    /// Addresses whose revival and failure were reported.
    pub(super) reported: HashSet<(ListenAddress, bool)>,
}
