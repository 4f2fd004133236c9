//! A slow and simple decoder of HPACK, for comparison. It reads Huffman codes bit by bit, and its table is a queue.

use std::collections::{HashMap, VecDeque};
use std::sync::LazyLock;

use tenfold_wire::huffman;

use crate::Field;

/// The code of each byte, as its bits.
static CODES: LazyLock<HashMap<Vec<bool>, u8>> = LazyLock::new(|| {
    let bits = |byte: u8| {
        let mut eight = Vec::new();
        huffman::encode(&[byte; 8], &mut eight);
        // Eight codes are as many bytes as a code has bits.
        let length = eight.len();
        all_bits(&eight).take(length).collect()
    };
    (0..=255).map(|byte| (bits(byte), byte)).collect()
});

fn all_bits(bytes: &[u8]) -> impl Iterator<Item = bool> {
    bytes.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1))
}

/// The decoder of a connection whose settings allow a table of `limit` octets.
pub(crate) struct SlowDecoder {
    pub(crate) limit: usize,
    most: usize,
    table: VecDeque<Field>,
}

/// Static entries, as a fast decoder of their indexes reads them.
static STATIC: LazyLock<Vec<Field>> = LazyLock::new(|| {
    let block: Vec<u8> = (1..=61).map(|index| 0x80 | index).collect();
    crate::decode(&mut tenfold_wire::hpack::Decoder::new(), &block).expect("the table has 61 entries")
});

impl SlowDecoder {
    pub(crate) fn new() -> SlowDecoder {
        SlowDecoder { limit: 4096, most: 4096, table: VecDeque::new() }
    }

    /// The fields of a block. `None`: it is malformed.
    pub(crate) fn decode(&mut self, mut block: &[u8]) -> Option<Vec<Field>> {
        let mut fields = Vec::new();
        let mut updates = 0;
        while let Some(&first) = block.first() {
            if first & 0xe0 == 0x20 {
                updates += 1;
                let size = number(&mut block, 5)?;
                if !fields.is_empty() || updates > 2 || size > self.limit as u128 {
                    return None;
                }
                self.most = size as usize;
                self.evict();
                continue;
            }
            let field = if first & 0x80 != 0 {
                let index = number(&mut block, 7)?;
                self.entry(index)?
            } else {
                let index = number(&mut block, if first & 0x40 != 0 { 6 } else { 4 })?;
                let name = if index == 0 { string(&mut block)? } else { self.entry(index)?.0 };
                (name, string(&mut block)?)
            };
            if first & 0xc0 == 0x40 {
                self.table.push_front(field.clone());
                self.evict();
            }
            fields.push(field);
        }
        Some(fields)
    }

    fn entry(&self, index: u128) -> Option<Field> {
        let index = usize::try_from(index).ok()?.checked_sub(1)?;
        STATIC.get(index).or_else(|| self.table.get(index - STATIC.len())).cloned()
    }

    fn evict(&mut self) {
        let size = |(name, value): &Field| name.len() + value.len() + 32;
        while self.table.iter().map(size).sum::<usize>() > self.most {
            self.table.pop_back();
        }
    }
}

fn number(input: &mut &[u8], prefix: u32) -> Option<u128> {
    let most = (1 << prefix) - 1;
    let mut value = u128::from(input.split_off_first()? & most as u8);
    if value < most {
        return Some(value);
    }
    for at in 0..9 {
        let byte = *input.split_off_first()?;
        value += u128::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            return (value < 1 << 62).then_some(value);
        }
    }
    None
}

fn string(input: &mut &[u8]) -> Option<Vec<u8>> {
    let is_huffman = input.first()? & 0x80 != 0;
    let length = usize::try_from(number(input, 7)?).ok()?;
    let bytes = input.split_off(..length)?;
    if !is_huffman {
        return Some(bytes.to_vec());
    }
    let (mut text, mut code) = (Vec::new(), Vec::new());
    for bit in all_bits(bytes) {
        code.push(bit);
        if let Some(byte) = CODES.get(&code) {
            text.push(*byte);
            code.clear();
        }
    }
    (code.len() < 8 && code.iter().all(|bit| *bit)).then_some(text)
}
