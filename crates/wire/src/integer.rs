//! Integers with a prefix of 1 to 8 bits (RFC 7541 §5.1).

/// The largest integer, as in QPACK (RFC 9204 §4.1.1): 62 bits.
pub const MAX: u64 = (1 << 62) - 1;

/// The most bytes after the prefix: 63 bits, so that a sum with the prefix fits.
const MOST_BYTES: usize = 9;

/// An integer above [`MAX`], or with more bytes than [`MAX`] needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

/// Returns the integer whose first byte has `prefix` bits of it (1 to 8), and its length in bytes. `None`: the input
/// ends inside the integer.
///
/// # Errors
/// [`TooLarge`], also for an integer that zeros make too long.
pub fn decode(input: &[u8], prefix: u8) -> Result<Option<(u64, usize)>, TooLarge> {
    let Some((&first, rest)) = input.split_first() else { return Ok(None) };
    let mask = largest_prefix(prefix);
    let mut value = u64::from(first & mask);
    if value < u64::from(mask) {
        return Ok(Some((value, 1)));
    }
    for (at, &byte) in rest.iter().take(MOST_BYTES).enumerate() {
        value += u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return if value <= MAX { Ok(Some((value, at + 2))) } else { Err(TooLarge) };
        }
    }
    if rest.len() >= MOST_BYTES { Err(TooLarge) } else { Ok(None) }
}

/// Appends `value` with a prefix of `prefix` bits (1 to 8). `high` has the other bits of the first byte.
pub fn encode(value: u64, prefix: u8, high: u8, out: &mut Vec<u8>) {
    let mask = largest_prefix(prefix);
    if value < u64::from(mask) {
        out.push(high | value as u8);
        return;
    }
    out.push(high | mask);
    let mut rest = value - u64::from(mask);
    while rest >= 0x80 {
        out.push(0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// The prefix with all bits set, which announces further bytes.
fn largest_prefix(prefix: u8) -> u8 {
    debug_assert!((1..=8).contains(&prefix), "a prefix has 1 to 8 bits");
    u8::MAX >> (8 - prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: u64, prefix: u8) -> Vec<u8> {
        let mut out = Vec::new();
        encode(value, prefix, 0, &mut out);
        out
    }

    #[test]
    fn the_examples_of_appendix_c_1_are_encoded_and_decoded() {
        for (value, prefix, bytes) in
            [(10, 5, &[0x0a][..]), (1337, 5, &[0x1f, 0x9a, 0x0a]), (42, 8, &[0x2a]), (127, 7, &[0x7f, 0])]
        {
            assert_eq!(encoded(value, prefix), bytes);
            assert_eq!(decode(bytes, prefix), Ok(Some((value, bytes.len()))));
        }
    }

    #[test]
    fn every_prefix_and_power_of_two_survives_and_its_parts_are_incomplete() {
        for prefix in 1..=8 {
            for shift in 0..=62 {
                for value in [(1u64 << shift) - 1, (1 << shift) % (MAX + 1)] {
                    let bytes = encoded(value, prefix);
                    assert_eq!(decode(&bytes, prefix), Ok(Some((value, bytes.len()))));
                    for cut in 0..bytes.len() {
                        assert_eq!(decode(&bytes[..cut], prefix), Ok(None));
                    }
                }
            }
        }
    }

    #[test]
    fn an_integer_beyond_62_bits_or_of_too_many_bytes_is_an_error() {
        assert_eq!(decode(&encoded(MAX + 1, 5), 5), Err(TooLarge));
        assert_eq!(decode(&[0x3f; 64], 5), Ok(Some((94, 2))), "the second byte ends the integer");
        assert_eq!(decode(&[0xff; 64], 5), Err(TooLarge));
        assert_eq!(decode(&[0x80; 9], 1), Ok(Some((0, 1))));
        let mut zeros = vec![0x1f];
        zeros.extend([0x80; 9]);
        zeros.push(0);
        assert_eq!(decode(&zeros, 5), Err(TooLarge));
    }

    #[test]
    fn the_high_bits_of_the_first_byte_are_kept() {
        let mut out = Vec::new();
        encode(2, 7, 0x80, &mut out);
        encode(4096, 5, 0x20, &mut out);
        assert_eq!(out, [0x82, 0x3f, 0xe1, 0x1f]);
    }
}
