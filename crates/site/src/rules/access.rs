//! The access of a client: its verified facts, and whether it may get a file.

use std::sync::Arc;

use tenfold_http::Request;

use crate::rules::policy::Effective;
use crate::rules::realm::{Claim, Credentials, Realm};

/// The credentials that a file requires, independent of the path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    /// Only members may get the file.
    pub(crate) members: bool,
    /// Only clients with a password of this realm may get the file.
    pub(crate) realm: Option<Arc<Realm>>,
}

impl Guard {
    /// Whether every client may get the file.
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

/// The verified facts about the client of a request.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Whether the client is logged in as a member.
    pub(crate) member: bool,
    /// The realms whose password was checked for this request, and whether the password was right.
    verdicts: Vec<(Arc<Realm>, bool)>,
}

/// An unknown client.
pub(crate) static STRANGER: Access = Access { member: false, verdicts: Vec::new() };
/// A client that has logged in as a member.
pub(crate) static MEMBER: Access = Access { member: true, verdicts: Vec::new() };

/// The reason why a client does not get a file.
pub(crate) enum Denied {
    /// 401: the realm needs other credentials.
    Unauthorized(Arc<Realm>),
    /// These credentials must be verified first.
    Unverified(Arc<Realm>, Credentials),
    /// Only members may get the file: the session must be looked up first.
    MembersOnly,
}

impl Access {
    /// Returns whether the client has a verified password for a realm.
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

    /// Returns whether the client may get a file with this guard. The realm of the path, if any, has been
    /// entered before.
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

    /// Whether the client may get a file with this guard without further work.
    pub(crate) fn permits(&self, guard: &Guard, request: &Request<'_>) -> bool {
        let realm = guard.realm.as_ref().is_none_or(|realm| self.enter(realm, request).is_ok());
        realm && (self.member || !guard.members)
    }

    /// Adds the result of verifying the client's password for this realm.
    pub(crate) fn with(mut self, realm: Arc<Realm>, allowed: bool) -> Access {
        self.verdicts.push((realm, allowed));
        self
    }

    fn verdict(&self, realm: &Arc<Realm>) -> Option<bool> {
        let found = self.verdicts.iter().find(|(known, _)| Arc::ptr_eq(known, realm));
        found.map(|(_, allowed)| *allowed)
    }
}
