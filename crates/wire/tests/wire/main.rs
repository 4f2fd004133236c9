//! Frames and HPACK, compared with the examples of the RFCs, with slow readers, and with other implementations.

mod agreement;
mod appendix_c;
mod bounds;
mod encoder;
mod frames;
mod properties;
mod random;
mod slow;
mod vectors;

use tenfold_wire::hpack::{Decoder, FieldList, HpackError, ListLimits};

/// A field with its own memory.
type Field = (Vec<u8>, Vec<u8>);

/// Limits that no test reaches by accident.
const WIDE: ListLimits = ListLimits { size: 1 << 24, fields: 1 << 20 };

/// Decodes a whole block.
fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<Field>, HpackError> {
    let mut list = FieldList::new(WIDE);
    decoder.decode(block, true, &mut list)?;
    assert!(!list.is_over());
    Ok(fields(&list))
}

fn fields(list: &FieldList) -> Vec<Field> {
    list.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
}

/// Fields from text.
fn owned(fields: &[(&str, &str)]) -> Vec<Field> {
    fields.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

/// Bytes from hexadecimal digits; spaces are ignored.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hexadecimal digit") as u8;
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
