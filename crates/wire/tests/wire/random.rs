//! Pseudo-random lists of fields, the same for a seed.

use crate::Field;

/// A generator of pseudo-random numbers (xorshift).
pub(crate) struct Random(u64);

/// Names that the static table has, and others.
const NAMES: [&str; 24] = [
    ":path",
    ":authority",
    ":status",
    "accept",
    "accept-encoding",
    "age",
    "authorization",
    "cache-control",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "etag",
    "last-modified",
    "server",
    "set-cookie",
    "user-agent",
    "vary",
    "www-authenticate",
    "priority",
    "x-content-type-options",
    "x",
    "sec-ch-ua-platform",
    "strict-transport-security",
];

/// Values that repeat.
const VALUES: [&str; 10] =
    ["", "/", "200", "GET", "gzip, deflate", "text/html; charset=utf-8", "nosniff", "bytes", "0", "Tenfold"];

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `most`.
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % most
    }

    /// Up to 16 fields, pseudo-fields first.
    pub(crate) fn fields(&mut self) -> Vec<Field> {
        let mut fields: Vec<Field> = (0..self.below(17)).map(|_| (self.name(), self.value())).collect();
        fields.sort_by_key(|(name, _)| !name.starts_with(b":"));
        fields
    }

    fn name(&mut self) -> Vec<u8> {
        if self.below(8) > 0 {
            return NAMES[self.below(NAMES.len())].into();
        }
        let length = 1 + self.below(30);
        (0..length).map(|_| b"abcdefghijklmnopqrstuvwxyz0123456789-_!#$%&'*+.^`|~"[self.below(51)]).collect()
    }

    fn value(&mut self) -> Vec<u8> {
        match self.below(8) {
            0..4 => VALUES[self.below(VALUES.len())].into(),
            4..7 => {
                let length = self.below(60);
                (0..length).map(|_| b' ' + self.below(95) as u8).collect()
            }
            _ => {
                let most = [20, 300, 3000][self.below(60) / 29];
                let length = self.below(most);
                (0..length).map(|_| self.below(256) as u8).collect()
            }
        }
    }
}
