//! How a worker's connections do I/O: the part of a worker that there is more than one of.

use std::io;

use super::Worker;
use crate::share::Share;

/// Connects, sends, receives and waits for the connections of a worker. It tells what happens to
/// [`Worker::begun`], [`Worker::connected`], [`Worker::not_connected`], [`Worker::received`] and
/// [`Worker::lose`]; everything that follows from it is the worker's.
pub(crate) trait Io: Sized {
    /// Places that are served between two waits at most, so that answers are read in between.
    const BURST: usize;

    /// For the places of `share`.
    ///
    /// # Errors
    /// What the system says.
    fn new(share: &Share<'_>) -> io::Result<Self>;

    /// Begins to connect a place that is closed.
    ///
    /// # Errors
    /// When that can not even be begun; `WouldBlock` where it is to be tried again soon.
    fn open(worker: &mut Worker<'_, Self>, number: u32) -> io::Result<()>;

    /// Goes on with the connections that were begun since it was called last.
    fn go_on(_worker: &mut Worker<'_, Self>) {}

    /// Sends what a connection has to send, as far as that goes now.
    fn flush(worker: &mut Worker<'_, Self>, number: u32);

    /// A slow connection, which rested, goes on. Who has none never lets one rest.
    fn resume(_worker: &mut Worker<'_, Self>, _number: u32) {}

    /// What can be done at the begin of a turn without waiting.
    fn begin_turn(_worker: &mut Worker<'_, Self>) {}

    /// Whether the next wait may take time.
    fn may_rest(&self) -> bool {
        true
    }

    /// Waits for at most so many nanoseconds, and does what can be done then.
    ///
    /// # Errors
    /// What the system says.
    fn wait(worker: &mut Worker<'_, Self>, nanoseconds: u64) -> io::Result<()>;

    /// A connection is closed: nothing that is heard of it any more is meant.
    fn closed(&mut self, _number: u32) {}
}
