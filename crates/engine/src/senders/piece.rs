//! The part of a file for the next call of a sender.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use tenfold_http::OpenFile;
use tenfold_sys::file::facts;

use super::failure::Failure;

/// The result of one call of a sender: the bytes sent, or `None` if it lacks a resource.
pub(super) type SendResult = Result<Option<usize>, Failure>;

/// The part of a file for the next call of a sender.
pub(super) struct FilePiece<'a> {
    pub(super) file: &'a Arc<OpenFile>,
    pub(super) offset: u64,
    /// The most bytes of one call.
    pub(super) count: usize,
    /// The end of the range that is sent.
    pub(super) end: u64,
    /// Whether more output follows the range.
    pub(super) followed: bool,
}

impl FilePiece<'_> {
    pub(super) fn new(file: &Arc<OpenFile>, range: Range<u64>, most: usize, followed: bool) -> FilePiece<'_> {
        let count = usize::try_from(range.end - range.start).unwrap_or(usize::MAX).min(most);
        FilePiece { file, offset: range.start, count, end: range.end, followed }
    }

    /// Whether more output follows the first `count` bytes immediately.
    pub(super) fn more_behind(&self, count: usize) -> bool {
        self.followed || self.offset + (count as u64) < self.end
    }
}

/// Checks the result of a call: 0 bytes mean the end of the file.
pub(super) fn unless_ended(sent: io::Result<usize>) -> Result<usize, Failure> {
    match sent {
        Ok(0) => Err(Failure::Truncated),
        Ok(count) => Ok(count),
        Err(error) => Err(error.into()),
    }
}

/// Checks that `file` still reaches `end`, up to which it was sent. After a truncation, the kernel fills the last page
/// with zeros, which may have been sent.
pub(crate) fn still_there(file: &OpenFile, end: u64) -> Result<(), Failure> {
    if facts(&file.file).is_ok_and(|facts| facts.size >= end) { Ok(()) } else { Err(Failure::Truncated) }
}
