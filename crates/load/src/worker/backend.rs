//! The interface between a worker and its I/O, which has several implementations.

use std::io;

use crate::worker::share::Share;
use crate::worker::state::LoadWorker;

/// The I/O of a worker's connections. It reports events to [`LoadWorker::connect_begun`], [`LoadWorker::connected`],
/// [`LoadWorker::not_connected`], [`LoadWorker::received`] and [`LoadWorker::close_failed`]; the worker decides how to
/// continue.
pub(crate) trait Backend: Sized {
    /// The most slots that are served between two waits, so that responses are read in between.
    const BURST: usize;

    /// Creates the backend for the slots of `share`.
    fn new(share: &Share<'_>) -> io::Result<Self>;

    /// Begins the connect of a closed slot.
    ///
    /// # Errors
    /// The system's error, if the connect cannot begin; `WouldBlock` asks for a retry.
    fn open(worker: &mut LoadWorker<'_, Self>, number: u32) -> io::Result<()>;

    /// Continues with the connections begun since the last call.
    fn finish_begun(_worker: &mut LoadWorker<'_, Self>) {}

    /// Sends unsent requests, as far as possible without waiting.
    fn flush(worker: &mut LoadWorker<'_, Self>, number: u32);

    /// Resumes a slow connection that was paused. A backend without slow connections never pauses one.
    fn resume(_worker: &mut LoadWorker<'_, Self>, _number: u32) {}

    /// Does the work of a tick that precedes the wait.
    fn begin_tick(_worker: &mut LoadWorker<'_, Self>) {}

    /// Whether the next wait may block.
    fn may_block(&self) -> bool {
        true
    }

    /// Waits for at most `nanoseconds`, then handles the events.
    fn wait(worker: &mut LoadWorker<'_, Self>, nanoseconds: u64) -> io::Result<()>;

    /// Ignores later events of a closed connection.
    fn closed(&mut self, _number: u32) {}
}
