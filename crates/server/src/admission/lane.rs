//! Threads for work that would delay other connections.

use std::sync::Arc;

use tenfold_engine::Plan;
use tenfold_engine::offload::{OffloadPool, OffloadResult, QueueFull};

use super::places::{AddressPlace, AddressPlaces};

/// Threads, before which a bounded number of jobs waits. With an event loop, no address has all of that queue. A blocking
/// engine works in place, where each waiting job holds its connection.
pub(crate) struct WorkLane {
    threads: OffloadPool,
    places: Option<Arc<AddressPlaces>>,
}

impl WorkLane {
    pub(crate) fn new(plan: &Plan, threads: usize, queue: usize) -> WorkLane {
        WorkLane {
            threads: OffloadPool::new(plan, threads, queue),
            places: (!plan.blocking()).then(|| AddressPlaces::of(queue)),
        }
    }

    /// Does `work` for the client at `address`, even if the client no longer waits for the result.
    ///
    /// # Errors
    /// [`QueueFull`] if the queue is full, or the part of the address.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        address: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<OffloadResult<T>, QueueFull> {
        let place = self.place(address)?;
        self.threads.run(holding(place, work))
    }

    /// Like [`WorkLane::run`], but drops work whose result is no longer awaited when its turn comes.
    pub(crate) fn run_awaited<T: Send + 'static>(
        &self,
        address: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<OffloadResult<T>, QueueFull> {
        let place = self.place(address)?;
        self.threads.run_awaited(holding(place, work))
    }

    fn place(&self, address: &str) -> Result<Option<AddressPlace>, QueueFull> {
        self.places.as_ref().map(|places| places.take(address).ok_or(QueueFull)).transpose()
    }
}

/// The work, which holds its place until it is done.
fn holding<T>(place: Option<AddressPlace>, work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    move || {
        let _until_it_is_done = place;
        work()
    }
}
