//! What is known about the client that a response is for, and whether it may have a file.

use std::sync::Arc;
use std::time::Duration;

use tenfold_http::Head;

use crate::files::protection::Guard;
use crate::respond::message;
use crate::respond::store;
use crate::respond::work::Work;
use crate::rules::policy::Effective;
use crate::rules::realm::{Claim, Realm, Verdict};

/// The facts about the client of a request.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Whether it has logged in as a member.
    pub(crate) member: bool,
    /// Realms whose password was verified for this request, and whether it was right.
    verdicts: Vec<(Arc<Realm>, bool)>,
}

/// A client of which nothing is known.
pub(crate) static STRANGER: Access = Access { member: false, verdicts: Vec::new() };
/// A client that has logged in as a member.
pub(crate) static MEMBER: Access = Access { member: true, verdicts: Vec::new() };

/// Why a client does not get a file, or not yet.
pub(crate) enum Denied {
    /// The realm needs other credentials: 401.
    Unauthorized(Arc<Realm>),
    /// This has to be done first: a password is verified, or a session is looked up.
    Work(Work),
}

impl Access {
    /// Lets the client into a realm.
    ///
    /// # Errors
    /// It has no right password, or none that is known to be right.
    pub(crate) fn enter(&self, realm: &Arc<Realm>, request: &Head<'_>) -> Result<(), Denied> {
        let claim = match self.verdict(realm) {
            Some(true) => Claim::Allowed,
            Some(false) => Claim::Refused,
            None => realm.claim(request),
        };
        let credentials = match claim {
            Claim::Allowed => return Ok(()),
            Claim::Refused => return Err(Denied::Unauthorized(Arc::clone(realm))),
            Claim::Unknown(credentials) => credentials,
        };
        let (known, verifier, realm) = (self.clone(), Arc::clone(realm), Arc::clone(realm));
        Err(Denied::Work(Work::verifying(
            move |attempts| verifier.verify(&credentials, attempts),
            move |verdict, site, head, out| match verdict {
                Verdict::Throttled(seconds) => {
                    message::too_many_requests(head, Duration::from_secs(seconds), out).into()
                }
                Verdict::Right | Verdict::Wrong => {
                    let access = known.with(realm, verdict == Verdict::Right);
                    store::with(site, |store| store.respond_to(site, head, &access, out))
                }
            },
        )))
    }

    /// Lets the client have a file with this guard. The realm of the path, if it has one, has been entered.
    ///
    /// # Errors
    /// As [`Access::enter`]; or it is not known to be a member.
    pub(crate) fn admit(&self, guard: &Guard, here: &Effective, request: &Head<'_>) -> Result<(), Denied> {
        if guard.is_open() {
            return Ok(());
        }
        if let Some(realm) = &guard.realm
            && here.realm().is_none_or(|entered| !Arc::ptr_eq(entered, realm))
        {
            self.enter(realm, request)?;
        }
        match guard.members && !self.member {
            true => Err(Denied::Work(Work::membership())),
            false => Ok(()),
        }
    }

    /// Whether the client may have a file with this guard now, without further work.
    pub(crate) fn permits(&self, guard: &Guard, request: &Head<'_>) -> bool {
        let realm = guard.realm.as_ref().is_none_or(|realm| self.enter(realm, request).is_ok());
        realm && (self.member || !guard.members)
    }

    fn with(&self, realm: Arc<Realm>, allowed: bool) -> Access {
        let mut access = self.clone();
        access.verdicts.push((realm, allowed));
        access
    }

    fn verdict(&self, realm: &Arc<Realm>) -> Option<bool> {
        let found = self.verdicts.iter().find(|(known, _)| Arc::ptr_eq(known, realm));
        found.map(|(_, allowed)| *allowed)
    }
}
