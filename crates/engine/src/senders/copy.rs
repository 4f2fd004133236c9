//! `copy`: read into a buffer, then send the buffer.
//!
//! Each thread has one buffer for all connections: bytes that did not fit the socket are read again later.
//!
//! System calls of a piece: pread, and send, or write for the last piece.

use std::cell::RefCell;
use std::os::unix::fs::FileExt;

use tenfold_sys::socket::Socket;

use super::failure::Failure;
use super::piece::{FilePiece, unless_ended};

/// The bytes of one read.
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
