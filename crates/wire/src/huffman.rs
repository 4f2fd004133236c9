//! The Huffman code of HPACK and QPACK (RFC 7541 §5.2, appendix B).
//!
//! The code is canonical: codes of one length are consecutive, in the order of their symbols, and a longer code follows
//! the shorter ones. So the lengths are the whole code, and the compiler computes the tables from them.

/// The bits of each symbol's code: bytes, then the end of a string (EOS).
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
     6, 10, 10, 12, 13,  6,  8, 11, 10, 10,  8, 11,  8,  6,  6,  6,
     5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8, 15,  6, 12, 10,
    13,  6,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,
     7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8, 13, 19, 13, 14,  6,
    15,  5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,
     6,  7,  6,  5,  5,  6,  7,  7,  7,  7,  7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The symbol that ends a string, which no string contains.
const EOS: u16 = 256;

/// The bits of the longest code.
const LONGEST: usize = 30;

/// The bits that the first table decodes in a step.
const STEP: u32 = 8;

/// Tables that follow from [`LENGTHS`].
struct Tables {
    /// The code of each symbol, in its lowest bits.
    codes: [u32; 257],
    /// For each first byte: the symbol of a code of at most [`STEP`] bits, and these bits. 0 bits: the code is longer.
    short: [(u8, u8); 1 << STEP],
    /// The symbols in the order of their codes.
    symbols: [u16; 257],
    /// For each number of bits: the first code that is longer, in the highest bits.
    limits: [u64; LONGEST + 1],
    /// For each number of bits: the first code with it, in the highest bits.
    firsts: [u32; LONGEST + 1],
    /// For each number of bits: the place of its first code in `symbols`.
    places: [u16; LONGEST + 1],
}

static TABLES: Tables = tables();

const fn tables() -> Tables {
    let mut tables = Tables {
        codes: [0; 257],
        short: [(0, 0); 1 << STEP],
        symbols: [0; 257],
        limits: [0; LONGEST + 1],
        firsts: [0; LONGEST + 1],
        places: [0; LONGEST + 1],
    };
    let (mut bits, mut code, mut place) = (1, 0u64, 0);
    while bits <= LONGEST {
        code <<= 1;
        tables.firsts[bits] = (code << (32 - bits)) as u32;
        tables.places[bits] = place as u16;
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == bits {
                tables.codes[symbol] = code as u32;
                tables.symbols[place] = symbol as u16;
                place += 1;
                let mut tail = 0;
                while bits <= STEP as usize && tail < 1 << (STEP as usize - bits) {
                    tables.short[(code << (STEP as usize - bits)) as usize + tail] =
                        (symbol as u8, bits as u8);
                    tail += 1;
                }
                code += 1;
            }
            symbol += 1;
        }
        tables.limits[bits] = code << (32 - bits);
        bits += 1;
    }
    assert!(code == 1 << LONGEST, "the code is complete");
    tables
}

/// The reason why bytes are not a Huffman-coded string (RFC 7541 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HuffmanError {
    /// The string contains the symbol EOS.
    EndOfString,
    /// The padding has more than 7 bits, or a bit that is 0.
    Padding,
}

/// Returns the length in bytes of these bytes when encoded.
pub fn encoded_len(bytes: &[u8]) -> usize {
    let bits: usize = bytes.iter().map(|&byte| usize::from(LENGTHS[usize::from(byte)])).sum();
    bits.div_ceil(8)
}

/// Appends the encoded bytes: [`encoded_len`] bytes.
pub fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    // The lowest `count` bits of `bits` are not yet written: at most 7 before a symbol.
    let (mut bits, mut count) = (0u64, 0);
    for &byte in bytes {
        let length = LENGTHS[usize::from(byte)];
        bits = bits << length | u64::from(TABLES.codes[usize::from(byte)]);
        count += length;
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        out.push((bits << (8 - count)) as u8 | u8::MAX >> count);
    }
}

/// Returns the most bytes that `length` encoded bytes decode to: the shortest code has 5 bits.
pub fn most_decoded(length: usize) -> usize {
    length.saturating_mul(8) / 5
}

/// Decodes `input` into the beginning of `out`, and returns the decoded length. If that exceeds `out`, the rest is
/// checked and counted, but not written.
///
/// # Errors
/// [`HuffmanError`]; then `out` has the symbols before it.
pub fn decode(input: &[u8], out: &mut [u8]) -> Result<usize, HuffmanError> {
    let mut input = Bits { bits: 0, count: 0, rest: input };
    let mut length = 0;
    loop {
        input.fill();
        // A whole code is there, until the last bits.
        let enough = if input.rest.is_empty() { 1 } else { LONGEST as u32 };
        while input.count >= enough {
            let (symbol, bits) = first_symbol((input.bits >> 32) as u32);
            if bits > input.count {
                return if input.is_padding() { Ok(length) } else { Err(HuffmanError::Padding) };
            }
            if symbol == EOS {
                return Err(HuffmanError::EndOfString);
            }
            input.bits <<= bits;
            input.count -= bits;
            if let Some(place) = out.get_mut(length) {
                *place = symbol as u8;
            }
            length += 1;
        }
        if input.count == 0 && input.rest.is_empty() {
            return Ok(length);
        }
    }
}

/// The unread bits of a string.
struct Bits<'a> {
    /// The next bits, in the highest places. When `rest` is empty, zeros follow.
    bits: u64,
    count: u32,
    rest: &'a [u8],
}

impl Bits<'_> {
    /// Reads bytes until no further byte fits, or the input ends.
    #[inline]
    fn fill(&mut self) {
        if let Some(eight) = self.rest.first_chunk() {
            // The places after `count` get bits of the next byte, which the next call gives them again.
            self.bits |= u64::from_be_bytes(*eight) >> self.count;
            let bytes = (63 - self.count) / 8;
            self.count += 8 * bytes;
            self.rest = &self.rest[bytes as usize..];
            return;
        }
        while self.count <= 56
            && let Some((&byte, rest)) = self.rest.split_first()
        {
            self.bits |= u64::from(byte) << (56 - self.count);
            self.count += 8;
            self.rest = rest;
        }
    }

    fn is_padding(&self) -> bool {
        self.count < 8 && self.bits.leading_ones() >= self.count
    }
}

/// The symbol whose code begins `bits`, and the bits of the code.
#[inline]
fn first_symbol(bits: u32) -> (u16, u32) {
    let (symbol, length) = TABLES.short[(bits >> (32 - STEP)) as usize];
    if length > 0 {
        return (u16::from(symbol), u32::from(length));
    }
    let mut length = STEP as usize + 1;
    while u64::from(bits) >= TABLES.limits[length] {
        length += 1;
    }
    let place =
        usize::from(TABLES.places[length]) + ((bits - TABLES.firsts[length]) >> (32 - length)) as usize;
    (TABLES.symbols[place], length as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(text, &mut out);
        assert_eq!(out.len(), encoded_len(text));
        out
    }

    fn decoded(input: &[u8]) -> Result<Vec<u8>, HuffmanError> {
        let mut out = vec![0; most_decoded(input.len())];
        let length = decode(input, &mut out)?;
        out.truncate(length);
        Ok(out)
    }

    #[test]
    fn the_strings_of_appendix_c_are_encoded_and_decoded() {
        for (text, bytes) in [
            ("www.example.com", &b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..]),
            ("no-cache", b"\xa8\xeb\x10\x64\x9c\xbf"),
            ("custom-value", b"\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf"),
            ("private", b"\xae\xc3\x77\x1a\x4b"),
            ("302", b"\x64\x02"),
        ] {
            assert_eq!(encoded(text.as_bytes()), bytes);
            assert_eq!(decoded(bytes), Ok(text.as_bytes().to_vec()));
        }
    }

    #[test]
    fn codes_of_appendix_b_are_computed() {
        for (symbol, code) in [
            (b'0', 0x0),
            (b' ', 0x14),
            (b':', 0x5c),
            (b'&', 0xf8),
            (b'!', 0x3f8),
            (b'\\', 0x7fff0),
            (0, 0x1ff8),
            (10, 0x3fff_fffc),
            (249, 0xfff_fffe),
            (255, 0x3ff_ffee),
        ] {
            assert_eq!(TABLES.codes[usize::from(symbol)], code, "{symbol}");
        }
        assert_eq!(TABLES.codes[usize::from(EOS)], 0x3fff_ffff);
    }

    #[test]
    fn every_byte_survives_next_to_every_other() {
        for first in 0..=255 {
            for second in 0..=255 {
                let text = [first, second, first];
                assert_eq!(decoded(&encoded(&text)), Ok(text.to_vec()));
            }
        }
    }

    #[test]
    fn padding_has_at_most_seven_bits_and_all_are_ones() {
        assert_eq!(decoded(b""), Ok(vec![]));
        assert_eq!(decoded(b"\xff"), Err(HuffmanError::Padding), "eight bits");
        assert_eq!(decoded(b"\x1f"), Ok(b"a".to_vec()));
        assert_eq!(decoded(b"\x1e"), Err(HuffmanError::Padding), "the last bit is 0");
        assert_eq!(decoded(b"\x1f\xff"), Err(HuffmanError::Padding), "eleven bits");
        // A code of 7 bits and one bit of padding.
        assert_eq!(decoded(b"\xb9"), Ok(b":".to_vec()));
        assert_eq!(decoded(b"\xb8"), Err(HuffmanError::Padding));
    }

    #[test]
    fn the_end_of_string_symbol_is_an_error() {
        assert_eq!(decoded(b"\xff\xff\xff\xff"), Err(HuffmanError::EndOfString));
        assert_eq!(decoded(b"\x1f\xff\xff\xff\xff\xff"), Err(HuffmanError::EndOfString));
        assert_eq!(decoded(b"\xff\xff\xff\xfb"), Ok(vec![22]), "a code of 30 bits and two bits of padding");
        assert_eq!(decoded(b"\xff\xff\xff\xfa"), Err(HuffmanError::Padding));
    }

    #[test]
    fn a_string_longer_than_the_buffer_is_counted_and_checked() {
        let text = [b'a'; 100];
        let mut bytes = encoded(&text);
        let mut out = [0; 10];
        assert_eq!(decode(&bytes, &mut out), Ok(100));
        assert_eq!(out, text[..10]);
        assert_eq!(decode(&bytes, &mut []), Ok(100));
        bytes.push(0xff);
        assert_eq!(decode(&bytes, &mut out), Err(HuffmanError::Padding));
    }
}
