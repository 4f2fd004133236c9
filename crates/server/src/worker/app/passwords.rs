//! Passwords of basic authentication. Separate threads verify them, so that guesses delay no other work. Attempts are
//! throttled like the attempts of members.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use tenfold_accounts::ask::ClientIdentity;
use tenfold_accounts::web::counted_address;
use tenfold_accounts::{AdmittedAttempt, Throttle};
use tenfold_engine::Plan;
use tenfold_http::{Connection, clock};
use tenfold_site::{Attempts, RealmUser, Work};

use crate::admission::lane::WorkLane;
use crate::admission::shared_places::{SharedPlace, SharedPlaces};
use crate::config::values::Settings;
use crate::config::values::bounds::WORK_QUEUE;

/// The verification of passwords in one process.
pub(super) struct Passwords {
    pub(super) lane: WorkLane,
    throttle: Arc<Throttle>,
    /// With `fork`, whose processes do not share the lane and the throttle: a place for the memory of each hash.
    running: Option<Arc<SharedPlaces>>,
}

/// The attempts of one client.
struct ClientAttempts {
    throttle: Arc<Throttle>,
    address: String,
    now: u64,
    admitted: RefCell<Option<AdmittedAttempt>>,
    running: Option<Arc<SharedPlaces>>,
    /// This attempt's place in `running`.
    place: RefCell<Option<SharedPlace>>,
}

impl Passwords {
    /// The part of a worker that serves by `plan`.
    pub(super) fn new(plan: &Plan, settings: &Settings) -> io::Result<Passwords> {
        Ok(Passwords {
            lane: WorkLane::new(plan, settings.work_threads, WORK_QUEUE),
            throttle: Arc::new(Throttle::new(settings.members.throttle)),
            running: SharedPlaces::of(plan, settings.work_threads)?,
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
            place: RefCell::default(),
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
            self.place.replace(Some(place));
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
