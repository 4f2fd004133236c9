//! The filter of session cookies, with which workers reject forged ones without asking the accounts.
//!
//! A cookie is `NONCE.MAC`. Workers know the key of the MAC, so a valid MAC proves nothing: the accounts decide about
//! the session. The key is in the database, so that nodes accept each other's cookies.

use serde::{Deserialize, Serialize};

use crate::clock::seconds;
use crate::token;

/// The key of the filter, and the end of the time in which older cookies are valid.
#[derive(Clone, Deserialize, PartialEq, Eq, Serialize)]
pub struct Filter {
    key: String,
    /// Seconds since 1970.
    unsigned_until: i64,
}

/// The result of checking a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookieCheck {
    /// The server never issued it.
    Forged,
    /// It has a valid MAC.
    Signed,
    /// It has no MAC, but may be older than the filter's key.
    Unsigned,
}

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Filter").field("unsigned_until", &self.unsigned_until).finish_non_exhaustive()
    }
}

impl Filter {
    /// Creates a filter with a key from the time `made`, which is 0 if no earlier cookies exist. A session lives for at
    /// most `longest` seconds.
    pub(crate) fn new(key: &str, made: i64, longest: i64) -> Filter {
        let unsigned_until = if made == 0 { 0 } else { made.saturating_add(longest) };
        Filter { key: key.to_owned(), unsigned_until }
    }

    /// Returns a new cookie.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(crate) fn issue(&self) -> Result<String, String> {
        Ok(self.signed(&token::random()?))
    }

    /// Checks a cookie.
    pub fn judge(&self, cookie: &str) -> CookieCheck {
        match cookie.split_once('.') {
            Some((nonce, _)) if token::same(&self.signed(nonce), cookie) => CookieCheck::Signed,
            None if seconds() <= self.unsigned_until => CookieCheck::Unsigned,
            _ => CookieCheck::Forged,
        }
    }

    fn signed(&self, nonce: &str) -> String {
        token::signed(&self.key, "session", nonce, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h81_a_cookie_of_another_key_is_invented() {
        let (filter, other) = (Filter::new("key", 0, 100), Filter::new("other", 0, 100));
        let cookie = filter.issue().expect("random numbers");
        assert_eq!(filter.judge(&cookie), CookieCheck::Signed);
        assert_eq!(other.judge(&cookie), CookieCheck::Forged);
        let (nonce, mac) = cookie.split_once('.').expect("a nonce and a MAC");
        let changed = [format!("{nonce}."), format!(".{mac}"), format!("x{cookie}"), format!("{cookie}x")];
        for invented in changed.iter().map(String::as_str).chain([nonce, mac, "", ".", "..", "a.b.c"]) {
            assert_eq!(filter.judge(invented), CookieCheck::Forged, "{invented}");
        }
    }

    #[test]
    fn cookies_without_a_mac_are_accepted_until_the_last_of_them_expired() {
        let now = seconds();
        let judge = |made, longest| Filter::new("key", made, longest).judge("unsigned");
        assert_eq!(judge(now - 50, 100), CookieCheck::Unsigned);
        assert_eq!(judge(now - 150, 100), CookieCheck::Forged);
        assert_eq!(judge(0, i64::MAX), CookieCheck::Forged, "a new database had no sessions before the key");
    }
}
