//! Threads for work that would delay other connections.

use std::sync::Arc;

use tenfold_engine::Plan;
use tenfold_engine::offload::{OffloadPool, OffloadResult, QueueFull};

use super::places::{AddressPlace, AddressPlaces};
use super::shared_places::{SharedPlace, SharedPlaces};

/// Threads, before which a bounded number of jobs waits. With an event loop, no address has all of that queue. A blocking
/// engine works in place, where each waiting job holds its connection.
pub(crate) struct WorkLane {
    threads: OffloadPool,
    places: Option<Arc<AddressPlaces>>,
    /// With `fork`, whose processes do not share `threads`.
    shared: Option<Arc<SharedPlaces>>,
}

/// The places of a job, until it is done.
type JobPlaces = (Option<AddressPlace>, Option<SharedPlace>);

impl WorkLane {
    pub(crate) fn new(plan: &Plan, threads: usize, queue: usize) -> WorkLane {
        WorkLane {
            threads: OffloadPool::new(plan, threads, queue),
            places: (!plan.blocking()).then(|| AddressPlaces::of(queue)),
            shared: None,
        }
    }

    /// Bounds the work of all processes by `shared`.
    pub(crate) fn with_shared(self, shared: Option<Arc<SharedPlaces>>) -> WorkLane {
        WorkLane { shared, ..self }
    }

    /// Does `work` for the client at `address`, even if the client no longer waits for the result.
    ///
    /// # Errors
    /// [`QueueFull`] if the queue is full, or the part of the address, or a process waited too long for a place.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        address: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<OffloadResult<T>, QueueFull> {
        let places = self.places(address)?;
        self.threads.run(holding(places, work))
    }

    /// Like [`WorkLane::run`], but drops work whose result is no longer awaited when its turn comes.
    pub(crate) fn run_awaited<T: Send + 'static>(
        &self,
        address: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<OffloadResult<T>, QueueFull> {
        let places = self.places(address)?;
        self.threads.run_awaited(holding(places, work))
    }

    fn places(&self, address: &str) -> Result<JobPlaces, QueueFull> {
        let own = self.places.as_ref().map(|places| places.take(address).ok_or(QueueFull)).transpose()?;
        let shared = self.shared.as_ref().map(|places| places.wait(address).ok_or(QueueFull)).transpose()?;
        Ok((own, shared))
    }
}

/// The work, which holds its places until it is done.
fn holding<T>(places: JobPlaces, work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    move || {
        let _until_it_is_done = places;
        work()
    }
}
