//! `copy`: read into a buffer, then send the buffer.
//!
//! There is a buffer for each thread and not for each connection: what did not fit into the socket is read
//! again when there is room.
//!
//! System calls of a piece: pread, send.

use std::cell::RefCell;
use std::os::unix::fs::FileExt;

use tenfold_sys::socket::Socket;

use super::failure::Failure;
use super::piece::{FilePiece, unless_ended};

/// Bytes that are read at once.
pub(super) const BYTES: usize = 128 * 1024;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn send(socket: &Socket, piece: &FilePiece<'_>) -> Result<usize, Failure> {
    BUFFER.with_borrow_mut(|buffer| {
        buffer.resize(BYTES, 0);
        let length = piece.count.min(BYTES);
        let read = unless_ended(piece.file.file.read_at(&mut buffer[..length], piece.offset))?;
        socket.send(&buffer[..read], piece.more_behind(read)).map_err(Failure::Call)
    })
}
