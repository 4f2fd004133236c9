//! Pipes that carry pages from a file to a socket (`man 2 splice`).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use rustix::pipe::{PipeFlags, SpliceFlags};

use crate::net::socket::Socket;

/// The requested capacity of a pipe: the most bytes that it holds (`F_SETPIPE_SZ`, `man 2 fcntl`). It stays smaller if
/// the user has too many pipes (`pipe-user-pages-soft`, `man 7 pipe`).
pub const CAPACITY: usize = 256 * 1024;

/// A pipe, and the number of bytes in it.
#[derive(Debug)]
pub struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
    held: usize,
}

impl Pipe {
    /// Creates an empty pipe. Its descriptors have numbers from `lowest` on, if the limit allows it.
    pub fn new(lowest: RawFd) -> io::Result<Pipe> {
        let (out, into) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (out, into) = (above(out, lowest), above(into, lowest));
        let _ = rustix::pipe::fcntl_setpipe_size(&into, CAPACITY);
        Ok(Pipe { out, into, held: 0 })
    }

    /// Bytes taken from a file and not yet sent to a socket.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Moves at most `count` bytes of `file`, from `offset` on, into the empty pipe; 0 is the file's end. The bytes are
    /// not copied: the pipe holds pages of the file.
    pub fn fill(&mut self, file: &File, mut offset: u64, count: usize) -> io::Result<usize> {
        assert_eq!(self.held, 0, "what is in the pipe leaves first");
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let most = count.min(CAPACITY);
        self.held = rustix::pipe::splice(file, Some(&mut offset), &self.into, None, most, flags)?;
        Ok(self.held)
    }

    /// Moves bytes of the pipe to `socket` as far as they fit; 0 if the file has lost them meanwhile. `more` announces
    /// that more follows immediately.
    ///
    /// # Errors
    /// The error of `splice(2)`; `WouldBlock` if the socket has no room.
    pub fn empty_into(&mut self, socket: &Socket, more: bool) -> io::Result<usize> {
        let mut flags = SpliceFlags::MOVE;
        flags.set(SpliceFlags::MORE, more);
        let count = rustix::pipe::splice(&self.out, None, socket, None, self.held, flags)?;
        self.held -= count;
        Ok(count)
    }
}

/// Duplicates the descriptor to a number of at least `lowest`, if possible.
fn above(descriptor: OwnedFd, lowest: RawFd) -> OwnedFd {
    if descriptor.as_raw_fd() >= lowest {
        return descriptor;
    }
    rustix::io::fcntl_dupfd_cloexec(&descriptor, lowest).unwrap_or(descriptor)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn file(name: &str, content: &[u8]) -> File {
        let path = std::env::temp_dir().join(format!("tenfold-{name}-{}", std::process::id()));
        std::fs::write(&path, content).expect("a folder for temporary files");
        let file = File::open(&path).expect("it was just written");
        std::fs::remove_file(&path).expect("it is ours");
        file
    }

    #[test]
    fn a_pipe_keeps_the_order_and_the_bytes_that_a_full_socket_rejects() {
        let content: Vec<u8> = (0..1_000_000).map(|at| (at % 251) as u8).collect();
        let (file, mut pipe) = (file("spliced", &content), Pipe::new(0).expect("descriptors"));
        let (ours, mut peer) = UnixStream::pair().expect("descriptors");
        ours.set_nonblocking(true).expect("it is a socket");
        let (socket, mut offset, mut got) = (Socket::from(OwnedFd::from(ours)), 0, Vec::new());
        let mut waited = 0;
        while offset < content.len() || pipe.held() > 0 {
            if pipe.held() == 0 {
                offset += pipe.fill(&file, offset as u64, content.len()).expect("a file of ours");
            }
            match pipe.empty_into(&socket, false) {
                Ok(count) => assert!(count > 0),
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    waited += 1;
                    let mut room = vec![0; 100_000];
                    let count = peer.read(&mut room).expect("something was sent");
                    got.extend_from_slice(&room[..count]);
                }
            }
        }
        drop(socket);
        peer.read_to_end(&mut got).expect("all was sent");
        assert!(got == content, "{} bytes came", got.len());
        assert!(waited > 0, "the socket was never full");
    }

    #[test]
    fn the_end_of_a_file_is_reported_and_numbers_stay_above_the_lowest() {
        let mut pipe = Pipe::new(100).expect("descriptors");
        assert!(pipe.out.as_raw_fd() >= 100 && pipe.into.as_raw_fd() >= 100);
        assert_eq!(pipe.fill(&file("ended", b"short"), 5, 10).expect("a file of ours"), 0);
    }
}
