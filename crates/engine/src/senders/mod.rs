//! How the bytes of a file get to a socket: a file here for each way, and what a connection keeps for it
//! between two calls.
//!
//! The blocking and the readiness driver send by these calls. The completion driver does so where the ring
//! has no operation for it (`sendfile`, `splice`), and takes mapped pieces from here where it has one.

mod copy;
mod mmap;
mod splice;
pub(crate) mod table;
mod zerocopy;

use std::io::{self, IoSlice};
use std::ops::Range;
use std::sync::Arc;

use tenfold_http::{IoError, OpenFile, Out};
use tenfold_sys::errno;
use tenfold_sys::file::facts;
use tenfold_sys::mapping::Mapped;
use tenfold_sys::socket::Socket;

use self::mmap::Window;
use self::splice::Splicer;
use self::zerocopy::Holder;
use crate::driver::connection_error;
use crate::plan::{Plan, Sender};
use crate::protocol::Event;

/// Slices of memory of one call.
const SLICES: usize = 16;

/// The sender of one connection's files, with what it keeps between two calls.
pub(crate) struct FileSender {
    means: Means,
    /// Pieces that were copied because what the sender needs was not to be had.
    substituted: u32,
}

enum Means {
    Copy,
    Sendfile,
    Mmap(Box<Window>),
    Splice(Box<Splicer>),
    Zerocopy(Box<Holder>),
}

/// Why nothing was sent.
pub(crate) enum Failure {
    /// The file has become shorter than what was promised of it.
    Truncated,
    /// What the call said.
    Call(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        // A page that a mapped file has lost.
        if error.raw_os_error() == Some(errno::EFAULT) { Failure::Truncated } else { Failure::Call(error) }
    }
}

impl From<Failure> for IoError {
    fn from(failure: Failure) -> IoError {
        match failure {
            Failure::Truncated => IoError::Truncated,
            Failure::Call(error) => connection_error(&error),
        }
    }
}

/// What a call of a sender came to: bytes that it sent, or none where what it needs is not to be had.
type Step = Result<Option<usize>, Failure>;

/// A piece of a file that is sent.
struct Piece<'a> {
    file: &'a Arc<OpenFile>,
    offset: u64,
    /// Bytes that one call sends at most.
    count: usize,
    /// The end of the range that is sent.
    end: u64,
    /// Whether more follows behind the range.
    followed: bool,
}

impl Piece<'_> {
    fn new(file: &Arc<OpenFile>, range: Range<u64>, most: usize, followed: bool) -> Piece<'_> {
        let count = usize::try_from(range.end - range.start).unwrap_or(usize::MAX).min(most);
        Piece { file, offset: range.start, count, end: range.end, followed }
    }

    /// Whether more follows at once behind the first `count` bytes.
    fn more_behind(&self, count: usize) -> bool {
        self.followed || self.offset + (count as u64) < self.end
    }
}

/// A part of a file in memory, for the ring.
pub(crate) struct MappedPiece {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) mapped: Mapped,
    pub(crate) more: bool,
    /// Whether it is to be sent without copying.
    pub(crate) held: bool,
}

impl FileSender {
    pub(crate) fn new(plan: &Plan) -> FileSender {
        let means = match plan.sender {
            Sender::Copy => Means::Copy,
            Sender::Auto | Sender::Sendfile => Means::Sendfile,
            Sender::Mmap => Means::Mmap(Box::new(Window::new(&plan.bounds))),
            Sender::Splice => Means::Splice(Box::new(Splicer::new(plan))),
            Sender::Zerocopy => Means::Zerocopy(Box::new(Holder::new(&plan.bounds))),
        };
        FileSender { means, substituted: 0 }
    }

    /// Gives back what was kept, at the end of an activation.
    pub(crate) fn clear(&mut self) {
        match &mut self.means {
            Means::Copy | Means::Sendfile => {}
            Means::Mmap(window) => window.close(),
            Means::Splice(splicer) => splicer.clear(),
            Means::Zerocopy(holder) => holder.clear(),
        }
    }

    /// Makes one call that sends from the front of `out`, where that is more than staged bytes: from memory,
    /// or at most `most` bytes of a file. Where that has become too short, the peer is not sent what is left
    /// of it in the socket either: some of it may be zeros by now.
    pub(crate) fn send(&mut self, socket: &Socket, out: &Out, most: usize) -> Result<usize, Failure> {
        let sent = self.send_some(socket, out, most);
        if let Err(Failure::Truncated) = sent {
            socket.reset_on_close();
        }
        sent
    }

    fn send_some(&mut self, socket: &Socket, out: &Out, most: usize) -> Result<usize, Failure> {
        let Some((file, range, followed)) = out.file() else { return self.send_memory(socket, out, most) };
        let piece = Piece::new(file, range, most, followed);
        let sent = match &mut self.means {
            Means::Copy => copy::send(socket, &piece).map(Some),
            Means::Sendfile => {
                let sent = socket.send_file(&file.file, piece.offset, piece.count);
                unless_ended(sent).map(Some)
            }
            Means::Mmap(window) => window.write(socket, &[], &piece),
            Means::Splice(splicer) => splicer.send(socket, &piece),
            Means::Zerocopy(holder) => holder.send(socket, &piece),
        }?;
        match sent {
            Some(count) => Ok(count),
            None => {
                self.substituted += 1;
                copy::send(socket, &piece)
            }
        }
    }

    /// Sends from memory; by `mmap` together with what follows of a file.
    fn send_memory(&mut self, socket: &Socket, out: &Out, most: usize) -> Result<usize, Failure> {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let (filled, more) = out.memory(&mut slices);
        let slices = &slices[..filled];
        if let Means::Mmap(window) = &mut self.means
            && more
            && filled < SLICES
            && let Some((file, range)) = out.next_file()
        {
            let sent = window.write(socket, slices, &Piece::new(file, range, most, true))?;
            if let Some(count) = sent {
                return Ok(count);
            }
        }
        socket.send_slices(slices, more).map_err(Failure::Call)
    }

    /// Whether the kernel has yet to say that it no longer holds what was sent.
    #[inline]
    pub(crate) fn is_outstanding(&self) -> bool {
        matches!(&self.means, Means::Zerocopy(holder) if holder.is_outstanding())
    }

    /// Whether the kernel still holds what was sent. It is asked, where anything is outstanding.
    ///
    /// # Errors
    /// When it can not be asked: the connection is gone.
    pub(crate) fn holds(&mut self, socket: &Socket) -> Result<bool, IoError> {
        match &mut self.means {
            Means::Zerocopy(holder) => holder.still_holds(socket).map_err(|error| connection_error(&error)),
            _ => Ok(false),
        }
    }

    /// Maps what comes next of a file at the front of `out`, at most `most` bytes, for a ring that sends from
    /// memory; none where this sender does not map, or nothing more can be mapped.
    pub(crate) fn map(&mut self, out: &Out, most: usize) -> Result<Option<MappedPiece>, Failure> {
        let Some((file, range, followed)) = out.file() else { return Ok(None) };
        let (window, most, held) = match &mut self.means {
            Means::Mmap(window) => (&mut **window, most, false),
            Means::Zerocopy(holder) => (holder.window(), most.min(zerocopy::BYTES), true),
            _ => return Ok(None),
        };
        let piece = Piece::new(file, range, most, followed);
        let Some(mapped) = window.at(&piece)? else {
            self.substituted += 1;
            return Ok(None);
        };
        let more = piece.more_behind(mapped.len() as usize);
        Ok(Some(MappedPiece { file: file.clone(), mapped, more, held }))
    }

    /// Tells what there was to count, and begins to count anew.
    pub(crate) fn report(&mut self, mut hear: impl FnMut(Event)) {
        if self.substituted > 0 {
            hear(Event::Substituted(std::mem::take(&mut self.substituted)));
        }
        if let Means::Zerocopy(holder) = &mut self.means
            && let Some(event) = holder.report()
        {
            hear(event);
        }
    }
}

/// What a call sent, which came to nothing only at the end of the file.
fn unless_ended(sent: io::Result<usize>) -> Result<usize, Failure> {
    match sent {
        Ok(0) => Err(Failure::Truncated),
        Ok(count) => Ok(count),
        Err(error) => Err(error.into()),
    }
}

/// Sees that `file` reaches to `end`, to which it was sent. Behind its end the last page of a file is filled up
/// with zeros, which may have been sent.
pub(crate) fn still_there(file: &OpenFile, end: u64) -> Result<(), Failure> {
    if facts(&file.file).is_ok_and(|facts| facts.size >= end) { Ok(()) } else { Err(Failure::Truncated) }
}
