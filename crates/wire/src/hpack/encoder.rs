//! Prepared blocks, and the encoder of a connection.
//!
//! An encoder that inserts fields as it meets them gives the same response another block on each connection. This
//! encoder inserts only [`Constants`], all of them and once, so the rest of a [`Block`] is the same bytes everywhere.

use crate::hpack::static_table::{self, Match};
use crate::hpack::table::{DEFAULT_TABLE_SIZE, OVERHEAD};
use crate::{huffman, integer};

/// The most fields of [`Constants`].
pub const MOST_CONSTANTS: usize = 16;

/// The largest table of the peer that an encoder uses, in octets. A larger setting of the peer changes nothing.
const MOST_TABLE: u16 = DEFAULT_TABLE_SIZE;

/// Fields that most blocks of a configuration contain: `server`, `x-content-type-options`, or the fields of a request
/// that is repeated.
///
/// The first block of a connection with all of them inserts them into the peer's table, and later blocks refer to
/// them. A block before it, or with a small table of the peer, has them as literals.
#[derive(Clone, Debug, Default)]
pub struct Constants {
    fields: Vec<Field>,
    /// The fields as literals without indexing, each from the end of the previous field.
    literals: Vec<u8>,
    ends: Vec<u16>,
    /// The fields as literals with indexing.
    insertions: Vec<u8>,
    /// Their size in a table (RFC 7541 §4.1).
    size: u16,
}

/// A name and a value.
type Field = (Box<[u8]>, Box<[u8]>);

/// The fields of a message, encoded for any connection whose encoder has the same [`Constants`]. It is prepared once
/// and written many times, or cleared and filled for each message.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The pseudo-fields, and then the fields that are not constant.
    bytes: Vec<u8>,
    /// The end of the pseudo-fields.
    pseudo: usize,
    /// A bit for each constant field.
    constants: u16,
    /// The place of the value of `date`.
    date: Option<usize>,
}

/// The length of a date in bytes (RFC 9110 §5.6.7).
pub const DATE_LENGTH: usize = 29;

/// The encoder of a connection: whether the peer's table has the constants, and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoder {
    has_constants: bool,
    /// The size of the peer's table, as the last block announced it.
    announced: u16,
    /// The smallest size since the last block.
    smallest: u16,
    /// The size from the next block on.
    wanted: u16,
}

/// The bytes of a name that needs no memory on the heap. No static entry has a longer name.
const SHORT_NAME: usize = 64;

/// Names whose values never enter a table: an attacker could guess them (RFC 7541 §7.1.3).
const SECRET: [&[u8]; 4] = [b"authorization", b"cookie", b"proxy-authorization", b"set-cookie"];

/// The representations of a literal (RFC 7541 §6.2): the bits of the index, and the high bits of the first byte.
const INSERTED: (u8, u8) = (6, 0x40);
const NOT_INDEXED: (u8, u8) = (4, 0x00);
const NEVER_INDEXED: (u8, u8) = (4, 0x10);

impl Constants {
    /// Prepares these fields, pseudo-fields first; names in any case. Secret fields, fields beyond
    /// [`MOST_CONSTANTS`] and fields that no table of 4,096 octets takes are left out: blocks have them as literals.
    pub fn new<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Constants {
        let mut constants = Constants::default();
        for (name, value) in fields {
            let name = &name.to_ascii_lowercase()[..];
            let size = usize::from(constants.size) + name.len() + value.len() + OVERHEAD;
            let is_static = matches!(static_table::find(name, value), Match::Field(_));
            let fits = size <= usize::from(MOST_TABLE) && constants.fields.len() < MOST_CONSTANTS;
            if is_static || SECRET.contains(&name) || !fits || constants.find(name, value).is_some() {
                continue;
            }
            literal(NOT_INDEXED, name, value, &mut constants.literals);
            literal(INSERTED, name, value, &mut constants.insertions);
            // The size of the fields bounds these: with 32 octets for each, a literal is shorter than its entry.
            constants.ends.push(constants.literals.len() as u16);
            constants.size = size as u16;
            constants.fields.push((name.into(), value.into()));
        }
        constants
    }

    /// The number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    fn find(&self, name: &[u8], value: &[u8]) -> Option<usize> {
        self.fields.iter().position(|field| *field.0 == *name && *field.1 == *value)
    }

    /// The index of a field when all are inserted: the last field is the newest entry.
    fn index(&self, at: usize) -> u8 {
        (static_table::LENGTH + self.fields.len() - at) as u8
    }

    fn literal(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.literals[start.into()..self.ends[at].into()]
    }

    /// The bits of all fields.
    fn all(&self) -> u16 {
        ((1u32 << self.fields.len()) - 1) as u16
    }
}

impl Block {
    /// A block without fields.
    pub fn new() -> Block {
        Block::default()
    }

    /// Removes all fields, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.pseudo, self.constants, self.date) = (0, 0, None);
    }

    /// Adds `:status`.
    pub fn status(&mut self, status: u16) {
        let digits = [status / 100 % 10, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
        self.field(&Constants::default(), b":status", &digits);
    }

    /// Adds a field; the name in any case. A pseudo-field goes before other fields, and a constant field before
    /// other fields that are not. The order of further fields stays (RFC 9110 §5.3 needs it for equal names).
    pub fn field(&mut self, constants: &Constants, name: &[u8], value: &[u8]) {
        let mut short = [0; SHORT_NAME];
        if let Some(lower) = short.get_mut(..name.len()) {
            lower.copy_from_slice(name);
            lower.make_ascii_lowercase();
            self.lower_case_field(constants, lower, value);
        } else {
            self.lower_case_field(constants, &name.to_ascii_lowercase(), value);
        }
    }

    fn lower_case_field(&mut self, constants: &Constants, name: &[u8], value: &[u8]) {
        if let Some(at) = constants.find(name, value).filter(|at| self.constants & 1 << at == 0) {
            self.constants |= 1 << at;
            return;
        }
        let start = self.bytes.len();
        let kind = if SECRET.contains(&name) { NEVER_INDEXED } else { NOT_INDEXED };
        literal(kind, name, value, &mut self.bytes);
        if name.starts_with(b":") {
            let length = self.bytes.len() - start;
            self.bytes[self.pseudo..].rotate_right(length);
            self.pseudo += length;
            self.date = self.date.map(|at| at + length);
        }
    }

    /// Adds a field `date` whose value is written for each message ([`Encoder::write`]).
    pub fn date(&mut self) {
        let Match::Name(index) = static_table::find(b"date", b"?") else {
            unreachable!("the table has date")
        };
        integer::encode(index.into(), NOT_INDEXED.0, NOT_INDEXED.1, &mut self.bytes);
        self.bytes.push(DATE_LENGTH as u8);
        self.date = Some(self.bytes.len());
        self.bytes.extend([b' '; DATE_LENGTH]);
    }

    /// The bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder::new()
    }
}

impl Encoder {
    /// The encoder of a new connection, whose peer has a table of 4,096 octets.
    pub fn new() -> Encoder {
        let size = MOST_TABLE;
        Encoder { has_constants: false, announced: size, smallest: size, wanted: size }
    }

    /// Takes over the peer's SETTINGS_HEADER_TABLE_SIZE, when the acknowledgement is written. The next block announces
    /// a change (RFC 7541 §4.2).
    pub fn set_limit(&mut self, size: u32) {
        self.wanted = size.min(MOST_TABLE.into()) as u16;
        self.smallest = self.smallest.min(self.wanted);
    }

    /// Appends the block for this connection to `out`. Returns the place in `out` of the
    /// [`DATE_LENGTH`] bytes of the date, if the block has a date.
    ///
    /// `constants` are the same for all blocks of the connection, and were given to [`Block::field`].
    pub fn write(&mut self, constants: &Constants, block: &Block, out: &mut Vec<u8>) -> Option<usize> {
        self.announce(constants, out);
        let (pseudo, rest) = block.bytes.split_at(block.pseudo);
        out.extend_from_slice(pseudo);
        let mut bits = block.constants;
        if bits != 0 && bits == constants.all() && !self.has_constants && constants.size <= self.announced {
            out.extend_from_slice(&constants.insertions);
            self.has_constants = true;
            bits = 0;
        }
        while bits != 0 {
            let at = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            if self.has_constants {
                out.push(0x80 | constants.index(at));
            } else {
                out.extend_from_slice(constants.literal(at));
            }
        }
        out.extend_from_slice(rest);
        block.date.map(|at| out.len() - (block.bytes.len() - at))
    }

    /// Announces sizes of the table that differ from the announced one, the smallest first (RFC 7541 §4.2).
    fn announce(&mut self, constants: &Constants, out: &mut Vec<u8>) {
        if self.smallest < self.announced {
            integer::encode(self.smallest.into(), 5, 0x20, out);
            self.announced = self.smallest;
            self.has_constants &= constants.size <= self.smallest;
        }
        if self.wanted != self.announced {
            integer::encode(self.wanted.into(), 5, 0x20, out);
            self.announced = self.wanted;
        }
        self.smallest = self.wanted;
    }
}

/// Appends a field: indexed if the static table has it, else as a literal of this kind.
fn literal((prefix, high): (u8, u8), name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    match static_table::find(name, value) {
        Match::Field(index) => return integer::encode(index.into(), 7, 0x80, out),
        Match::Name(index) => integer::encode(index.into(), prefix, high, out),
        Match::Nothing => {
            out.push(high);
            string(name, out);
        }
    }
    string(value, out);
}

/// Appends a string, Huffman-coded if that is shorter.
fn string(text: &[u8], out: &mut Vec<u8>) {
    let length = huffman::encoded_len(text);
    if length < text.len() {
        integer::encode(length as u64, 7, 0x80, out);
        huffman::encode(text, out);
    } else {
        integer::encode(text.len() as u64, 7, 0, out);
        out.extend_from_slice(text);
    }
}
