//! What the driver remembers of a connection in its slot.

use super::selector::Interest;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watch {
    /// What the selector was told to report; none if it does not know the connection.
    pub(super) interest: Option<Interest>,
    /// The peer has ended its output, which an edge-triggered mechanism says once.
    pub(super) half_closed: bool,
}
