//! `zerocopy`: map the file, and let the kernel send its pages without copying them (`MSG_ZEROCOPY`).
//!
//! The kernel holds the pages until the peer has acknowledged them. The socket's error queue reports the release, and
//! whether the kernel copied the pages. A response is complete when the kernel has released all of its pages.
//!
//! System calls of a response: sendmsg of the head, mmap, send with MSG_ZEROCOPY, repeated, with a fstat after each,
//! recvmsg from the error queue, munmap.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use tenfold_sys::errno;
use tenfold_sys::mapping::Mapping;
use tenfold_sys::socket::Socket;

use super::mmap::Window;
use super::piece::{FilePiece, SendResult, still_there, unless_ended};
use crate::plan::Bounds;
use crate::protocol::Event;

/// The bytes of one send. The requested bytes, not the sent bytes, count as locked memory of the user (RLIMIT_MEMLOCK).
pub(super) const BYTES: usize = 512 * 1024;
/// The number of outstanding sends at which the error queue is read. Until then, each send uses some of the socket's
/// option memory (`net.core.optmem_max`).
const OUTSTANDING: u32 = 32;

/// The memory of one connection that the kernel holds.
pub(super) struct Holder {
    window: Window,
    /// The mappings of outstanding sends.
    mapped: Vec<Arc<Mapping>>,
    /// Sends that the kernel has not released.
    outstanding: u32,
    /// Released sends, and copied sends among them, since the last report.
    released: u32,
    copied: u32,
}

impl Holder {
    pub(super) fn new(bounds: &Bounds) -> Holder {
        Holder { window: Window::new(bounds), mapped: Vec::new(), outstanding: 0, released: 0, copied: 0 }
    }

    pub(super) fn window(&mut self) -> &mut Window {
        &mut self.window
    }

    pub(super) fn is_outstanding(&self) -> bool {
        self.outstanding > 0
    }

    pub(super) fn clear(&mut self) {
        self.window.close();
        self.mapped = Vec::new();
        // A failed connection gets no notification.
        self.outstanding = 0;
    }

    pub(super) fn send(&mut self, socket: &Socket, piece: &FilePiece<'_>) -> SendResult {
        if self.outstanding >= OUTSTANDING {
            self.still_holds(socket)?;
        }
        let Some(mut mapped) = self.window.at(piece)? else { return Ok(None) };
        mapped.range.end = mapped.range.end.min(piece.offset + BYTES as u64);
        let sent = socket.send_held(&mapped, piece.more_behind(mapped.len() as usize));
        if let Err(error) = &sent {
            // A pending error-queue entry would end every wait for room immediately.
            self.still_holds(socket)?;
            // Too many sends, or too much memory, are outstanding.
            if error.raw_os_error() == Some(errno::ENOBUFS) {
                return Ok(None);
            }
        }
        let sent = unless_ended(sent)?;
        self.outstanding += 1;
        if !self.mapped.last().is_some_and(|last| Arc::ptr_eq(last, &mapped.mapping)) {
            self.mapped.push(mapped.mapping);
        }
        still_there(piece.file, piece.offset + sent as u64)?;
        Ok(Some(sent))
    }

    /// Reads notifications. Returns whether the kernel still holds memory.
    pub(super) fn still_holds(&mut self, socket: &Socket) -> io::Result<bool> {
        while self.outstanding > 0 {
            match socket.released() {
                Ok(Some(released)) => {
                    let sends = released.last.wrapping_sub(released.first).wrapping_add(1);
                    self.outstanding = self.outstanding.saturating_sub(sends);
                    self.released += sends;
                    self.copied += if released.copied { sends } else { 0 };
                }
                Ok(None) => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.mapped.clear();
        Ok(false)
    }

    pub(super) fn report(&mut self) -> Option<Event> {
        let (sends, copied) = (std::mem::take(&mut self.released), std::mem::take(&mut self.copied));
        (sends > 0).then_some(Event::Released { sends, copied })
    }
}
