//! The sender of a connection's files, with its state between two calls.

use std::io::{ErrorKind, IoSlice};
use std::ops::Range;
use std::sync::Arc;

use tenfold_http::{IoError, OpenFile, Out};
use tenfold_sys::mapping::Mapped;
use tenfold_sys::pipe::CAPACITY;
use tenfold_sys::socket::Socket;

use super::copy;
use super::failure::{Failure, connection_error, interrupted};
use super::mmap::Window;
use super::piece::{FilePiece, unless_ended};
use super::splice::Splicer;
use super::zerocopy::{self, Holder};
use crate::plan::Plan;
use crate::plan::choice::Sender;
use crate::protocol::Event;

/// The most slices of memory in one call.
const SLICES: usize = 16;

/// The sender of one connection's files, with its state between two calls.
pub(crate) struct FileSender {
    means: SendMechanism,
    /// Pieces that were copied because the sender's resources were unavailable.
    substituted: u32,
}

enum SendMechanism {
    Copy,
    Sendfile,
    Mmap(Box<Window>),
    Splice(Box<Splicer>),
    Zerocopy(Box<Holder>),
}

/// A part of a file in memory, for the ring.
pub(crate) struct MappedPiece {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) mapped: Mapped,
    pub(crate) more: bool,
    /// Whether it is sent without copying.
    pub(crate) held: bool,
}

impl FileSender {
    pub(crate) fn new(plan: &Plan) -> FileSender {
        let means = match plan.sender {
            Sender::Copy => SendMechanism::Copy,
            Sender::Auto | Sender::Sendfile => SendMechanism::Sendfile,
            Sender::Mmap => SendMechanism::Mmap(Box::new(Window::new(&plan.bounds))),
            Sender::Splice => SendMechanism::Splice(Box::new(Splicer::new(plan))),
            Sender::Zerocopy => SendMechanism::Zerocopy(Box::new(Holder::new(&plan.bounds))),
        };
        FileSender { means, substituted: 0 }
    }

    /// Releases its resources at the end of an activation.
    #[inline]
    pub(crate) fn clear(&mut self) {
        match &mut self.means {
            SendMechanism::Copy | SendMechanism::Sendfile => {}
            SendMechanism::Mmap(window) => window.close(),
            SendMechanism::Splice(splicer) => splicer.clear(),
            SendMechanism::Zerocopy(holder) => holder.clear(),
        }
    }

    /// The piece of a file that the next call sends, at most `most` bytes.
    #[inline]
    pub(crate) fn next_piece<'a>(
        &self,
        out: &'a Out,
        most: usize,
    ) -> Option<(&'a Arc<OpenFile>, Range<u64>)> {
        let (file, range) = match out.file() {
            Some((file, range, _)) => (file, range),
            // One call sends it together with the preceding memory.
            None if matches!(self.means, SendMechanism::Mmap(_)) => out.next_file()?,
            None => return None,
        };
        let most = most.min(match &self.means {
            SendMechanism::Sendfile | SendMechanism::Mmap(_) => most,
            SendMechanism::Copy => copy::BYTES,
            SendMechanism::Splice(_) => CAPACITY,
            SendMechanism::Zerocopy(_) => zerocopy::BYTES,
        });
        Some((file, range.start..range.end.min(range.start.saturating_add(most as u64))))
    }

    /// Makes one call that sends from the front of `out`: from memory, or at most `most` bytes of a file. If the file
    /// has become too short, the socket is reset, because its unsent bytes may be zeros.
    pub(crate) fn send(&mut self, socket: &Socket, out: &Out, most: usize) -> Result<usize, Failure> {
        let sent = self.send_some(socket, out, most);
        if let Err(Failure::Truncated) = sent {
            socket.reset();
        }
        sent
    }

    fn send_some(&mut self, socket: &Socket, out: &Out, most: usize) -> Result<usize, Failure> {
        let Some((file, range, followed)) = out.file() else { return self.send_memory(socket, out, most) };
        let piece = FilePiece::new(file, range, most, followed);
        let sent = match &mut self.means {
            SendMechanism::Copy => copy::send(socket, &piece).map(Some),
            SendMechanism::Sendfile => {
                let sent = socket.send_file(&file.file, piece.offset, piece.count);
                unless_ended(sent).map(Some)
            }
            SendMechanism::Mmap(window) => window.write(socket, &[], &piece),
            SendMechanism::Splice(splicer) => splicer.send(socket, &piece),
            SendMechanism::Zerocopy(holder) => holder.send(socket, &piece),
        }?;
        match sent {
            Some(count) => Ok(count),
            None => {
                self.substituted += 1;
                copy::send(socket, &piece)
            }
        }
    }

    /// Sends from memory; with `mmap` together with the file bytes that follow.
    fn send_memory(&mut self, socket: &Socket, out: &Out, most: usize) -> Result<usize, Failure> {
        if let Some((kind, content)) = out.record() {
            return socket.send_record(kind, content, true).map_err(Failure::Call);
        }
        let mut slices = [IoSlice::new(&[]); SLICES];
        let (filled, more) = out.memory(&mut slices);
        let slices = &slices[..filled];
        if let SendMechanism::Mmap(window) = &mut self.means
            && more
            && filled < SLICES
            && let Some((file, range)) = out.next_file()
        {
            let sent = window.write(socket, slices, &FilePiece::new(file, range, most, true))?;
            if let Some(count) = sent {
                return Ok(count);
            }
        }
        let sent = match slices {
            // Observers divide bytes that are contiguous.
            [bytes] if !more => socket.send(bytes, false),
            _ => socket.send_slices(slices, more),
        };
        sent.map_err(Failure::Call)
    }

    /// Whether the kernel has not reported the release of all sent memory.
    #[inline]
    pub(crate) fn is_outstanding(&self) -> bool {
        matches!(&self.means, SendMechanism::Zerocopy(holder) if holder.is_outstanding())
    }

    /// Reads the error queue if sends are outstanding. Returns whether the kernel still holds sent memory.
    ///
    /// # Errors
    /// The connection is gone.
    pub(crate) fn holds(&mut self, socket: &Socket) -> Result<bool, IoError> {
        match &mut self.means {
            SendMechanism::Zerocopy(holder) => {
                holder.still_holds(socket).map_err(|error| connection_error(&error))
            }
            _ => Ok(false),
        }
    }

    /// Maps the next part of a file at the front of `out`, at most `most` bytes, for a ring that sends from memory.
    /// `None` if this sender does not map files, or if no mapping is possible.
    pub(crate) fn map(&mut self, out: &Out, most: usize) -> Result<Option<MappedPiece>, Failure> {
        let Some((file, range, followed)) = out.file() else { return Ok(None) };
        let (window, most, held) = match &mut self.means {
            SendMechanism::Mmap(window) => (&mut **window, most, false),
            SendMechanism::Zerocopy(holder) => (holder.window(), most.min(zerocopy::BYTES), true),
            _ => return Ok(None),
        };
        let piece = FilePiece::new(file, range, most, followed);
        let Some(mapped) = window.at(&piece)? else {
            self.substituted += 1;
            return Ok(None);
        };
        let more = piece.more_behind(mapped.len() as usize);
        Ok(Some(MappedPiece { file: file.clone(), mapped, more, held }))
    }

    /// Reports and resets the counters.
    #[inline]
    pub(crate) fn report(&mut self, mut hear: impl FnMut(Event)) {
        if self.substituted > 0 {
            hear(Event::Substituted(std::mem::take(&mut self.substituted)));
        }
        if let SendMechanism::Zerocopy(holder) = &mut self.means
            && let Some(event) = holder.report()
        {
            hear(event);
        }
    }
}

/// Makes one call that sends from the front of `out`, which is not empty; at most `most` bytes of a file. Returns
/// the number of sent bytes; `None` if the call would have waited.
pub(crate) fn send_some(
    socket: &Socket,
    out: &mut Out,
    files: &mut FileSender,
    most: usize,
) -> Result<Option<usize>, IoError> {
    loop {
        let result = match out.staged_alone() {
            Some(bytes) => socket.send(bytes, false).map_err(Failure::Call),
            None => files.send(socket, out, most),
        };
        match result {
            Ok(count) => {
                out.advance(count as u64);
                return Ok(Some(count));
            }
            Err(Failure::Call(error)) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(Failure::Call(error)) if interrupted(&error) => {}
            Err(failure) => return Err(failure.into()),
        }
    }
}
