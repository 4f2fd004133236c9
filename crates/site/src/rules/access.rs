//! The facts about the client that a response is for, and whether it may have a file.

use std::sync::Arc;

use tenfold_http::Request;

use crate::rules::policy::Effective;
use crate::rules::realm::{Claim, Credentials, Realm};

/// The credentials that a file requires, whatever path led to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    /// Members alone.
    pub(crate) members: bool,
    /// Clients that have a password of this realm.
    pub(crate) realm: Option<Arc<Realm>>,
}

impl Guard {
    /// Whether everybody may have it.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        !self.members && self.realm.is_none()
    }
}

/// Realms are compared by identity, not by their users.
impl PartialEq for Guard {
    fn eq(&self, other: &Guard) -> bool {
        let same_realm = match (&self.realm, &other.realm) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        };
        same_realm && self.members == other.members
    }
}

/// The facts about the client of a request.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Whether it has logged in as a member.
    pub(crate) member: bool,
    /// Realms whose password was verified for this request, and whether it was right.
    verdicts: Vec<(Arc<Realm>, bool)>,
}

/// An unknown client.
pub(crate) static STRANGER: Access = Access { member: false, verdicts: Vec::new() };
/// A client that has logged in as a member.
pub(crate) static MEMBER: Access = Access { member: true, verdicts: Vec::new() };

/// Why a client does not get a file, or not yet.
pub(crate) enum Denied {
    /// The realm needs other credentials: 401.
    Unauthorized(Arc<Realm>),
    /// These credentials must be verified first.
    Unverified(Arc<Realm>, Credentials),
    /// The session must be looked up first: only members may have the file.
    MembersOnly,
}

impl Access {
    /// Lets the client into a realm.
    ///
    /// # Errors
    /// It has no right password, or none that is known to be right.
    pub(crate) fn enter(&self, realm: &Arc<Realm>, request: &Request<'_>) -> Result<(), Denied> {
        let claim = match self.verdict(realm) {
            Some(true) => Claim::Allowed,
            Some(false) => Claim::Refused,
            None => realm.claim(request),
        };
        match claim {
            Claim::Allowed => Ok(()),
            Claim::Refused => Err(Denied::Unauthorized(Arc::clone(realm))),
            Claim::Unknown(credentials) => Err(Denied::Unverified(Arc::clone(realm), credentials)),
        }
    }

    /// Lets the client have a file with this guard. The realm of the path, if it has one, has been entered.
    ///
    /// # Errors
    /// As [`Access::enter`]; or it is not known to be a member.
    pub(crate) fn admit(&self, guard: &Guard, here: &Effective, request: &Request<'_>) -> Result<(), Denied> {
        if guard.is_open() {
            return Ok(());
        }
        if let Some(realm) = &guard.realm
            && here.realm().is_none_or(|entered| !Arc::ptr_eq(entered, realm))
        {
            self.enter(realm, request)?;
        }
        match guard.members && !self.member {
            true => Err(Denied::MembersOnly),
            false => Ok(()),
        }
    }

    /// Whether the client may have a file with this guard now, without further work.
    pub(crate) fn permits(&self, guard: &Guard, request: &Request<'_>) -> bool {
        let realm = guard.realm.as_ref().is_none_or(|realm| self.enter(realm, request).is_ok());
        realm && (self.member || !guard.members)
    }

    /// The same client once its password for this realm has been verified.
    pub(crate) fn with(mut self, realm: Arc<Realm>, allowed: bool) -> Access {
        self.verdicts.push((realm, allowed));
        self
    }

    fn verdict(&self, realm: &Arc<Realm>) -> Option<bool> {
        let found = self.verdicts.iter().find(|(known, _)| Arc::ptr_eq(known, realm));
        found.map(|(_, allowed)| *allowed)
    }
}
