//! Which answers are right. A wrong one is an error and never a success, however fast it came.

use std::str::FromStr;

use crate::record::ErrorKind;
use crate::response::Response;

/// Which answers are right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    /// Its status is one of these; without any, below 400.
    pub statuses: Vec<u16>,
    /// Its body has so many bytes.
    pub length: Option<u64>,
    /// Its body has this SHA-256.
    pub hash: Option<Hash>,
}

/// A SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash(pub [u8; 32]);

impl FromStr for Hash {
    type Err = String;

    fn from_str(text: &str) -> Result<Hash, String> {
        let wrong =
            || "a hash is the SHA-256 of the body, 64 hexadecimal digits, as sha256sum prints it".to_owned();
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut hash = [0; 32];
        for (place, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).map_err(|_| wrong())?;
        }
        Ok(Hash(hash))
    }
}

impl Expect {
    /// Whether an answer is right.
    ///
    /// # Errors
    /// What about it is wrong.
    #[inline]
    pub fn judge(&self, response: &Response) -> Result<(), ErrorKind> {
        let status_is_right = match self.statuses.as_slice() {
            [] => response.status < 400,
            statuses => statuses.contains(&response.status),
        };
        if !status_is_right {
            return Err(ErrorKind::Status);
        }
        if self.length.is_some_and(|length| length != response.length) {
            return Err(ErrorKind::Length);
        }
        if self.hash.is_some_and(|hash| response.hash != Some(hash.0)) {
            return Err(ErrorKind::Hash);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_expectation_is_an_error_of_its_own() {
        let right = Response { status: 200, length: 5, hash: Some([7; 32]), persistent: true };
        let expect = Expect { statuses: vec![200, 206], length: Some(5), hash: Some(Hash([7; 32])) };
        assert_eq!(expect.judge(&right), Ok(()));
        assert_eq!(expect.judge(&Response { status: 404, ..right }), Err(ErrorKind::Status));
        assert_eq!(expect.judge(&Response { length: 4, ..right }), Err(ErrorKind::Length));
        assert_eq!(expect.judge(&Response { hash: None, ..right }), Err(ErrorKind::Hash));
        assert_eq!(Expect::default().judge(&Response { status: 304, ..right }), Ok(()));
        assert_eq!(Expect::default().judge(&Response { status: 503, ..right }), Err(ErrorKind::Status));
    }

    #[test]
    fn a_hash_is_read() {
        let text = "00ff".repeat(16);
        assert_eq!(text.parse::<Hash>().map(|hash| hash.0[..3].to_vec()), Ok(vec![0, 255, 0]));
        for wrong in ["", "00", &"0g".repeat(32), &"é".repeat(32)] {
            assert!(wrong.parse::<Hash>().is_err());
        }
    }
}
