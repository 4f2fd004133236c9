//! A response that is encoded once and sent often: only its date changes.

use super::encode::Http1Encoder;
use crate::clock::{self, DATE_BYTES};
use crate::message::header_lines::HeaderLines;
use crate::out::Out;

/// A head, and often its body, as one run of bytes with the date of a moment in it.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    bytes: Box<[u8]>,
    /// The offset of the date.
    date: usize,
    /// The offset of the body.
    body: usize,
    /// The second that the date in `bytes` is of.
    second: u64,
}

impl Prepared {
    /// The encoder for which a response is prepared.
    const ENCODER: Http1Encoder = Http1Encoder::PERSISTENT;

    /// Prepares a head with this status and these fields, with `body` behind it.
    pub(crate) fn new(status: u16, fields: &HeaderLines, body: &[u8]) -> Prepared {
        let mut out = Out::new();
        Prepared::ENCODER.begin(status, &mut out);
        let date = out.mark() - DATE_BYTES - b"\r\n".len();
        out.stage(fields.as_bytes());
        Prepared::ENCODER.end(0, &mut out);
        let head = out.staged_alone().expect("a head is staged bytes");
        let bytes = [head, body].concat().into();
        Prepared { bytes, date, body: head.len(), second: clock::unix_seconds() }
    }

    /// Stages the head, and the body that stands behind it if `whole`, if `encoder` would encode the same. Returns
    /// whether it would.
    #[inline]
    pub(crate) fn stage(&mut self, encoder: Http1Encoder, whole: bool, out: &mut Out) -> bool {
        let same = encoder == Prepared::ENCODER;
        if same {
            self.renew_date();
            out.stage(if whole { &self.bytes } else { &self.bytes[..self.body] });
        }
        same
    }

    /// Returns the body that stands behind the head.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.body..]
    }

    /// Returns the bytes of memory beside this value itself.
    pub(crate) fn weight(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn renew_date(&mut self) {
        let second = clock::unix_seconds();
        if self.second != second {
            let place = self.date..self.date + DATE_BYTES;
            clock::with_date(|date| self.bytes[place].copy_from_slice(date));
            self.second = second;
        }
    }
}
