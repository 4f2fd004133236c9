//! Administration of members: `tenfold users`.

use crate::accounts::Accounts;
use crate::clock::seconds;
use crate::names::MemberName;
use crate::passwords;
use crate::store::{Member, StoreError};
use crate::token;

const DAY: i64 = 24 * 60 * 60;

impl Accounts {
    /// Creates an account, regardless of the registration policy.
    ///
    /// # Errors
    /// One line: the name or password is rejected, the name is taken, or the error of the database.
    pub fn add_member(&self, name: &str, password: &str) -> Result<(), String> {
        let parsed = MemberName::parse(name)
            .map_err(|why| format!("{name:?} is not a valid name: {}", uncapitalised(why.words())))?;
        self.check_password(password, parsed.shown())?;
        match self.add(&parsed, password, None) {
            Ok(_) => Ok(()),
            Err(StoreError::Taken) => Err(format!("the name {name} is taken, or looks like one that is")),
            Err(fault) => Err(fault.to_string()),
        }
    }

    /// Returns all members.
    ///
    /// # Errors
    /// The error of the database.
    pub fn members(&self) -> Result<Vec<Member>, String> {
        self.store.users().map_err(|fault| fault.to_string())
    }

    /// Disables or enables the login of a member; disabling also ends every session.
    ///
    /// # Errors
    /// The member does not exist, or the error of the database.
    pub fn set_disabled(&self, name: &str, disabled: bool) -> Result<(), String> {
        let user = self.named(name)?;
        let set = self.store.set_disabled(user.id, disabled);
        let ended = set.and_then(|_| if disabled { self.store.remove_sessions(user.id, "") } else { Ok(0) });
        ended.map(drop).map_err(|fault| fault.to_string())
    }

    /// Sets another password of a member and ends every session.
    ///
    /// # Errors
    /// The member does not exist, the password is rejected, or the error of the database.
    pub fn set_password(&self, name: &str, password: &str) -> Result<(), String> {
        let user = self.named(name)?;
        self.check_password(password, &user.name)?;
        self.replace_password(&user, password).map_err(|fault| fault.to_string())
    }

    /// Removes a member.
    ///
    /// # Errors
    /// The member does not exist, or the error of the database.
    pub fn remove_member(&self, name: &str) -> Result<(), String> {
        let user = self.named(name)?;
        self.store.remove_user(user.id).map(drop).map_err(|fault| fault.to_string())
    }

    /// Returns the code of a new invitation for one account, valid for `days`. Only its hash is stored, so it cannot be
    /// shown again.
    ///
    /// # Errors
    /// The error of the database.
    pub fn invite(&self, days: u32) -> Result<String, String> {
        let code = token::invitation()?;
        let (digest, now) = (token::digest(&token::spelled_invitation(&code)), seconds());
        let kept = self.store.add_invitation(&digest, now, now + i64::from(days) * DAY);
        kept.map(|_| code).map_err(|fault| fault.to_string())
    }

    fn check_password(&self, password: &str, name: &str) -> Result<(), String> {
        let checked = passwords::check(password, name, self.policy.least_password);
        checked.map_err(|why| format!("the password is rejected: {}", uncapitalised(&why.words())))
    }

    fn named(&self, name: &str) -> Result<Member, String> {
        let none = || format!("no member is called {name}; `tenfold users list` shows all");
        let parsed = MemberName::parse(name).map_err(|_| none())?;
        self.store.user_by_key(parsed.key()).map_err(|fault| fault.to_string())?.ok_or_else(none)
    }
}

/// The first sentence of a text for a page, as the end of a message.
fn uncapitalised(text: &str) -> String {
    let sentence = text.split(". ").next().unwrap_or(text).trim_end_matches('.');
    let (first, rest) = sentence.split_at(1);
    first.to_lowercase() + rest
}
