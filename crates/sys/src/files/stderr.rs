//! Standard error, written without a wait for its reader.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::net::{SendFlags, send};
use rustix::stdio::dup2_stderr;

use crate::readiness::wait;

/// The most bytes that a pipe takes as a whole or not at all (`PIPE_BUF`, `man 7 pipe`).
pub const PIECE: usize = 4096;

/// The way to write to standard error without waiting. Other processes have the same open file, so O_NONBLOCK on it would
/// also change their writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandardError {
    /// An open file of our own, with O_NONBLOCK, has the descriptor: of a pipe or a terminal.
    Own,
    /// A pipe or terminal of another user. It is written if it has room. If another process writes in between, this write
    /// can wait.
    Asked,
    /// A socket, which takes a flag for each call.
    Socket,
    /// A file, which has no reader to wait for.
    File,
}

impl StandardError {
    /// Prepares standard error. Processes that are started later inherit the result.
    pub fn open() -> StandardError {
        let kind = io::stderr().as_fd().try_clone_to_owned().and_then(|own| File::from(own).metadata());
        let Ok(kind) = kind.map(|facts| facts.file_type()) else { return StandardError::File };
        if kind.is_socket() {
            return StandardError::Socket;
        }
        if !(kind.is_fifo() || rustix::termios::isatty(io::stderr())) {
            return StandardError::File;
        }
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let own = rustix::fs::open("/proc/self/fd/2", flags, Mode::empty());
        match own.and_then(dup2_stderr) {
            Ok(()) => StandardError::Own,
            Err(_) => StandardError::Asked,
        }
    }

    /// Writes at most [`PIECE`] of `bytes`. Returns the number of written bytes: fewer if the rest would wait.
    pub fn write(self, bytes: &[u8]) -> io::Result<usize> {
        let written = match self {
            StandardError::Asked if !wait::for_output(io::stderr().as_fd(), Duration::ZERO)? => Ok(0),
            StandardError::Socket => {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                send(io::stderr(), bytes, flags).map_err(io::Error::from)
            }
            StandardError::Own | StandardError::Asked | StandardError::File => io::stderr().write(bytes),
        };
        match written {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            written => written,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use rustix::fs::fcntl_getfl;

    use super::*;
    use crate::process::alone::alone;

    #[test]
    fn a_full_pipe_is_not_waited_for_and_its_other_writers_still_wait() {
        // Standard error belongs to all tests of a process.
        alone(module_path!(), "a_full_pipe_is_not_waited_for_and_its_other_writers_still_wait", || {
            let before = io::stderr().as_fd().try_clone_to_owned().expect("a descriptor is left");
            let (mut reader, writer) = io::pipe().expect("descriptors are left");
            dup2_stderr(&writer).expect("descriptors are left");
            let output = StandardError::open();
            let piece = [b'a'; PIECE];
            let mut whole = 0;
            while output.write(&piece).expect("it has a reader") == PIECE {
                whole += 1;
            }
            let flags = fcntl_getfl(&writer).expect("it is open");
            let mut first = [0; PIECE];
            reader.read_exact(&mut first).expect("it is full");
            let again = output.write(&piece).expect("it has a reader");
            dup2_stderr(before).expect("descriptors are left");
            assert_eq!((output, again), (StandardError::Own, PIECE));
            assert!(whole > 0 && !flags.contains(OFlags::NONBLOCK), "{whole} pieces, {flags:?}");
        });
    }
}
