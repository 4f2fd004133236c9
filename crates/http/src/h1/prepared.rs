//! A response that is encoded once and sent often: only its date and its `Connection` field change.

use super::encode::Encoding;
use crate::clock::{self, DATE_BYTES};
use crate::limits::WriteMode;
use crate::message::field::{FieldName, FieldValue};
use crate::message::header_lines::parse_lines;
use crate::message::request::Version;
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
    /// The encoding of the head that it is prepared from.
    pub(crate) const ENCODING: Encoding =
        Encoding { version: Version::Http11, persistent: true, write: WriteMode::Joined };

    /// Prepares `head`, which was encoded in this second for [`Prepared::ENCODING`], with `body` behind it.
    pub(crate) fn new(head: &[u8], body: &[u8]) -> Prepared {
        const DATE: &[u8] = b"\r\nDate: ";
        let date = head.windows(DATE.len()).position(|window| window == DATE);
        let date = date.expect("every head has a date") + DATE.len();
        let second = clock::unix_seconds();
        Prepared { bytes: [head, body].concat().into(), date, body: head.len(), second }
    }

    /// Stages the head, and the body that stands behind it if `whole`, if that is the response as it was prepared.
    /// Returns whether it was.
    #[inline]
    pub(crate) fn stage(&mut self, encoding: Encoding, whole: bool, out: &mut Out) -> bool {
        self.renew_date();
        let same = encoding == Prepared::ENCODING;
        if same {
            out.stage(if whole { &self.bytes } else { &self.bytes[..self.body] });
        }
        same
    }

    /// Stages the head with `Connection` as `encoding` asks for it, without the empty line that ends it.
    pub(crate) fn stage_head(&mut self, encoding: Encoding, out: &mut Out) {
        self.renew_date();
        let fields = self.fields_at();
        out.stage(&self.bytes[..fields]);
        out.stage(encoding.connection());
        out.stage(&self.bytes[fields..self.body - 2]);
    }

    /// Stages the part of the head in front of its fields, with `Connection` as `encoding` asks for it.
    pub(crate) fn stage_begin(&mut self, encoding: Encoding, out: &mut Out) {
        self.renew_date();
        out.stage(&self.bytes[..self.fields_at()]);
        out.stage(encoding.connection());
    }

    /// Returns the fields behind `Date` and `Connection`, in order.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (FieldName<'_>, FieldValue<'_>)> {
        parse_lines(&self.bytes[self.fields_at()..self.body - 2])
    }

    /// The body that stands behind the head.
    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.body..]
    }

    /// Bytes of memory beside this value itself.
    pub(crate) fn weight(&self) -> usize {
        self.bytes.len()
    }

    /// The offset of the fields behind the date.
    fn fields_at(&self) -> usize {
        self.date + DATE_BYTES + 2
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
