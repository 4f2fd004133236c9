//! All operations that can be submitted. Each owns its resources.

use std::os::fd::{AsFd, AsRawFd, RawFd};

use io_uring::opcode;
use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fd};

use super::held::HeldResource;
use super::ring::{GROUP, REPORT_USAGE, Ring};
use super::word::{ACCEPT, word_of};
use crate::completion::{Bytes, Readable};
use crate::memory::mapping::Mapped;
use crate::net::socket::Socket;
use crate::net::socket::stream::discarded_bytes;

/// `IORING_RECVSEND_POLL_FIRST`: wait for readiness before the first try.
const POLL_FIRST: u16 = 1;
impl Ring {
    /// Accepts connections on `listener` repeatedly (multishot); each completion brings a socket.
    pub fn accept(&mut self, listener: RawFd, tag: u64) {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        self.push(
            opcode::AcceptMulti::new(Fd(listener)).flags(flags).build().user_data(word_of(tag) | ACCEPT),
        );
    }

    /// Accepts one connection on `listener`.
    pub fn accept_one(&mut self, listener: RawFd, tag: u64) {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let entry = opcode::Accept::new(Fd(listener), std::ptr::null_mut(), std::ptr::null_mut());
        self.push(entry.flags(flags).build().user_data(word_of(tag) | ACCEPT));
    }

    /// Receives once into a buffer of the ring.
    pub fn receive(&mut self, number: RawFd, tag: u64) {
        let entry = opcode::Recv::new(Fd(number), std::ptr::null_mut(), 0).buf_group(GROUP).build();
        self.push(entry.flags(Flags::BUFFER_SELECT).user_data(word_of(tag)));
    }

    /// Receives into buffers of the ring repeatedly (multishot), from the first arrival on.
    pub fn receive_on(&mut self, number: RawFd, tag: u64) {
        let mut entry = opcode::RecvMulti::new(Fd(number), GROUP).build().user_data(word_of(tag));
        add_priority_flag(&mut entry, POLL_FIRST);
        self.push(entry);
    }

    /// Receives once, and discards the bytes; the completion has their number.
    pub fn discard_input(&mut self, number: RawFd, tag: u64) {
        let (memory, length) = discarded_bytes();
        let entry = opcode::Recv::new(Fd(number), memory, length as u32).flags(libc::MSG_TRUNC);
        self.push(entry.build().user_data(word_of(tag)));
    }

    /// Sends all of `bytes`, waiting for room as often as needed. `more` announces that more follows immediately
    /// (`MSG_MORE`). `linked` starts the next operation only after this one has succeeded. A chain has at most
    /// [`LEAST_SUBMISSIONS`](super::Sizes::LEAST_SUBMISSIONS) operations.
    pub fn send(&mut self, number: RawFd, bytes: Bytes, more: bool, linked: bool, tag: u64) {
        let (start, length) = bytes.address();
        let (length, flags) = (u32::try_from(length).unwrap_or(u32::MAX), send_flags(more));
        let word = self.held_table.hold(tag, HeldResource::Bytes(bytes));
        let entry = opcode::Send::new(Fd(number), start, length).flags(flags).build().user_data(word);
        match linked {
            true => self.link(entry.flags(Flags::IO_LINK)),
            false => self.push(entry),
        }
    }

    /// See [`Ring::send`], for bytes of a mapped file, which the kernel holds instead of copying. A second completion
    /// reports that it no longer holds them: [`crate::completion::Completion::released`].
    ///
    /// It cannot be part of a chain: if the operation before it fails, the kernel announces no second completion and
    /// sends one anyway.
    pub fn send_held(&mut self, number: RawFd, mapped: Mapped, more: bool, tag: u64) {
        assert!(self.chain.is_empty(), "nothing is linked to a send that is held");
        let (start, length) = mapped.mapping.address(&mapped.range);
        let (length, flags) = (u32::try_from(length).unwrap_or(u32::MAX), send_flags(more));
        let word = self.held_table.hold(tag, HeldResource::Bytes(Bytes::Mapped(mapped)));
        let send = opcode::SendZc::new(Fd(number), start, length).flags(flags).zc_flags(REPORT_USAGE);
        self.push(send.build().user_data(word));
    }

    /// Reads from `file` at `offset` until `memory` is full.
    pub fn read(&mut self, file: Readable, offset: u64, mut memory: Vec<u8>, tag: u64) {
        let number = file.as_fd().as_raw_fd();
        let (start, length) = (memory.as_mut_ptr(), u32::try_from(memory.len()).unwrap_or(u32::MAX));
        let word = self.held_table.hold(tag, HeldResource::Read { memory, _file: file });
        self.push(opcode::Read::new(Fd(number), start, length).offset(offset).build().user_data(word));
    }

    /// Closes `socket`.
    pub fn close(&mut self, socket: Socket, tag: u64) {
        let number = socket.number();
        let word = self.held_table.hold(tag, HeldResource::Socket(socket.into()));
        self.push(opcode::Close::new(Fd(number)).build().user_data(word));
    }

    /// Reports room to write each time, as the bits of `poll(2)`. One-shot polls are not enough: the kernel also
    /// reports the end of the peer, which then persists.
    pub fn poll_write(&mut self, number: RawFd, tag: u64) {
        self.push(
            opcode::PollAdd::new(Fd(number), libc::POLLOUT as u32)
                .multi(true)
                .build()
                .user_data(word_of(tag)),
        );
    }

    /// Reports input each time.
    pub fn poll_read(&mut self, number: RawFd, tag: u64) {
        self.push(
            opcode::PollAdd::new(Fd(number), libc::POLLIN as u32).multi(true).build().user_data(word_of(tag)),
        );
    }

    /// Cancels the receive or the poll with the tag `target`, which completes with ECANCELED.
    pub fn cancel(&mut self, target: u64, tag: u64) {
        self.cancel_word(word_of(target), tag);
    }

    /// Cancels the accept with the tag `target`, which completes with ECANCELED.
    pub fn cancel_accept(&mut self, target: u64, tag: u64) {
        self.cancel_word(word_of(target) | ACCEPT, tag);
    }

    fn cancel_word(&mut self, target: u64, tag: u64) {
        self.push(opcode::AsyncCancel::new(target).build().user_data(word_of(tag)));
    }

    /// Cancels every operation that names the descriptor `number`.
    pub fn cancel_all(&mut self, number: RawFd, tag: u64) {
        let which = CancelBuilder::fd(Fd(number)).all();
        self.push(opcode::AsyncCancel2::new(which).build().user_data(word_of(tag)));
    }
}

fn send_flags(more: bool) -> libc::c_int {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
    if more { flags | libc::MSG_MORE } else { flags }
}

/// The crate has no names for the flags that receives and sends keep in the priority field.
fn add_priority_flag(entry: &mut Entry, flag: u16) {
    const PRIORITY: usize = 1;
    // SAFETY: `Entry` is a `struct io_uring_sqe` of 64 bytes, aligned to 8: 32 words of 16 bits, of which
    // any value is valid.
    let words = unsafe { &mut *std::ptr::from_mut(entry).cast::<[u16; size_of::<Entry>() / 2]>() };
    // `ioprio` is the second of them (`man 2 io_uring_enter`).
    words[PRIORITY] |= flag;
}
