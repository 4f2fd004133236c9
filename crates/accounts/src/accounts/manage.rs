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
    pub fn add_member(&self, name: &str, password: &str) -> Result<(), String> {
        let parsed = MemberName::parse(name)
            .map_err(|why| format!("{name:?} is not a valid name: {}", uncapitalised(why.words())))?;
        self.check_password(password, parsed.shown())?;
        match self.add(&parsed, password, None) {
            Err(StoreError::Taken) => Err(format!("the name {name}, or a name that looks like it, is taken")),
            added => Ok(added.map(drop)?),
        }
    }

    /// Returns all members.
    pub fn members(&self) -> Result<Vec<Member>, String> {
        Ok(self.store.users()?)
    }

    /// Disables or enables the login of a member; disabling also ends every session.
    pub fn set_disabled(&self, name: &str, disabled: bool) -> Result<(), String> {
        let user = self.named(name)?;
        self.store.set_disabled(user.id, disabled)?;
        if disabled {
            self.store.remove_sessions(user.id, "")?;
        }
        Ok(())
    }

    /// Sets another password of a member and ends every session.
    pub fn set_password(&self, name: &str, password: &str) -> Result<(), String> {
        let user = self.named(name)?;
        self.check_password(password, &user.name)?;
        unless_changed(self.store.change_password(&user, &self.hasher.hash(password)?)?)?;
        self.store.remove_sessions(user.id, "")?;
        Ok(())
    }

    /// Removes a member.
    pub fn remove_member(&self, name: &str) -> Result<(), String> {
        unless_changed(self.store.remove_user(&self.named(name)?)?)
    }

    /// Returns the code of a new invitation for one account, valid for `days`. Only the hash of the code is stored.
    pub fn invite(&self, days: u32) -> Result<String, String> {
        let code = token::invitation()?;
        let (digest, now) = (token::digest(&token::spelled_invitation(&code)), seconds());
        self.store.add_invitation(&digest, now, now + i64::from(days) * DAY)?;
        Ok(code)
    }

    fn check_password(&self, password: &str, name: &str) -> Result<(), String> {
        let checked = passwords::check(password, name, self.policy.least_password);
        checked.map_err(|why| format!("the password is rejected: {}", uncapitalised(&why.words())))
    }

    fn named(&self, name: &str) -> Result<Member, String> {
        let none = || format!("no member is called {name}; `tenfold users list` shows all");
        let parsed = MemberName::parse(name).map_err(|_| none())?;
        self.store.user_by_key(parsed.key())?.ok_or_else(none)
    }
}

fn unless_changed(done: bool) -> Result<(), String> {
    done.then_some(()).ok_or_else(|| "the member changed at the same time; try again".to_owned())
}

/// The first sentence of a text for a page, as the end of a message.
fn uncapitalised(text: &str) -> String {
    let sentence = text.split(". ").next().unwrap_or(text).trim_end_matches('.');
    let (first, rest) = sentence.split_at(1);
    first.to_lowercase() + rest
}
