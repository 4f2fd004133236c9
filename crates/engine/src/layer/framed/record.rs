//! The wire format: records, and the keys that seal and open them.
//!
//! A record is its kind (1 byte), the version (1 byte), the length of its content (2 bytes, big endian), the content,
//! and a tag of 8 bytes over all of these and the record's number in its direction. The content is masked, so that
//! plaintext that bypasses the layer is noticed.

use std::ops::Range;

/// The most bytes of content in a record.
pub const CONTENT_BYTES: usize = 16 * 1024;
/// Bytes in front of the content.
pub const HEADER_BYTES: usize = 4;
/// Bytes behind the content.
pub const TAG_BYTES: usize = 8;
/// The most bytes of a record.
pub const RECORD_BYTES: usize = HEADER_BYTES + CONTENT_BYTES + TAG_BYTES;

const VERSION: u8 = 1;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// The first record of a direction: see [`hello`].
    Hello = 1,
    /// Plaintext.
    Data = 2,
    /// No plaintext. A peer answers [`NOTE_ASKS`] with [`NOTE_ANSWERS`] and ignores any other content.
    Note = 3,
    /// The last record of a direction.
    Close = 4,
    /// The number of an [`Alert`]. The connection is over.
    Alert = 5,
}

/// The content of a note that the peer answers.
pub const NOTE_ASKS: &[u8] = b"?";
/// The answer to it.
pub const NOTE_ANSWERS: &[u8] = b"!";

/// The rule that a record of the peer broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alert {
    /// The header is not one of this format.
    Malformed = 1,
    /// The tag does not match.
    BadTag = 2,
    /// The content is longer than [`CONTENT_BYTES`].
    TooLarge = 3,
    /// The hello is not one of this format.
    BadHello = 4,
    /// A record of this kind cannot come here.
    Unexpected = 5,
    /// Too many records in a row carried no plaintext.
    TooManyEmpty = 6,
}

impl Alert {
    /// The content of its record.
    pub fn content(self) -> [u8; 1] {
        [self as u8]
    }
}

/// Returns the length of the record that `bytes` begin with, or `None` while a part of it is missing.
///
/// # Errors
/// The header is wrong: this is noticed before the rest arrives.
pub fn length(bytes: &[u8]) -> Result<Option<usize>, Alert> {
    if bytes.first().is_some_and(|&kind| kind_of(kind).is_none())
        || bytes.get(1).is_some_and(|&version| version != VERSION)
    {
        return Err(Alert::Malformed);
    }
    let &[_, _, high, low, ..] = bytes else { return Ok(None) };
    let content = usize::from(u16::from_be_bytes([high, low]));
    if content > CONTENT_BYTES {
        return Err(Alert::TooLarge);
    }
    let length = HEADER_BYTES + content + TAG_BYTES;
    Ok((bytes.len() >= length).then_some(length))
}

fn kind_of(byte: u8) -> Option<RecordKind> {
    [RecordKind::Hello, RecordKind::Data, RecordKind::Note, RecordKind::Close, RecordKind::Alert]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
}

const MAGIC: [u8; 8] = *b"framed/1";

/// The content of a hello with a number that its sender chose at random.
pub fn hello(random: u64) -> [u8; 16] {
    let mut content = [0; 16];
    content[..8].copy_from_slice(&MAGIC);
    content[8..].copy_from_slice(&random.to_be_bytes());
    content
}

/// The random number of a hello, unless `content` is not one.
pub fn random_of(content: &[u8]) -> Option<u64> {
    let random = content.strip_prefix(&MAGIC)?;
    random.try_into().ok().map(u64::from_be_bytes)
}

/// Seals or opens the records of one direction, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordKey {
    secret: u64,
    /// The number of the next record.
    next: u64,
}

impl RecordKey {
    /// For hellos, and for alerts before both hellos are known.
    pub const PUBLIC: RecordKey = RecordKey { secret: 0, next: 0 };

    /// For records of the client behind its hello. It depends on that hello alone: a client may send before it has
    /// the answer, as with early data of TLS 1.3 (RFC 8446 §2.3).
    pub fn of_client(client: u64) -> RecordKey {
        RecordKey { secret: mix(client, 1), next: 0 }
    }

    /// For records of the server behind its hello.
    pub fn of_server(client: u64, server: u64) -> RecordKey {
        RecordKey { secret: mix(mix(client, 2), server), next: 0 }
    }

    /// Appends a record to `to`. Panics if the content is too long.
    pub fn seal(&mut self, kind: RecordKind, content: &[u8], to: &mut Vec<u8>) {
        assert!(content.len() <= CONTENT_BYTES, "{} bytes do not fit a record", content.len());
        let seed = self.advance();
        let begin = to.len();
        let [high, low] = (content.len() as u16).to_be_bytes();
        to.extend_from_slice(&[kind as u8, VERSION, high, low]);
        to.extend_from_slice(content);
        mask(&mut to[begin + HEADER_BYTES..], seed);
        let tag = tag(&to[begin..], seed);
        to.extend_from_slice(&tag);
    }

    /// Opens a whole record in place; returns its kind and where in it the content is.
    ///
    /// # Errors
    /// The record is not the next one that the peer sealed.
    pub fn open(&mut self, record: &mut [u8]) -> Result<(RecordKind, Range<usize>), Alert> {
        let kind = record.first().copied().and_then(kind_of).ok_or(Alert::Malformed)?;
        let end = record.len().checked_sub(TAG_BYTES).ok_or(Alert::Malformed)?;
        let seed = self.advance();
        if tag(&record[..end], seed) != record[end..] {
            return Err(Alert::BadTag);
        }
        mask(&mut record[HEADER_BYTES..end], seed);
        Ok((kind, HEADER_BYTES..end))
    }

    fn advance(&mut self) -> u64 {
        let seed = mix(self.secret, self.next);
        self.next += 1;
        seed
    }
}

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(a: u64, b: u64) -> u64 {
    let mixed = (a ^ b.wrapping_mul(ODD)).wrapping_add(ODD).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 29)
}

/// Masks or unmasks, eight bytes at a time: a byte at a time is slow in a build that is not optimised.
fn mask(bytes: &mut [u8], seed: u64) {
    let mut key = seed;
    for chunk in bytes.chunks_mut(8) {
        key = key.wrapping_mul(ODD).wrapping_add(1);
        let masked = word(chunk) ^ key;
        chunk.copy_from_slice(&masked.to_le_bytes()[..chunk.len()]);
    }
}

fn tag(bytes: &[u8], seed: u64) -> [u8; TAG_BYTES] {
    let words = bytes.chunks(8).map(word);
    words.fold(!seed, |sum, word| (sum.rotate_left(23) ^ word).wrapping_mul(ODD)).to_be_bytes()
}

fn word(chunk: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..chunk.len()].copy_from_slice(chunk);
    u64::from_le_bytes(word)
}
