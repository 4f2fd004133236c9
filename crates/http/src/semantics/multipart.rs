//! Several parts of a representation in one body: `multipart/byteranges` (RFC 9110 §14.6).

use std::ops::Range;

use crate::message::decimal::Decimal;
use crate::message::field::FieldValue;
use crate::message::request_id::hexadecimal;

/// The hexadecimal digits of a boundary.
const BOUNDARY_BYTES: usize = 32;
const MEDIA_TYPE: &[u8] = b"multipart/byteranges; boundary=";

/// The body of a 206 with several parts. Its length is known in advance.
///
/// The boundary is a hash of 128 bits over the version and the ranges, so equal requests get equal bytes.
/// Content cannot contain the boundary by accident: storing this response in the file makes another version.
#[derive(Debug)]
pub struct Multipart<'a> {
    media_type: FieldValue<'a>,
    ranges: &'a [Range<u64>],
    size: u64,
    content_type: [u8; MEDIA_TYPE.len() + BOUNDARY_BYTES],
}

/// A piece of a multipart body.
#[derive(Clone, Copy, Debug)]
pub enum MultipartPiece<'a> {
    /// Bytes between parts, including their fields.
    Frame(&'a [u8]),
    /// A range of the content.
    Content(&'a Range<u64>),
}

impl<'a> Multipart<'a> {
    /// Describes the parts of a representation of this size and type. The entity tag identifies its version.
    pub fn new(
        media_type: FieldValue<'a>,
        ranges: &'a [Range<u64>],
        size: u64,
        etag: &[u8],
    ) -> Multipart<'a> {
        let mut hash = Hash::new();
        hash.add(etag);
        hash.add(&size.to_le_bytes());
        for range in ranges {
            hash.add(&range.start.to_le_bytes());
            hash.add(&range.end.to_le_bytes());
        }
        let mut content_type = [0; MEDIA_TYPE.len() + BOUNDARY_BYTES];
        let (name, boundary) = content_type.split_at_mut(MEDIA_TYPE.len());
        name.copy_from_slice(MEDIA_TYPE);
        boundary.copy_from_slice(&hexadecimal(hash.0));
        Multipart { media_type, ranges, size, content_type }
    }

    /// Returns the media type of the whole body.
    pub fn content_type(&self) -> FieldValue<'_> {
        FieldValue::new(&self.content_type).expect("letters, digits and a space are a field value")
    }

    /// Returns the length of the whole body.
    pub fn content_length(&self) -> u64 {
        let mut length = 0;
        let mut count = |bytes: &[u8]| length += bytes.len() as u64;
        for (at, range) in self.ranges.iter().enumerate() {
            self.begin_part(at, range, &mut count);
        }
        self.end(&mut count);
        length + self.ranges.iter().map(|range| range.end - range.start).sum::<u64>()
    }

    /// Passes the whole body to `put`, piece by piece.
    pub fn write(&self, mut put: impl FnMut(MultipartPiece<'_>)) {
        for (at, range) in self.ranges.iter().enumerate() {
            self.begin_part(at, range, &mut |bytes| put(MultipartPiece::Frame(bytes)));
            put(MultipartPiece::Content(range));
        }
        self.end(&mut |bytes| put(MultipartPiece::Frame(bytes)));
    }

    fn boundary(&self) -> &[u8] {
        &self.content_type[MEDIA_TYPE.len()..]
    }

    /// Passes the bytes before the content of a part to `put`.
    fn begin_part(&self, at: usize, range: &Range<u64>, put: &mut dyn FnMut(&[u8])) {
        debug_assert!(range.start < range.end && range.end <= self.size);
        // The line end before a boundary belongs to it; the first boundary needs none.
        put(if at == 0 { b"--" } else { b"\r\n--" });
        put(self.boundary());
        put(b"\r\nContent-Type: ");
        put(self.media_type.as_bytes());
        put(b"\r\nContent-Range: bytes ");
        put(Decimal::new(range.start).as_bytes());
        put(b"-");
        put(Decimal::new(range.end - 1).as_bytes());
        put(b"/");
        put(Decimal::new(self.size).as_bytes());
        put(b"\r\n\r\n");
    }

    /// Passes the bytes after the last part to `put`.
    fn end(&self, put: &mut dyn FnMut(&[u8])) {
        put(b"\r\n--");
        put(self.boundary());
        put(b"--\r\n");
    }
}

/// FNV-1a of 128 bits: the same result on every machine and in every version of this server.
struct Hash(u128);

impl Hash {
    fn new() -> Hash {
        Hash(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: FieldValue<'static> = FieldValue::constant("text/plain");

    fn body(multipart: &Multipart<'_>) -> String {
        let mut body = Vec::new();
        multipart.write(|piece| {
            body.extend_from_slice(match piece {
                MultipartPiece::Frame(bytes) => bytes,
                MultipartPiece::Content(range) => &b"0123456789"[range.start as usize..range.end as usize],
            });
        });
        String::from_utf8(body).expect("text")
    }

    #[test]
    fn parts_stand_between_boundaries_with_their_place() {
        let ranges = [0..2, 9..10];
        let multipart = Multipart::new(TYPE, &ranges, 10, b"\"v\"");
        let text = std::str::from_utf8(multipart.content_type().as_bytes()).expect("text").to_owned();
        let boundary = text.strip_prefix("multipart/byteranges; boundary=").expect("a boundary");
        assert!(boundary.len() == 32 && boundary.bytes().all(|byte| byte.is_ascii_hexdigit()), "{boundary}");
        assert_eq!(
            body(&multipart),
            format!(
                "--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n\
                 --{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 9-9/10\r\n\r\n9\r\n\
                 --{boundary}--\r\n"
            )
        );
    }

    #[test]
    fn the_length_is_known_before() {
        for ranges in [&[0..1, 2..3][..], &[0..10, 0..10], &[5..6, 3..4, 1..2], &[0..9, 9..10]] {
            let multipart = Multipart::new(TYPE, ranges, 10, b"\"v\"");
            assert_eq!(multipart.content_length(), body(&multipart).len() as u64);
        }
    }

    #[test]
    fn a_boundary_differs_by_version_and_by_parts_and_is_else_the_same() {
        let boundary = |ranges: &[Range<u64>], size, etag: &[u8]| {
            Multipart::new(TYPE, ranges, size, etag).boundary().to_vec()
        };
        let first = boundary(&[0..1, 2..3], 10, b"\"v\"");
        assert_eq!(boundary(&[0..1, 2..3], 10, b"\"v\""), first);
        assert_ne!(boundary(&[0..1, 2..3], 10, b"\"w\""), first);
        assert_ne!(boundary(&[0..1, 2..3], 11, b"\"v\""), first);
        assert_ne!(boundary(&[0..1, 2..4], 10, b"\"v\""), first);
        assert_ne!(boundary(&[2..3, 0..1], 10, b"\"v\""), first);
    }

    #[test]
    fn the_hash_has_the_published_values() {
        let digits = |bytes: &[u8]| {
            let mut hash = Hash::new();
            hash.add(bytes);
            String::from_utf8(hexadecimal(hash.0).to_vec()).expect("digits")
        };
        assert_eq!(digits(b""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(digits(b"a"), "d228cb696f1a8caf78912b704e4a8964");
    }
}
