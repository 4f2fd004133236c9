//! Sending from the front of [`Out`] by calls: bytes in memory, and files by the chosen sender.
//!
//! The blocking and the readiness driver share it; they differ in what they do when a call would wait.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;

use tenfold_http::{IoError, OpenFile, Out};
use tenfold_sys::socket::Socket;

use super::{connection_error, interrupted};
use crate::plan::Sender;

/// Slices of one `sendmsg(2)`.
const SLICES: usize = 16;
/// Bytes that the sender `copy` reads at once.
const COPY_BYTES: usize = 128 * 1024;

thread_local! {
    static COPY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What one step of sending came to.
pub(crate) enum Sent {
    /// This many bytes have left.
    Some(usize),
    /// The call would have waited.
    Nothing,
}

/// Makes one call that sends from the front of `out`, which is not empty; at most `most` bytes of a file.
pub(crate) fn send_some(
    socket: &Socket,
    out: &mut Out,
    sender: Sender,
    most: usize,
) -> Result<Sent, IoError> {
    loop {
        let result = match out.staged_alone() {
            Some(bytes) => socket.send(bytes, false),
            None => match out.file() {
                Some((file, range, more)) => {
                    let count = usize::try_from(range.end - range.start).unwrap_or(usize::MAX).min(most);
                    send_file(
                        socket,
                        file,
                        range.start,
                        count,
                        more || count as u64 != range.end - range.start,
                        sender,
                    )?
                }
                None => {
                    let mut slices = [IoSlice::new(&[]); SLICES];
                    let (filled, more) = out.memory(&mut slices);
                    socket.send_slices(&slices[..filled], more)
                }
            },
        };
        match result {
            Ok(count) => {
                out.advance(count as u64);
                return Ok(Sent::Some(count));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Sent::Nothing),
            Err(error) if interrupted(&error) => {}
            Err(error) => return Err(connection_error(&error)),
        }
    }
}

fn send_file(
    socket: &Socket,
    file: &OpenFile,
    offset: u64,
    count: usize,
    more: bool,
    sender: Sender,
) -> Result<io::Result<usize>, IoError> {
    let sent = match sender {
        Sender::Auto | Sender::Sendfile => socket.send_file(&file.file, offset, count),
        Sender::Copy => COPY.with_borrow_mut(|buffer| {
            buffer.resize(COPY_BYTES, 0);
            let length = count.min(COPY_BYTES);
            match file.file.read_at(&mut buffer[..length], offset) {
                Ok(0) => Ok(0),
                Ok(read) => socket.send(&buffer[..read], more || read < count),
                Err(error) => Err(error),
            }
        }),
    };
    // The end of the file where bytes were promised: it became shorter.
    if let Ok(0) = sent { Err(IoError::Truncated) } else { Ok(sent) }
}
