//! The identifier of a request, which other servers on its way log too.

/// The most bytes of an identifier.
const MOST: usize = 64;

/// An identifier of a request: at most 64 letters, digits and characters of `-._~+/=:@`. Copying it does not
/// allocate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId {
    bytes: [u8; MOST],
    length: u8,
}

impl RequestId {
    /// Accepts an identifier of another program; `None` if it is empty, too long or has other characters.
    pub fn read(text: &[u8]) -> Option<RequestId> {
        let legal = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=:@".contains(byte);
        if text.is_empty() || text.len() > MOST || !text.iter().all(legal) {
            return None;
        }
        let mut bytes = [0; MOST];
        bytes[..text.len()].copy_from_slice(text);
        Some(RequestId { bytes, length: text.len() as u8 })
    }

    /// Formats a number as an identifier.
    pub fn of_number(number: u128) -> RequestId {
        let (digits, mut bytes) = (hexadecimal(number), [0; MOST]);
        bytes[..digits.len()].copy_from_slice(&digits);
        RequestId { bytes, length: digits.len() as u8 }
    }

    /// Returns the identifier.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// Formats a number as 32 hexadecimal digits.
pub(crate) fn hexadecimal(number: u128) -> [u8; 32] {
    std::array::from_fn(|at| b"0123456789abcdef"[(number >> (124 - 4 * at)) as usize & 15])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_short_and_plain() {
        for legal in ["a", "7f000001-0000-4000-8000-000000000001", &"x".repeat(MOST)] {
            assert_eq!(RequestId::read(legal.as_bytes()).expect(legal).as_bytes(), legal.as_bytes());
        }
        for wrong in ["", "a b", "a\"", "a\n", "é", &"x".repeat(MOST + 1)] {
            assert_eq!(RequestId::read(wrong.as_bytes()), None, "{wrong:?}");
        }
        let number = RequestId::of_number(0x0123_4567_89ab_cdef_0000_0000_0000_00ff);
        assert_eq!(number.as_bytes(), b"0123456789abcdef00000000000000ff");
    }
}
