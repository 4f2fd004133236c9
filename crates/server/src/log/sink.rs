//! Writes whole lines to a descriptor.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenfold_sys::wait;

use crate::diagnostics::pieces::{count, whole_lines};
use crate::status::turns;

/// An open log, as the threads of a process write to it.
#[derive(Debug)]
pub(super) struct Sink {
    file: File,
    /// The most bytes of one call. The kernel does not mix the bytes of one call with those of other writers.
    most: usize,
    /// Whether only this process has the file open. A write then waits without a bound for room in a pipe.
    own: bool,
    /// The last write ended within a line.
    torn: AtomicBool,
}

/// The bytes that a pipe or the journal's socket takes in one piece (`PIPE_BUF`, `man 7 pipe`).
const PIPE_PIECE: usize = 4096;
/// The longest wait for room in a non-blocking pipe that other processes may also have.
const PATIENCE: Duration = Duration::from_secs(1);

impl Sink {
    pub(super) fn new(file: File, own: bool) -> Sink {
        let kind = file.metadata().map(|facts| facts.file_type());
        let pipe = kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket());
        Sink { file, most: if pipe { PIPE_PIECE } else { usize::MAX }, own, torn: AtomicBool::new(false) }
    }

    /// Writes `lines`, which are whole. An error has the number of lost lines.
    pub(super) fn write(&self, mut lines: &[u8]) -> Result<(), (u64, io::Error)> {
        // Ends a line that a failed write left incomplete, so that the next line is whole.
        let result = if self.torn.load(Ordering::Relaxed) { self.write_all(b"\n") } else { Ok(()) };
        if let Err((_, error)) = result {
            return Err((count(lines), error));
        }
        while !lines.is_empty() {
            let (piece, rest) = lines.split_at(whole_lines(lines, self.most));
            if let Err((written, error)) = self.write_all(piece) {
                return Err((count(&lines[written..]), error));
            }
            lines = rest;
        }
        Ok(())
    }

    fn write_all(&self, piece: &[u8]) -> Result<(), (usize, io::Error)> {
        let mut written = 0;
        while written < piece.len() {
            match (&self.file).write(&piece[written..]) {
                Ok(0) => return Err((written, io::ErrorKind::WriteZero.into())),
                Ok(count) => {
                    written += count;
                    self.torn.store(piece[written - 1] != b'\n', Ordering::Relaxed);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The server opens its own pipes with O_NONBLOCK. On an inherited pipe, another process may have set
                // the flag.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && self.wait() => {}
                Err(error) => return Err((written, error)),
            }
        }
        Ok(())
    }

    fn wait(&self) -> bool {
        turns::pause();
        match wait::for_output(self.file.as_fd(), PATIENCE) {
            Ok(is_ready) => is_ready || self.own,
            Err(error) => error.kind() == io::ErrorKind::Interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let (lost, error) = Sink::new(full, true).write(b"one\ntwo\n").expect_err("it is full");
        assert_eq!((lost, error.kind()), (2, io::ErrorKind::StorageFull));
    }

    #[test]
    fn a_line_that_was_torn_is_ended_before_the_next() {
        let (mut reader, writer) = io::pipe().expect("there are descriptors");
        let sink = Sink::new(std::os::fd::OwnedFd::from(writer).into(), false);
        sink.torn.store(true, Ordering::Relaxed);
        sink.write(b"whole\n").expect("somebody reads");
        drop(sink);
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("it ends");
        assert_eq!(text, "\nwhole\n");
    }

    #[test]
    fn a_full_pipe_of_our_own_is_waited_for() {
        const BYTES: usize = 256 * 1024;
        let path = std::env::temp_dir().join(format!("tenfold-sink-{}", std::process::id()));
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a temporary folder");
        let mut reader = File::options().read(true).write(true).open(&path).expect("it was just made");
        let file = super::super::file::open(&path).expect("somebody reads it");
        let sink = Sink::new(file, true);
        let writing = std::thread::spawn(move || sink.write(&b"a line of ten\n".repeat(BYTES / 14)));
        // Longer than the wait for room in a shared pipe.
        std::thread::sleep(PATIENCE * 3 / 2);
        let mut read = vec![0; BYTES / 14 * 14];
        reader.read_exact(&mut read).expect("it is written");
        assert!(writing.join().expect("no panic").is_ok());
        std::fs::remove_file(&path).expect("our own file");
    }
}
