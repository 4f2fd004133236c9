//! `mmap`: map the file, and write from the mapping.
//!
//! A connection maps one window of the file at a time. Only the kernel reads the mapping: a lost page causes EFAULT and
//! no signal.
//!
//! System calls of a response: mmap, writev of the head and the file, repeated until it is sent, with a fstat after
//! each, munmap.

use std::io::IoSlice;
use std::sync::Arc;

use tenfold_http::OpenFile;
use tenfold_sys::errno;
use tenfold_sys::mapping::{Mapped, Mapping};
use tenfold_sys::socket::Socket;

use super::failure::Failure;
use super::piece::{FilePiece, SendResult, still_there, unless_ended};
use crate::plan::Bounds;

/// The mapped part of a file for one connection.
pub(super) struct Window {
    most: u64,
    open: Option<(Arc<OpenFile>, Arc<Mapping>)>,
}

impl Window {
    pub(super) fn new(bounds: &Bounds) -> Window {
        Window { most: bounds.mapped_bytes, open: None }
    }

    pub(super) fn close(&mut self) {
        self.open = None;
    }

    /// Returns the mapped bytes at the start of `piece`; `None` if no mapping is possible.
    pub(super) fn at(&mut self, piece: &FilePiece<'_>) -> Result<Option<Mapped>, Failure> {
        let is_in = |open: &&(Arc<OpenFile>, Arc<Mapping>)| {
            Arc::ptr_eq(&open.0, piece.file) && open.1.range().contains(&piece.offset)
        };
        if self.open.as_ref().filter(is_in).is_none() {
            // Unmap the previous part first.
            self.open = None;
            let range = piece.offset..piece.end.min(piece.offset + self.most);
            match Mapping::new(&piece.file.file, range) {
                Ok(mapping) => self.open = Some((piece.file.clone(), Arc::new(mapping))),
                Err(error) if can_not_be_mapped(&error) => return Ok(None),
                Err(error) => return Err(Failure::Call(error)),
            }
        }
        Ok(self.open.as_ref().map(|(_, mapping)| {
            let end = mapping.range().end.min(piece.offset + piece.count as u64);
            Mapped { mapping: mapping.clone(), range: piece.offset..end }
        }))
    }

    /// Writes `head`, and then `piece`.
    pub(super) fn write(
        &mut self,
        socket: &Socket,
        head: &[IoSlice<'_>],
        piece: &FilePiece<'_>,
    ) -> SendResult {
        let Some(mapped) = self.at(piece)? else { return Ok(None) };
        let sent = unless_ended(socket.write_from(head, &mapped))?;
        let before: usize = head.iter().map(|slice| slice.len()).sum();
        still_there(piece.file, piece.offset + sent.saturating_sub(before) as u64)?;
        Ok(Some(sent))
    }
}

/// Whether the limit of mappings is reached, or the file system does not support mappings.
fn can_not_be_mapped(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(errno::ENOMEM | errno::EAGAIN | errno::ENODEV))
}
