//! Running out of descriptors or memory.

use std::io;
use std::time::Duration;

use tenfold_sys::failure::is_shortage;

use crate::protocol::{Event, Protocol};

/// The pause of a worker that ran out of descriptors before it accepts again.
pub(crate) const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);

/// Counts a wait that failed because memory ran out, and pauses so that the loop does not spin.
///
/// # Errors
/// Any other failure of a wait, unchanged.
pub(crate) fn pause_where_short<P: Protocol>(error: io::Error, protocol: &P) -> io::Result<()> {
    if !is_shortage(&error) {
        return Err(error);
    }
    protocol.observe(Event::Exhausted);
    std::thread::sleep(EXHAUSTED_PAUSE);
    Ok(())
}
