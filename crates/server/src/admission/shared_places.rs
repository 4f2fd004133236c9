//! Places for concurrent work of the processes of `fork`, which share no threads and no locks.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use tenfold_engine::{Engine, Plan};
use tenfold_sys::process::Pid;
use tenfold_sys::shared::SharedRows;
use tenfold_sys::task;

/// The places, in memory that all processes share.
#[derive(Debug)]
pub(crate) struct SharedPlaces {
    /// The number of the process that holds a place, or 0; and a digest of the address of its client.
    places: SharedRows,
    digests: RandomState,
}

/// A place, which is free after the drop of this value or the end of its process.
#[derive(Debug)]
pub(crate) struct SharedPlace {
    of: Arc<SharedPlaces>,
    place: usize,
}

/// The longest wait of a process for a place.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The first pause between the attempts of a process, and the longest: many processes may wait.
const PAUSES: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(80)];

impl SharedPlaces {
    /// Returns memory for this number of places; `None` if the engine starts no process for each connection.
    pub(crate) fn of(plan: &Plan, places: usize) -> io::Result<Option<Arc<SharedPlaces>>> {
        (plan.engine == Engine::Fork).then(|| SharedPlaces::new(places.max(1))).transpose()
    }

    fn new(places: usize) -> io::Result<Arc<SharedPlaces>> {
        let places = SharedRows::new(2, places)?;
        Ok(Arc::new(SharedPlaces { places, digests: RandomState::new() }))
    }

    /// Waits for a place for this process; `None` if no place becomes free in time.
    pub(crate) fn wait(self: &Arc<Self>, address: &str) -> Option<SharedPlace> {
        let (until, [mut pause, longest]) = (Instant::now() + LONGEST_WAIT, PAUSES);
        loop {
            match self.begin(address) {
                None if Instant::now() < until => thread::sleep(pause),
                place => return place.map(|place| SharedPlace { of: Arc::clone(self), place }),
            }
            pause = (2 * pause).min(longest);
        }
    }

    /// Takes a place for this process; `None` if all are taken, or half of them for this address. The place of an ended
    /// process is free.
    fn begin(&self, address: &str) -> Option<usize> {
        let (own, digest) = (u64::from(std::process::id()), self.digests.hash_one(address));
        let (holders, addresses) = (self.places.row(0), self.places.row(1));
        let is_free =
            |holder: u64| i32::try_from(holder).ok().and_then(Pid::from_raw).is_none_or(task::is_gone);
        let is_same = |place: &usize| {
            addresses[*place].load(Ordering::SeqCst) == digest
                && !is_free(holders[*place].load(Ordering::SeqCst))
        };
        if (0..holders.len()).filter(is_same).count() >= holders.len().div_ceil(2) {
            return None;
        }
        let place = holders.iter().position(|word| {
            let holder = word.load(Ordering::SeqCst);
            is_free(holder) && word.compare_exchange(holder, own, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        })?;
        addresses[place].store(digest, Ordering::SeqCst);
        Some(place)
    }

    fn end(&self, place: usize) {
        self.places.row(0)[place].store(0, Ordering::SeqCst);
    }
}

impl Drop for SharedPlace {
    fn drop(&mut self) {
        self.of.end(self.place);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn h85_processes_do_a_bounded_amount_of_work_at_once() {
        let running = SharedPlaces::new(4).expect("memory");
        let [first, second, third] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
        assert_eq!((running.begin(first), running.begin(first)), (Some(0), Some(1)));
        assert_eq!(running.begin(first), None, "an address has half of the places");
        assert_eq!((running.begin(second), running.begin(third)), (Some(2), Some(3)));
        assert_eq!(running.begin(third), None, "all are taken");
        running.end(0);
        assert_eq!(running.begin(third), Some(0));
        let mut gone = Command::new("true").spawn().expect("a program that does nothing");
        gone.wait().expect("our own child");
        running.places.row(0)[1].store(gone.id().into(), Ordering::SeqCst);
        let place = running.wait(second).expect("a process that has ended keeps no place");
        assert_eq!(place.place, 1);
        drop(place);
        assert_eq!(running.begin(first), Some(1));
    }
}
