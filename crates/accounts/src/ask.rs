//! What is asked of the accounts, and what they answer: plain data, so that it can go to another process.

use serde::{Deserialize, Serialize};

use crate::filter::Filter;

/// A question or an order. Secrets of visitors are in it, so it is never printed.
#[derive(Clone, Deserialize, Serialize)]
#[cfg_attr(test, derive(Debug))]
pub enum Query {
    /// The filter of session cookies.
    Filter,
    /// Whose session is this?
    Check {
        /// What is kept of the session's number: [`crate::token::digest`].
        session: String,
    },
    /// The same, with what the account page shows.
    Overview {
        /// As above.
        session: String,
    },
    /// Name and password.
    Login {
        /// As it was typed.
        name: String,
        /// As it was typed.
        password: String,
        /// Who guesses, where somebody does.
        from: From,
        /// The session that this browser had, which ends.
        former: Option<String>,
    },
    /// A new account.
    Register {
        /// As it was typed.
        name: String,
        /// As it was typed.
        password: String,
        /// The code of an invitation, where one was typed.
        invitation: Option<String>,
        /// Who asks.
        from: From,
    },
    /// The end of a session.
    Logout {
        /// What is kept of its number.
        session: String,
    },
    /// The end of all other sessions of its member.
    EndOthers {
        /// The one that stays.
        session: String,
    },
    /// Another password; every session ends, and one begins.
    ChangePassword {
        /// The session in which it is asked.
        session: String,
        /// The password so far.
        old: String,
        /// The one from now on.
        new: String,
        /// Who asks.
        from: From,
    },
    /// The end of the account.
    Remove {
        /// The session in which it is asked.
        session: String,
        /// The password.
        password: String,
        /// Who asks.
        from: From,
    },
}

impl Query {
    /// Whether a password is hashed for it: some tens of milliseconds of a processor.
    pub fn hashes(&self) -> bool {
        match self {
            Query::Login { .. }
            | Query::Register { .. }
            | Query::ChangePassword { .. }
            | Query::Remove { .. } => true,
            Query::Filter
            | Query::Check { .. }
            | Query::Overview { .. }
            | Query::Logout { .. }
            | Query::EndOthers { .. } => false,
        }
    }
}

/// Who asks, as far as throttling is concerned.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct From {
    /// The client's address; for IPv6 its network.
    pub address: String,
    /// What this browser was given at its last login.
    pub known: Option<String>,
}

/// The result of a [`Query`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub enum Reply {
    /// The filter of session cookies.
    Filter(Filter),
    /// The session is this member's.
    Member {
        /// The name as it is shown.
        name: String,
    },
    /// The session is nobody's, or no longer.
    Nobody,
    /// What the account page shows.
    Overview {
        /// The name as it is shown.
        name: String,
        /// When the account was made, in seconds since 1970.
        since: i64,
        /// Sessions beside this one.
        others: u64,
    },
    /// A session has begun.
    Welcome {
        /// Its number: for the cookie and for nothing else.
        token: String,
        /// What the browser shows at its next login.
        known: String,
    },
    /// It was done.
    Done,
    /// It was not done, and why.
    Refused(Refused),
    /// Too many attempts: again after so many seconds.
    Throttled {
        /// Seconds.
        after: u64,
    },
    /// As much waits as may wait, or the database does not answer.
    Unavailable,
}

/// Why a form is not accepted: what is shown beside a field.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Refused {
    /// Nobody has this name and this password. Which of the two is wrong is not said.
    Wrong,
    /// Somebody has this name, or one that looks like it.
    NameTaken,
    /// It is no name.
    NameUnfit(crate::names::Unfit),
    /// It is no password.
    PasswordUnfit(crate::passwords::Unfit),
    /// The code is not one, was used, or is too old.
    Invitation,
    /// Nobody can register.
    Closed,
}
