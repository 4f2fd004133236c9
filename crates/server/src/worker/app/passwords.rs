//! Passwords of basic authentication. Separate threads verify them, so that guesses delay no other work. Attempts are
//! throttled like the attempts of members.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use tenfold_accounts::ask::ClientIdentity;
use tenfold_accounts::web::counted_address;
use tenfold_accounts::{AdmittedAttempt, Throttle};
use tenfold_engine::{Engine, Plan};
use tenfold_http::{Connection, clock};
use tenfold_site::{Attempts, RealmUser, Work};
use tenfold_sys::process::Pid;
use tenfold_sys::shared::SharedRows;
use tenfold_sys::task;

use crate::admission::lane::WorkLane;
use crate::config::values::Settings;
use crate::config::values::bounds::WORK_QUEUE;

/// The verification of passwords in one process.
pub(super) struct Passwords {
    pub(super) lane: WorkLane,
    throttle: Arc<Throttle>,
    /// With `fork`, whose processes do not share the lane and the throttle.
    running: Option<Arc<RunningHashes>>,
}

/// The attempts of one client.
struct ClientAttempts {
    throttle: Arc<Throttle>,
    address: String,
    now: u64,
    admitted: RefCell<Option<AdmittedAttempt>>,
    running: Option<Arc<RunningHashes>>,
    /// This attempt's place in `running`.
    place: Cell<Option<usize>>,
}

/// Concurrent verifications by the processes of `fork`, each of which needs memory for its hash.
struct RunningHashes {
    /// The number of the process that holds a place, or 0; and a digest of the address for which it does.
    places: SharedRows,
    digests: RandomState,
}

/// The longest wait of a process for a place, and the pause between its attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

impl RunningHashes {
    fn new(places: usize) -> io::Result<RunningHashes> {
        SharedRows::new(2, places).map(|places| RunningHashes { places, digests: RandomState::new() })
    }

    /// Waits for a place for this process; `None` if no place becomes free in time.
    fn wait(&self, address: &str) -> Option<usize> {
        let until = Instant::now() + LONGEST_WAIT;
        loop {
            match self.begin(address) {
                None if Instant::now() < until => thread::sleep(PAUSE),
                place => return place,
            }
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

impl Passwords {
    /// The part of a worker that serves by `plan`.
    pub(super) fn new(plan: &Plan, settings: &Settings) -> io::Result<Passwords> {
        let shared = (plan.engine == Engine::Fork).then(|| RunningHashes::new(settings.work_threads.max(1)));
        Ok(Passwords {
            lane: WorkLane::new(plan, settings.work_threads, WORK_QUEUE),
            throttle: Arc::new(Throttle::new(settings.members.throttle)),
            running: shared.transpose()?.map(Arc::new),
        })
    }

    /// Lets attempts at a password count for the client of `connection`.
    pub(super) fn count(&self, work: Work, connection: &Connection) -> Work {
        work.counted_by(ClientAttempts {
            throttle: Arc::clone(&self.throttle),
            address: counted_address(connection),
            now: clock::now().0,
            admitted: RefCell::default(),
            running: self.running.clone(),
            place: Cell::default(),
        })
    }
}

impl Attempts for ClientAttempts {
    fn admit(&self, user: &RealmUser) -> Result<(), u64> {
        let from = ClientIdentity { address: self.address.clone(), known: user.known.clone() };
        let admitted = self.throttle.login(&from, &user.name, user.known.is_some(), self.now)?;
        // An attempt that the throttle refuses waits for no place.
        if let Some(running) = &self.running {
            let Some(place) = running.wait(&self.address) else {
                self.throttle.give_back(admitted);
                return Err(1);
            };
            self.place.set(Some(place));
        }
        self.admitted.replace(Some(admitted));
        Ok(())
    }

    fn succeeded(&self) {
        if let Some(admitted) = self.admitted.take() {
            self.throttle.succeeded(admitted);
        }
    }
}

impl Drop for ClientAttempts {
    fn drop(&mut self) {
        if let (Some(running), Some(place)) = (&self.running, self.place.take()) {
            running.end(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn h85_processes_verify_a_bounded_number_of_passwords_at_once() {
        let running = RunningHashes::new(4).expect("memory");
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
        assert_eq!(running.wait(second), Some(1), "a process that has ended keeps no place");
    }
}
