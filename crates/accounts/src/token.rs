//! Secret random tokens and their stored digests.

use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// 256 random bits as text: 43 characters that a cookie may hold.
pub fn random() -> Result<String, String> {
    let mut bytes = [0; 32];
    fill(&mut bytes)?;
    Ok(BASE64URL_NOPAD.encode(&bytes))
}

/// A new row id: 63 random bits.
pub(crate) fn row_number() -> Result<i64, String> {
    let mut bytes = [0; 8];
    fill(&mut bytes)?;
    Ok((u64::from_ne_bytes(bytes) >> 1) as i64)
}

/// A secret row id that depends only on the name: a login with an unknown name verifies the hash of the next member.
pub(crate) fn place_of(secret: &str, key: &str) -> i64 {
    let [a, b, c, d, e, f, g, h, ..] = mac(secret, "place", "", key);
    (u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1) as i64
}

/// An invitation code for humans: 100 bits in groups of five, without confusable letters.
pub(crate) fn invitation() -> Result<String, String> {
    let mut bytes = [0; 13];
    fill(&mut bytes)?;
    let text = BASE32_NOPAD.encode(&bytes);
    let groups: Vec<_> = text.as_bytes()[..20].chunks(5).map(String::from_utf8_lossy).collect();
    Ok(groups.join("-"))
}

/// Normalises an invitation code as typed.
pub(crate) fn spelled_invitation(typed: &str) -> String {
    typed.chars().filter(char::is_ascii_alphanumeric).take(64).map(|c| c.to_ascii_uppercase()).collect()
}

/// The stored digest of a token, which is not a token itself. A token has 256 random bits, so one hash without salt is
/// enough.
pub fn digest(token: &str) -> String {
    BASE64URL_NOPAD.encode(&Sha256::digest(token.as_bytes()))
}

/// The token of a form. Pages of other sites cannot read these cookies, so they cannot compute it.
pub(crate) fn of_form(cookie: &str, sessions: &str) -> String {
    BASE64URL_NOPAD.encode(&Sha256::digest(format!("form\0{cookie}\0{sessions}")))
}

/// The marker of a browser that has logged in with this name. Unknown browsers do not exhaust its attempts.
pub(crate) fn known(secret: &str, nonce: &str, key: &str) -> String {
    signed(secret, "known", nonce, key)
}

/// The nonce, and its MAC for this purpose and subject.
pub(crate) fn signed(key: &str, purpose: &str, nonce: &str, subject: &str) -> String {
    format!("{nonce}.{}", BASE64URL_NOPAD.encode(&mac(key, purpose, nonce, subject)))
}

fn mac(key: &str, purpose: &str, nonce: &str, subject: &str) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(format!("{purpose}\0{nonce}\0{subject}").as_bytes());
    mac.finalize().into_bytes().into()
}

/// Whether a marker was issued for this name.
pub(crate) fn is_known(secret: &str, shown: &str, key: &str) -> bool {
    let Some((nonce, _)) = shown.split_once('.') else { return false };
    same(&known(secret, nonce, key), shown)
}

/// Compares two texts in constant time.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

fn fill(bytes: &mut [u8]) -> Result<(), String> {
    getrandom::fill(bytes).map_err(|error| format!("cannot read random numbers: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h66_a_session_has_256_bits_and_is_kept_hashed() {
        let (one, other) = (random().expect("random"), random().expect("random"));
        assert_ne!(one, other);
        assert_eq!(BASE64URL_NOPAD.decode(one.as_bytes()).expect("text").len(), 32);
        let kept = digest(&one);
        assert!(kept != one && kept == digest(&one) && kept.len() == 43);
    }

    #[test]
    fn a_marker_is_valid_for_one_name() {
        let shown = known("secret", "nonce", "ann");
        assert!(is_known("secret", &shown, "ann"));
        for (secret, shown, key) in [
            ("secret", shown.as_str(), "bob"),
            ("other", &shown, "ann"),
            ("secret", "nonce.", "ann"),
            ("secret", "", "ann"),
        ] {
            assert!(!is_known(secret, shown, key), "{secret} {shown} {key}");
        }
    }

    #[test]
    fn an_invitation_can_be_typed_as_it_comes() {
        let code = invitation().expect("random");
        assert_eq!((code.len(), code.matches('-').count()), (23, 3));
        assert_eq!(spelled_invitation(&code.to_lowercase().replace('-', " ")), spelled_invitation(&code));
    }

    #[test]
    fn h67_the_token_of_a_form_depends_on_both_cookies() {
        let tokens = [of_form("a", ""), of_form("b", ""), of_form("a", "s"), of_form("a", "t")];
        for (place, token) in tokens.iter().enumerate() {
            assert!(tokens.iter().skip(place + 1).all(|other| other != token));
        }
    }
}
