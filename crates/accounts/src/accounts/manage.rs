//! What whoever runs the site does with members: `tenfold users`.

use crate::accounts::Accounts;
use crate::clock::seconds;
use crate::names::Name;
use crate::passwords;
use crate::store::{Fault, User};
use crate::token;

const DAY: i64 = 24 * 60 * 60;

impl Accounts {
    /// Makes an account, whoever can register.
    ///
    /// # Errors
    /// One line: name or password are not accepted, the name is taken, or what the database says.
    pub fn add_member(&self, name: &str, password: &str) -> Result<(), String> {
        let parsed =
            Name::parse(name).map_err(|why| format!("{name:?} cannot be a name. {}", why.words()))?;
        passwords::check(password, parsed.shown(), self.policy.least_password).map_err(|why| why.words())?;
        match self.add(&parsed, password, None) {
            Ok(_) => Ok(()),
            Err(Fault::Taken) => Err(format!("{name} is taken, or looks like a name that is")),
            Err(fault) => Err(fault.to_string()),
        }
    }

    /// All members.
    ///
    /// # Errors
    /// What the database says.
    pub fn members(&self) -> Result<Vec<User>, String> {
        self.store.users().map_err(|fault| fault.to_string())
    }

    /// Lets a member log in, or not any more; then every session ends, too.
    ///
    /// # Errors
    /// There is no such member, or what the database says.
    pub fn set_disabled(&self, name: &str, disabled: bool) -> Result<(), String> {
        let user = self.named(name)?;
        let set = || -> Result<(), Fault> {
            self.store.set_disabled(user.id, disabled)?;
            if disabled { self.sessions.end_others(&self.store, user.id, "") } else { Ok(()) }
        };
        set().map_err(|fault| fault.to_string())
    }

    /// Gives a member another password; every session ends.
    ///
    /// # Errors
    /// There is no such member, the password is not accepted, or what the database says.
    pub fn set_password(&self, name: &str, password: &str) -> Result<(), String> {
        let user = self.named(name)?;
        passwords::check(password, &user.name, self.policy.least_password).map_err(|why| why.words())?;
        self.replace_password(&user, password).map_err(|fault| fault.to_string())
    }

    /// Removes a member.
    ///
    /// # Errors
    /// There is no such member, or what the database says.
    pub fn remove_member(&self, name: &str) -> Result<(), String> {
        let user = self.named(name)?;
        let remove = || -> Result<(), Fault> {
            self.store.remove_user(user.id)?;
            self.sessions.end_others(&self.store, user.id, "")
        };
        remove().map_err(|fault| fault.to_string())
    }

    /// The code of a new invitation for one account, good for so many days. It is kept hashed and cannot be
    /// shown again.
    ///
    /// # Errors
    /// What the database says.
    pub fn invite(&self, days: u32) -> Result<String, String> {
        let code = token::invitation()?;
        let (digest, now) = (token::digest(&token::spelled_invitation(&code)), seconds());
        let kept = self.store.add_invitation(&digest, now, now + i64::from(days) * DAY);
        kept.map(|_| code).map_err(|fault| fault.to_string())
    }

    fn named(&self, name: &str) -> Result<User, String> {
        let none = || format!("there is no member {name}");
        let parsed = Name::parse(name).map_err(|_| none())?;
        self.store.user_by_key(parsed.key()).map_err(|fault| fault.to_string())?.ok_or_else(none)
    }
}
