//! `uring`: operations are handed to `io_uring` in batches, once a turn, and come back done.
//!
//! Connections are accepted by one multishot accept a listener. The first receive of a connection is
//! one-shot; from then on one multishot receive brings bytes in buffers that the kernel picks from a ring.
//! A response is one send. What arrives, leaves and closes in a turn costs one `io_uring_enter(2)`; a new
//! connection costs a `getpeername(2)` beside it, because a multishot accept does not tell whom it accepted.
//! The ring has no sendfile operation: for large files it waits for room to write, and `sendfile(2)` is
//! called.

use tenfold_sys::uring::Ring;

use super::Intake;
use crate::driver::completion::{SIZES, serve};
use crate::plan::{Plan, Sender};
use crate::protocol::Protocol;
use crate::table::Facility;

/// Serves until the server leaves.
pub(crate) fn run<P: Protocol>(plan: &Plan, intake: &Intake<'_>, protocol: &P) -> Result<(), String> {
    let listeners = if let Intake::Listeners(listeners) = intake { listeners } else { &[][..] };
    for listener in listeners {
        // The ring waits for what would block; a descriptor that says it never does is given EAGAIN.
        let set = listener.set_nonblocking(false);
        set.map_err(|error| format!("cannot watch {}: {error}", listener.address()))?;
    }
    if plan.sender == Sender::Zerocopy && !Ring::sends_held().is_ok_and(|held| held) {
        return Err("sender zerocopy needs IORING_OP_SEND_ZC that reports what was copied (Linux 6.2)".into());
    }
    serve(plan, intake, protocol)
}

/// What is missing on this kernel, with what the system said.
pub(crate) fn probe() -> Vec<(Facility, String)> {
    match Ring::new(SIZES) {
        Ok(_) => Vec::new(),
        Err((_, error)) => vec![(Facility::Ring, error.to_string())],
    }
}
