//! The fields of a decoded block, in memory that a worker reuses for every block.

use crate::hpack::error::HpackError;
use crate::hpack::table::OVERHEAD;
use crate::huffman;

/// The bounds of one list of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLimits {
    /// The most octets of names and values, with 32 more for each field (RFC 9113 §6.5.2).
    pub size: u32,
    /// The most fields, with pseudo-fields, before crumbs of a cookie are joined.
    pub fields: u32,
}

/// The fields of one block, in order. Memory for names, values and places grows up to the limits, and stays for the
/// next block.
#[derive(Debug)]
pub struct FieldList {
    limits: ListLimits,
    /// Names and values, and then zeros or bytes of earlier lists.
    bytes: Vec<u8>,
    /// The bytes in use.
    used: usize,
    fields: Vec<Place>,
    size: u64,
    count: u64,
}

/// The place of a field in the bytes of its list.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: u32,
    value: u32,
    end: u32,
}

/// A string of a block, as it was sent.
#[derive(Clone, Copy)]
pub(crate) struct WireString<'a> {
    pub(crate) is_huffman: bool,
    pub(crate) bytes: &'a [u8],
}

impl FieldList {
    /// An empty list with these limits. It allocates nothing yet.
    pub fn new(limits: ListLimits) -> FieldList {
        FieldList { limits, bytes: Vec::new(), used: 0, fields: Vec::new(), size: 0, count: 0 }
    }

    /// Removes all fields, and sets the limits of the next list. Limits of 0 decode a block without keeping its fields.
    pub fn clear(&mut self, limits: ListLimits) {
        (self.limits, self.used, self.size, self.count) = (limits, 0, 0, 0);
        self.fields.clear();
    }

    /// Whether the decoded fields exceed a limit. The list then has only the fields before the limit.
    pub fn is_over(&self) -> bool {
        self.size > self.limits.size.into() || self.count > self.limits.fields.into()
    }

    /// The octets of all decoded fields, as RFC 9113 §6.5.2 counts them.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The number of fields in the list.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether the list has no field.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The names and values of all fields, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// The name and value of a field, by its place in the list.
    pub fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        self.fields.get(index).map(|place| self.field(place))
    }

    /// The names and values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> + Clone {
        self.fields.iter().map(|place| self.field(place))
    }

    /// The bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.fields.capacity() * size_of::<Place>()
    }

    fn field(&self, place: &Place) -> (&[u8], &[u8]) {
        let (start, value, end) = (place.start as usize, place.value as usize, place.end as usize);
        (&self.bytes[start..value], &self.bytes[value..end])
    }

    /// The octets of a name and value that the list can still take.
    pub(crate) fn room(&self) -> usize {
        let left = u64::from(self.limits.size).saturating_sub(self.size + OVERHEAD as u64);
        if self.count < self.limits.fields.into() { left as usize } else { 0 }
    }

    /// The end of the bytes in use, where a field begins.
    pub(crate) fn mark(&self) -> usize {
        self.used
    }

    /// Appends a whole field that a table has.
    pub(crate) fn push(&mut self, name: &[u8], value: &[u8]) {
        let length = name.len() + value.len();
        let mark = self.used;
        // A field beyond the limits is counted and not copied.
        if length <= self.room() {
            let (to_name, to_value) = self.free(length).split_at_mut(name.len());
            to_name.copy_from_slice(name);
            to_value.copy_from_slice(value);
            self.used += length;
        }
        self.commit(mark, name.len(), value.len());
    }

    /// Appends the string, but at most `room` bytes of it, and returns its decoded length.
    pub(crate) fn append(&mut self, string: WireString<'_>, room: usize) -> Result<usize, HpackError> {
        if !string.is_huffman {
            let kept = &string.bytes[..string.bytes.len().min(room)];
            self.free(kept.len()).copy_from_slice(kept);
            self.used += kept.len();
            return Ok(string.bytes.len());
        }
        let most = huffman::most_decoded(string.bytes.len()).min(room);
        let length = huffman::decode(string.bytes, self.free(most)).map_err(HpackError::Huffman)?;
        self.used += length.min(most);
        Ok(length)
    }

    /// The name and the value that were appended since `mark`.
    pub(crate) fn appended(&self, mark: usize, name: usize) -> (&[u8], &[u8]) {
        self.bytes[mark..self.used].split_at(name)
    }

    /// Counts the field that was appended since `mark`, whose decoded name and value have these lengths. A field
    /// that exceeds a limit, and each later one, is removed.
    pub(crate) fn commit(&mut self, mark: usize, name: usize, value: usize) {
        self.count += 1;
        self.size += (name + value + OVERHEAD) as u64;
        if self.is_over() {
            self.used = mark;
            return;
        }
        // The limit of the size has 32 bits.
        let place = |at: usize| at as u32;
        self.fields.push(Place { start: place(mark), value: place(mark + name), end: place(self.used) });
    }

    /// `length` bytes after the bytes in use.
    fn free(&mut self, length: usize) -> &mut [u8] {
        let end = self.used + length;
        if self.bytes.len() < end {
            self.bytes.resize(end.next_power_of_two(), 0);
        }
        &mut self.bytes[self.used..end]
    }
}
