//! The I/O of a worker's connections: the part of a worker that has several implementations.

use std::io;

use crate::worker::share::Share;
use crate::worker::state::LoadWorker;

/// Connects, sends, receives and waits for the connections of a worker. It reports events to [`LoadWorker::begun`],
/// [`LoadWorker::connected`], [`LoadWorker::not_connected`], [`LoadWorker::received`] and [`LoadWorker::close_failed`]; the worker decides
/// what follows from them.
pub(crate) trait Backend: Sized {
    /// The most slots that are served between two waits, so that responses are read in between.
    const BURST: usize;

    /// Creates the backend for the slots of `share`.
    ///
    /// # Errors
    /// The system's error.
    fn new(share: &Share<'_>) -> io::Result<Self>;

    /// Begins to connect a slot that is closed.
    ///
    /// # Errors
    /// The connect could not be begun; `WouldBlock` if it should be tried again soon.
    fn open(worker: &mut LoadWorker<'_, Self>, number: u32) -> io::Result<()>;

    /// Continues with the connections that were begun since the last call.
    fn finish_begun(_worker: &mut LoadWorker<'_, Self>) {}

    /// Sends the connection's unsent requests, as far as it can without waiting.
    fn flush(worker: &mut LoadWorker<'_, Self>, number: u32);

    /// Resumes a slow connection that was paused. A backend without slow connections never pauses one.
    fn resume(_worker: &mut LoadWorker<'_, Self>, _number: u32) {}

    /// Does the work at the start of a tick that needs no wait.
    fn begin_tick(_worker: &mut LoadWorker<'_, Self>) {}

    /// Whether the next wait may block.
    fn may_block(&self) -> bool {
        true
    }

    /// Waits for at most `nanoseconds`, then handles the events.
    ///
    /// # Errors
    /// The system's error.
    fn wait(worker: &mut LoadWorker<'_, Self>, nanoseconds: u64) -> io::Result<()>;

    /// Forgets a connection that was closed: its later events are ignored.
    fn closed(&mut self, _number: u32) {}
}
