//! Queries to the accounts and their replies: plain data, which can be sent to another process.

use serde::{Deserialize, Serialize};

use crate::filter::Filter;

/// The most cookies of one name that are tried: another site of the same domain, or a server on another port of this
/// host, can set one.
pub(crate) const MOST_TRIED: usize = 4;

/// A query or command. It contains secrets of visitors, so it is never printed.
#[derive(Clone, Deserialize, Serialize)]
#[cfg_attr(test, derive(Debug))]
pub enum Query {
    /// The filter of session cookies.
    Filter,
    /// Looks up the member of a session.
    Check {
        /// The stored digest of the session's token ([`crate::token::digest`]), or several with spaces between them, if
        /// the browser sent several cookies.
        session: String,
    },
    /// Looks up the member of a session, with the data of the account page.
    Overview {
        /// The digest of the session's token.
        session: String,
    },
    /// Logs in with name and password.
    Login {
        /// The name as typed.
        name: String,
        /// The password as typed.
        password: String,
        /// The client that logs in, for throttling.
        from: ClientIdentity,
        /// The former session of this browser, which ends.
        former: Option<String>,
    },
    /// Creates an account.
    Register {
        /// The name as typed.
        name: String,
        /// The password as typed.
        password: String,
        /// The code of an invitation, if one was typed.
        invitation: Option<String>,
        /// The client that registers, for throttling.
        from: ClientIdentity,
    },
    /// Ends a session.
    Logout {
        /// The digest of the session's token.
        session: String,
    },
    /// Ends all other sessions of the member.
    EndOthers {
        /// The session that continues.
        session: String,
    },
    /// Sets another password; every session ends, and a new one begins.
    ChangePassword {
        /// The session that sends the query.
        session: String,
        /// The current password.
        old: String,
        /// The new password.
        new: String,
        /// The client, for throttling.
        from: ClientIdentity,
    },
    /// Removes the account.
    Remove {
        /// The session that sends the query.
        session: String,
        /// The password.
        password: String,
        /// The client, for throttling.
        from: ClientIdentity,
    },
}

impl Query {
    /// The client, if the query hashes a password, which takes tens of milliseconds of processor time.
    pub fn hashing_client(&self) -> Option<&ClientIdentity> {
        match self {
            Query::Login { from, .. }
            | Query::Register { from, .. }
            | Query::ChangePassword { from, .. }
            | Query::Remove { from, .. } => Some(from),
            _ => None,
        }
    }
}

/// The client of a query, as far as throttling needs it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ClientIdentity {
    /// The client's address; for IPv6 its network.
    pub address: String,
    /// The marker of this browser from its last login, or several with spaces between them.
    pub known: Option<String>,
}

/// The result of a [`Query`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub enum Reply {
    /// The filter of session cookies.
    Filter(Filter),
    /// The session belongs to this member.
    Member {
        /// The name as displayed.
        name: String,
    },
    /// The session does not exist, or has ended.
    Nobody,
    /// The data of the account page.
    Overview {
        /// The name as displayed.
        name: String,
        /// When the account was made, in seconds since 1970.
        since: i64,
        /// The number of other sessions.
        others: u64,
    },
    /// A session has begun.
    Welcome {
        /// Its token, for the cookie only.
        token: String,
        /// The marker that the browser sends at its next login.
        known: String,
    },
    /// The command succeeded.
    Done,
    /// The command was rejected, with the reason.
    Refused(Refused),
    /// Too many attempts; retry later.
    Throttled {
        /// The delay in seconds.
        after: u64,
    },
    /// The queue is full, or the database does not answer.
    Unavailable,
}

/// The reason why a form is rejected, shown at a field.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Refused {
    /// Wrong name or wrong password.
    Wrong,
    /// The name, or a name that looks like it, is taken.
    NameTaken,
    /// The name is invalid.
    InvalidName(crate::names::InvalidName),
    /// The password is invalid.
    InvalidPassword(crate::passwords::InvalidPassword),
    /// The code is invalid, used, or expired.
    Invitation,
    /// Registration is closed.
    Closed,
}
