//! The filter of session cookies, with which workers reject forged ones without asking the accounts.
//!
//! A cookie is `NONCE.MAC`. Workers know the key of the MAC, so a valid MAC proves nothing: the accounts decide about
//! the session. The key is in the database, so that nodes accept each other's cookies.

use serde::{Deserialize, Serialize};

use crate::token;

/// The key of the filter.
#[derive(Clone, Deserialize, PartialEq, Eq, Serialize)]
pub struct Filter(pub(crate) String);

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Filter")
    }
}

impl Filter {
    /// Returns a new cookie, or an error if the system has no random numbers.
    pub(crate) fn issue(&self) -> Result<String, String> {
        Ok(self.signed(&token::random()?))
    }

    /// Whether a cookie has a valid MAC.
    pub fn accepts(&self, cookie: &str) -> bool {
        cookie.split_once('.').is_some_and(|(nonce, _)| token::same(&self.signed(nonce), cookie))
    }

    fn signed(&self, nonce: &str) -> String {
        token::signed(&self.0, "session", nonce, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h81_a_cookie_of_another_key_is_invented() {
        let (filter, other) = (Filter("key".into()), Filter("other".into()));
        let cookie = filter.issue().expect("random numbers");
        assert!(filter.accepts(&cookie) && !other.accepts(&cookie));
        let (nonce, mac) = cookie.split_once('.').expect("a nonce and a MAC");
        let changed = [format!("{nonce}."), format!(".{mac}"), format!("x{cookie}"), format!("{cookie}x")];
        for invented in changed.iter().map(String::as_str).chain([nonce, mac, "", ".", "..", "a.b.c"]) {
            assert!(!filter.accepts(invented), "{invented}");
        }
    }
}
