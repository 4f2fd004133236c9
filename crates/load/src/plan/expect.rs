//! Expectations of responses. A wrong response is an error and never a success.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
/// The expected properties of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expect {
    /// Accepted statuses; if empty, every status below 400.
    pub statuses: Vec<u16>,
    /// The length of the body.
    pub length: Option<u64>,
    /// The SHA-256 of the body.
    pub hash: Option<BodyHash>,
}

/// A SHA-256 digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyHash(pub [u8; 32]);

impl FromStr for BodyHash {
    type Err = String;

    fn from_str(text: &str) -> Result<BodyHash, String> {
        let wrong =
            || "a hash is the SHA-256 of the body, 64 hexadecimal digits, as sha256sum prints it".to_owned();
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut hash = [0; 32];
        for (place, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).map_err(|_| wrong())?;
        }
        Ok(BodyHash(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_parsed() {
        let text = "00ff".repeat(16);
        assert_eq!(text.parse::<BodyHash>().map(|hash| hash.0[..3].to_vec()), Ok(vec![0, 255, 0]));
        for wrong in ["", "00", &"0g".repeat(32), &"é".repeat(32)] {
            assert!(wrong.parse::<BodyHash>().is_err());
        }
    }
}
