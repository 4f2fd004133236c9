//! The key of an external account, to which an authority binds the account of ACME (RFC 8555 §7.3.4).

use std::fmt;
use std::path::Path;

use base64ct::{Base64UrlUnpadded, Encoding};
use zeroize::Zeroizing;

use crate::certificates::file;

/// The key of an external account, from its file.
pub struct ExternalAccount {
    /// The identifier that the authority gave.
    pub identifier: String,
    /// The key of its message authentication code.
    pub key: Zeroizing<Vec<u8>>,
}

impl ExternalAccount {
    /// Reads a file with the identifier and the key in base64url, separated by a space or a line end. An error begins
    /// with the path and does not quote the content.
    pub fn read(path: &Path) -> Result<ExternalAccount, String> {
        let wrong = |why: &dyn fmt::Display| format!("{}: {why}", path.display());
        let bytes = Zeroizing::new(file::read(path).map_err(|error| wrong(&error))?);
        ExternalAccount::parse(&bytes)
            .ok_or_else(|| wrong(&"it does not have two words, a key identifier and a key in base64url"))
    }

    fn parse(bytes: &[u8]) -> Option<ExternalAccount> {
        let words: Vec<&str> = std::str::from_utf8(bytes).ok()?.split_ascii_whitespace().collect();
        let &[identifier, key] = &words[..] else { return None };
        // Some authorities show the key with padding.
        let key = Base64UrlUnpadded::decode_vec(key.trim_end_matches('=')).ok()?;
        let account = ExternalAccount { identifier: identifier.to_owned(), key: Zeroizing::new(key) };
        (!account.key.is_empty()).then_some(account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_an_identifier_and_a_key() {
        for text in ["kid-1 _-8AAA", "kid-1\r\n_-8AAA\r\n", "\tkid-1\n\n_-8AAA==\n"] {
            let account = ExternalAccount::parse(text.as_bytes()).expect(text);
            assert_eq!(
                (&account.identifier[..], &account.key[..]),
                ("kid-1", &[255, 239, 0, 0][..]),
                "{text}"
            );
        }
        for text in ["", "kid-1", "kid-1 =", "kid-1 +/8A", "kid-1 _-8A more", "kid-1 \u{fffd}"] {
            assert!(ExternalAccount::parse(text.as_bytes()).is_none(), "{text:?}");
        }
        let error = ExternalAccount::read(Path::new("/dev/null")).err().expect("a device");
        assert_eq!(error, "/dev/null: it is not a regular file");
    }
}
