//! Digests of content: 128 bits, so that nobody meets two contents with the same by chance.

use std::fmt::Write;

use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest as _};

/// A digest that is being made.
#[derive(Default)]
pub(crate) struct Digest(Blake2b<U16>);

impl Digest {
    /// Goes on with these bytes.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// What came of all of them, in 32 hexadecimal digits.
    pub(crate) fn finish(self) -> String {
        let mut digits = String::with_capacity(32);
        for byte in self.0.finalize() {
            write!(digits, "{byte:02x}").expect("writing to a String does not fail");
        }
        digits
    }
}

/// The digest of content that is all there.
pub(crate) fn of(content: &[u8]) -> String {
    let mut digest = Digest::default();
    digest.add(content);
    digest.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_one() {
        // BLAKE2b (RFC 7693) of 16 bytes, as `b2sum -l 128` has it.
        assert_eq!(of(b""), "cae66941d9efbd404e4d88758ea67670");
        assert_eq!(of(b"abc"), "cf4ab791c62b8d2b2109c90275287816");
    }
}
