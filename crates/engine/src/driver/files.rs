//! Sending from the front of [`Out`] by calls: bytes in memory, and files by the chosen sender.
//!
//! The blocking and the readiness driver share it; they differ in what they do when a call would wait.

use std::io::ErrorKind;

use tenfold_http::{IoError, Out};
use tenfold_sys::socket::Socket;

use super::interrupted;
use crate::senders::{Failure, FileSender};

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
    files: &mut FileSender,
    most: usize,
) -> Result<Sent, IoError> {
    loop {
        let result = match out.staged_alone() {
            Some(bytes) => socket.send(bytes, false).map_err(Failure::Call),
            None => files.send(socket, out, most),
        };
        match result {
            Ok(count) => {
                out.advance(count as u64);
                return Ok(Sent::Some(count));
            }
            Err(Failure::Call(error)) if error.kind() == ErrorKind::WouldBlock => return Ok(Sent::Nothing),
            Err(Failure::Call(error)) if interrupted(&error) => {}
            Err(failure) => return Err(failure.into()),
        }
    }
}
