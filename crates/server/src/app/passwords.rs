//! Passwords of basic authentication: they are verified on threads of their own, so that guesses delay no other work,
//! and attempts are counted as those of members are.

use std::cell::RefCell;
use std::sync::Arc;

use tenfold_accounts::ask::From;
use tenfold_accounts::web::counted_address;
use tenfold_accounts::web::trust::TrustedProxy;
use tenfold_accounts::{Admitted, Throttle};
use tenfold_engine::Plan;
use tenfold_engine::offload::Lane;
use tenfold_http::{Head, Peer, clock};
use tenfold_site::{Attempts, User, Work};

use crate::settings::Settings;

/// What verifies passwords in one process.
pub(super) struct Passwords {
    pub(super) lane: Lane,
    throttle: Arc<Throttle>,
    trusted: Vec<TrustedProxy>,
}

/// The attempts of one client.
struct Client {
    throttle: Arc<Throttle>,
    address: String,
    now: u64,
    admitted: RefCell<Option<Admitted>>,
}

impl Passwords {
    pub(super) fn new(plan: &Plan, settings: &Settings) -> Passwords {
        Passwords {
            lane: Lane::new(plan, settings.work_threads, settings.work_queue),
            throttle: Arc::new(Throttle::new(settings.members.throttle)),
            trusted: settings.members.trusted.clone(),
        }
    }

    /// Lets attempts at a password count for the client that sent `head`.
    pub(super) fn count(&self, work: Work, head: &Head<'_>, peer: &Peer) -> Work {
        work.counted_by(Client {
            throttle: Arc::clone(&self.throttle),
            address: counted_address(head, peer, &self.trusted),
            now: clock::now().0,
            admitted: RefCell::default(),
        })
    }
}

impl Attempts for Client {
    fn admit(&self, user: &User) -> Result<(), u64> {
        let from = From { address: self.address.clone(), known: user.known.clone() };
        let admitted = self.throttle.login(&from, &user.name, user.known.is_some(), self.now)?;
        self.admitted.replace(Some(admitted));
        Ok(())
    }

    fn succeeded(&self) {
        if let Some(admitted) = self.admitted.take() {
            self.throttle.give_back(admitted);
        }
    }
}
