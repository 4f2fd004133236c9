//! The decoder of a connection.

use crate::hpack::error::HpackError;
use crate::hpack::list::{FieldList, WireString};
use crate::hpack::static_table;
use crate::hpack::table::{DEFAULT_TABLE_SIZE, Table};
use crate::integer;

/// The most changes of the table's size at the start of a block (RFC 7541 §4.2).
const MOST_UPDATES: u8 = 2;

/// Decodes the field blocks of a connection, in their order (RFC 7541 §3). Between blocks it is only the table.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// The largest table that our settings allow.
    limit: u16,
    /// The size to which the next block must reduce the table.
    required: Option<u16>,
    start: Start,
}

/// How much of a block was decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// No field yet, and so many changes of the table's size.
    Updates(u8),
    Fields,
}

/// The start of the representation of a field (RFC 7541 §6).
enum Representation<'a> {
    Update(u64),
    Indexed(u64),
    Literal { is_inserted: bool, name: Name<'a>, value: WireString<'a> },
}

enum Name<'a> {
    Indexed(u64),
    Literal(WireString<'a>),
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder::new()
    }
}

impl Decoder {
    /// A decoder with an empty table of at most 4,096 octets, the default of SETTINGS_HEADER_TABLE_SIZE.
    pub fn new() -> Decoder {
        let limit = DEFAULT_TABLE_SIZE;
        Decoder { table: Table::new(limit), limit, required: None, start: Start::Updates(0) }
    }

    /// Sets the largest table, in octets of RFC 7541 §4.1, when the peer has acknowledged our setting. If the table is
    /// larger, the next block must reduce it.
    pub fn set_limit(&mut self, limit: u16) {
        self.limit = limit;
        if limit < self.table.most() {
            self.required = Some(self.required.map_or(limit, |required| required.min(limit)));
        }
    }

    /// The bytes of the table on the heap: at most the limit, and 0 while the table is empty.
    pub fn heap_bytes(&self) -> usize {
        self.table.heap_bytes()
    }

    /// Decodes the complete fields at the start of `fragment` into `list`, and returns their length in bytes. The rest
    /// is the beginning of a field: the next call gets it again, followed by the next fragment. The caller bounds this
    /// rest. `is_last`: the block ends with this fragment.
    ///
    /// A list over its limits is decoded to its end, so that the table agrees with the peer's. Memory does not grow
    /// then, except for one field of the size of the table.
    ///
    /// # Errors
    /// [`HpackError`], after which the connection must end.
    pub fn decode(
        &mut self,
        fragment: &[u8],
        is_last: bool,
        list: &mut FieldList,
    ) -> Result<usize, HpackError> {
        let mut rest = fragment;
        loop {
            // Most fields of a repeated request are an index of one byte.
            if let [index @ 0x81..=0xfe, after @ ..] = rest {
                self.begin_fields()?;
                self.indexed((index & 0x7f).into(), list)?;
                rest = after;
                continue;
            }
            let Some((representation, length)) = representation(rest)? else { break };
            rest = &rest[length..];
            match representation {
                Representation::Update(size) => self.update(size)?,
                Representation::Indexed(index) => {
                    self.begin_fields()?;
                    self.indexed(index, list)?;
                }
                Representation::Literal { is_inserted, name, value } => {
                    self.begin_fields()?;
                    self.literal(is_inserted, name, value, list)?;
                }
            }
        }
        if is_last {
            if !rest.is_empty() {
                return Err(HpackError::Truncated);
            }
            self.begin_fields()?;
            self.start = Start::Updates(0);
        }
        Ok(fragment.len() - rest.len())
    }

    fn update(&mut self, size: u64) -> Result<(), HpackError> {
        let Start::Updates(updates @ ..MOST_UPDATES) = self.start else {
            return Err(HpackError::MisplacedUpdate);
        };
        self.start = Start::Updates(updates + 1);
        let size = u16::try_from(size).map_err(|_| HpackError::TooLargeUpdate)?;
        if size > self.limit {
            return Err(HpackError::TooLargeUpdate);
        }
        // The first change has the smallest size since the last block (RFC 7541 §4.2).
        if self.required.take().is_some_and(|required| size > required) {
            return Err(HpackError::MissingUpdate);
        }
        self.table.resize(size);
        Ok(())
    }

    fn begin_fields(&mut self) -> Result<(), HpackError> {
        self.start = Start::Fields;
        if self.required.is_some() { Err(HpackError::MissingUpdate) } else { Ok(()) }
    }

    fn indexed(&self, index: u64, list: &mut FieldList) -> Result<(), HpackError> {
        let (name, value) = self.entry(index)?;
        list.push(name, value);
        Ok(())
    }

    fn literal(
        &mut self,
        is_inserted: bool,
        name: Name<'_>,
        value: WireString<'_>,
        list: &mut FieldList,
    ) -> Result<(), HpackError> {
        let mark = list.mark();
        // The table needs a field that the list does not.
        let room = list.room().max(if is_inserted { self.table.most().into() } else { 0 });
        let name = match name {
            Name::Literal(string) => list.append(string, room)?,
            Name::Indexed(index) => {
                let bytes = self.entry(index)?.0;
                list.append(WireString { is_huffman: false, bytes }, room)?
            }
        };
        let value = list.append(value, room.saturating_sub(name))?;
        if is_inserted {
            if name + value <= room {
                let (name, value) = list.appended(mark, name);
                self.table.insert(name, value);
            } else {
                self.table.clear();
            }
        }
        list.commit(mark, name, value);
        Ok(())
    }

    /// The entry of the static or dynamic table (RFC 7541 §2.3.3).
    fn entry(&self, index: u64) -> Result<(&[u8], &[u8]), HpackError> {
        let index = usize::try_from(index).map_err(|_| HpackError::Index)?;
        let dynamic = || self.table.get(index.checked_sub(static_table::LENGTH + 1)?);
        static_table::get(index).or_else(dynamic).ok_or(HpackError::Index)
    }
}

/// The representation at the start of the input, and its length. `None`: it is incomplete.
fn representation(input: &[u8]) -> Result<Option<(Representation<'_>, usize)>, HpackError> {
    let Some(&first) = input.first() else { return Ok(None) };
    let number = |prefix| integer::decode(input, prefix).map_err(|_| HpackError::Integer);
    let is_inserted = first & 0x40 != 0;
    match first {
        0x80.. => Ok(number(7)?.map(|(index, length)| (Representation::Indexed(index), length))),
        0x20..0x40 => Ok(number(5)?.map(|(size, length)| (Representation::Update(size), length))),
        _ => {
            let Some((index, mut length)) = number(if is_inserted { 6 } else { 4 })? else { return Ok(None) };
            let name = if index > 0 {
                Name::Indexed(index)
            } else {
                let Some((string, bytes)) = string(&input[length..])? else { return Ok(None) };
                length += bytes;
                Name::Literal(string)
            };
            let Some((value, bytes)) = string(&input[length..])? else { return Ok(None) };
            Ok(Some((Representation::Literal { is_inserted, name, value }, length + bytes)))
        }
    }
}

/// The string at the start of the input (RFC 7541 §5.2), and its length with its prefix. `None`: it is incomplete.
fn string(input: &[u8]) -> Result<Option<(WireString<'_>, usize)>, HpackError> {
    let Some((length, prefix)) = integer::decode(input, 7).map_err(|_| HpackError::Integer)? else {
        return Ok(None);
    };
    let Ok(length) = usize::try_from(length) else { return Ok(None) };
    let Some(bytes) = input[prefix..].get(..length) else { return Ok(None) };
    Ok(Some((WireString { is_huffman: input[0] & 0x80 != 0, bytes }, prefix + length)))
}
