//! `splice`: move pages of the file into a pipe, and from the pipe to the socket.
//!
//! A connection borrows a pipe from the pool of its process while the pipe has bytes for which the socket has no room.
//! A pipe that is returned with bytes is closed.
//!
//! System calls of a response: sendmsg of the head, then splice from the file and splice to the socket, repeated; pipe2
//! if the pool is empty, and fstat after bytes that waited in a pipe.

use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenfold_sys::pipe::Pipe;
use tenfold_sys::select::FD_SETSIZE;
use tenfold_sys::socket::Socket;

use super::piece::{FilePiece, SendResult, still_there, unless_ended};
use crate::plan::Plan;

/// The pipe of one connection.
pub(super) struct Splicer {
    lent: Option<PooledPipe>,
    /// The most pipes of the process.
    most: usize,
    /// The least descriptor number of a pipe.
    lowest: RawFd,
}

impl Splicer {
    pub(super) fn new(plan: &Plan) -> Splicer {
        // Numbers that fit the sets of `select` are for connections.
        let lowest = if plan.waits_in_select() { FD_SETSIZE } else { 0 };
        Splicer { lent: None, most: plan.bounds.pipes, lowest: lowest as RawFd }
    }

    pub(super) fn clear(&mut self) {
        self.lent = None;
    }

    pub(super) fn send(&mut self, socket: &Socket, piece: &FilePiece<'_>) -> SendResult {
        let lent = match self.lent.take() {
            Some(lent) => Some(lent),
            None => lend(self.most, self.lowest),
        };
        let Some(mut lent) = lent else { return Ok(None) };
        let waited = lent.pipe().held() > 0;
        if !waited {
            unless_ended(lent.pipe().fill(&piece.file.file, piece.offset, piece.count))?;
        }
        let more = piece.more_behind(lent.pipe().held());
        let sent = lent.pipe().empty_into(socket, more);
        if lent.pipe().held() > 0 {
            self.lent = Some(lent);
        }
        // A truncation takes pages back, also from a pipe, and fills the last page with zeros.
        let sent = unless_ended(sent)?;
        if waited {
            still_there(piece.file, piece.offset + sent as u64)?;
        }
        Ok(Some(sent))
    }
}

/// The unused pipes of this process, and the number of all pipes. A process that forks sends no files and has no pipe.
struct PipePool {
    free: Vec<Pipe>,
    made: usize,
}

static POOL: Mutex<PipePool> = Mutex::new(PipePool { free: Vec::new(), made: 0 });

fn pool() -> MutexGuard<'static, PipePool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An empty pipe; `None` if there are `most` pipes, or no descriptors.
fn lend(most: usize, lowest: RawFd) -> Option<PooledPipe> {
    let mut pool = pool();
    if let Some(pipe) = pool.free.pop() {
        return Some(PooledPipe(Some(pipe)));
    }
    if pool.made >= most {
        return None;
    }
    let pipe = Pipe::new(lowest).ok()?;
    pool.made += 1;
    Some(PooledPipe(Some(pipe)))
}

/// A pipe that is borrowed.
struct PooledPipe(Option<Pipe>);

impl PooledPipe {
    fn pipe(&mut self) -> &mut Pipe {
        self.0.as_mut().expect("a pipe is lent until it is given back")
    }
}

impl Drop for PooledPipe {
    fn drop(&mut self) {
        let Some(pipe) = self.0.take() else { return };
        let mut pool = pool();
        if pipe.held() == 0 {
            pool.free.push(pipe);
        } else {
            pool.made -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use tenfold_http::OpenFile;

    use super::*;
    use crate::senders::failure::Failure;

    /// Sends `file` until the socket is full. Returns the number of sent bytes.
    fn until_full(splicer: &mut Splicer, socket: &Socket, file: &Arc<OpenFile>) -> u64 {
        let mut at = 0;
        loop {
            match splicer.send(socket, &FilePiece::new(file, at..file.size, usize::MAX, false)) {
                Ok(Some(count)) => at += count as u64,
                Ok(None) => panic!("there is no pipe"),
                Err(Failure::Truncated) => panic!("nobody has cut the file"),
                Err(Failure::Call(error)) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
                    return at;
                }
            }
        }
    }

    #[test]
    fn what_waited_in_a_pipe_is_not_taken_for_the_file_when_that_was_cut() {
        let path = std::env::temp_dir().join(format!("tenfold-cut-{}", std::process::id()));
        std::fs::write(&path, vec![b'a'; 8 << 20]).expect("a folder for temporary files");
        let file = File::options().read(true).write(true).open(&path).expect("it was just written");
        std::fs::remove_file(&path).expect("it is ours");
        let file = Arc::new(OpenFile::new(file, 8 << 20));
        let mut splicer = Splicer { lent: None, most: 1, lowest: 0 };
        let (ours, mut peer) = UnixStream::pair().expect("descriptors");
        ours.set_nonblocking(true).expect("it is a socket");
        let socket = Socket::from(OwnedFd::from(ours));

        let left = until_full(&mut splicer, &socket, &file);
        let waits = splicer.lent.as_mut().map_or(0, |lent| lent.pipe().held() as u64);
        assert!(waits > 1, "{left} bytes left, and nothing waits in the pipe");
        // The last waiting byte is beyond the end of the file.
        file.file.set_len(left + waits - 1).expect("a file of ours");
        let mut got = vec![0; left as usize];
        peer.read_exact(&mut got).expect("it was sent");
        let mut at = left;
        let cut = loop {
            match splicer.send(&socket, &FilePiece::new(&file, at..file.size, usize::MAX, false)) {
                Ok(Some(count)) => at += count as u64,
                Ok(None) => panic!("there is no pipe"),
                Err(failure) => break failure,
            }
        };
        assert!(matches!(cut, Failure::Truncated), "what waited was sent as if it were the file's");
        assert!(at < left + waits, "{at} bytes are said to have left");
    }
}
