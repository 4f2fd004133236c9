//! The state of revivals of listening sockets: see [`super::revive`].

use std::collections::HashSet;
use std::time::Instant;

use tenfold_sys::socket::ListenAddress;

/// The state of revivals.
#[derive(Debug, Default)]
pub(super) struct Revival {
    /// The end of the pause before sockets are checked again.
    pub(super) again: Option<Instant>,
    /// Whether workers must be replaced to get exchanged sockets.
    pub(super) renews: bool,
    /// Addresses whose revival and failure were reported.
    pub(super) reported: HashSet<(ListenAddress, bool)>,
}
