//! A piece of a file that is sent.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use tenfold_http::OpenFile;
use tenfold_sys::file::facts;

use super::failure::Failure;

/// The result of one call of a sender: the bytes sent, or none if a resource that it needs is missing.
pub(super) type SendResult = Result<Option<usize>, Failure>;

/// A piece of a file that is sent.
pub(super) struct FilePiece<'a> {
    pub(super) file: &'a Arc<OpenFile>,
    pub(super) offset: u64,
    /// Bytes that one call sends at most.
    pub(super) count: usize,
    /// The end of the range that is sent.
    pub(super) end: u64,
    /// Whether more follows behind the range.
    pub(super) followed: bool,
}

impl FilePiece<'_> {
    pub(super) fn new(file: &Arc<OpenFile>, range: Range<u64>, most: usize, followed: bool) -> FilePiece<'_> {
        let count = usize::try_from(range.end - range.start).unwrap_or(usize::MAX).min(most);
        FilePiece { file, offset: range.start, count, end: range.end, followed }
    }

    /// Whether more follows at once behind the first `count` bytes.
    pub(super) fn more_behind(&self, count: usize) -> bool {
        self.followed || self.offset + (count as u64) < self.end
    }
}

/// The bytes that a call sent; it sends none only at the end of the file.
pub(super) fn unless_ended(sent: io::Result<usize>) -> Result<usize, Failure> {
    match sent {
        Ok(0) => Err(Failure::Truncated),
        Ok(count) => Ok(count),
        Err(error) => Err(error.into()),
    }
}

/// Checks that `file` still reaches `end`, up to which it was sent. The kernel fills the last page beyond the
/// end of a file with zeros; after a truncation, these may have been sent.
pub(crate) fn still_there(file: &OpenFile, end: u64) -> Result<(), Failure> {
    if facts(&file.file).is_ok_and(|facts| facts.size >= end) { Ok(()) } else { Err(Failure::Truncated) }
}
