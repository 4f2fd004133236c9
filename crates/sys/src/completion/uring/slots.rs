//! Connections without a descriptor: the ring creates their sockets and keeps them in a table of its own under a
//! number, their slot (`man 3 io_uring_register_files_sparse`). Such a socket never enters the descriptor table of the
//! process, which saves the cost of installing and removing it.
//!
//! A slot that is closed or reused costs no memory safety: the kernel answers EBADF, or acts on the other socket as any
//! call would.

use std::io;
use std::net::SocketAddr;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use io_uring::opcode;
use io_uring::squeue::Flags;
use io_uring::types::{CancelBuilder, DestinationSlot, Fixed};

use super::address::Address;
use super::held::HeldResource;
use super::ring::{GROUP, Ring, Sizes};
use super::word::word_of;
use crate::completion::Bytes;

/// An option enabled before a socket connects (`man 7 tcp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketOption {
    /// `TCP_NODELAY`: send small segments immediately.
    NoDelay,
    /// `TCP_DEFER_ACCEPT` on the connecting side: see [`crate::net::connect::ConnectOptions::join_ack`].
    JoinAck,
}

/// The value of an enabled option; for joining, a number of seconds.
static ON: libc::c_int = 1;

impl Ring {
    /// Creates a ring with `count` slots, numbered from 0. The descriptor limit of the process bounds their number.
    pub fn with_slots(sizes: Sizes, count: u32) -> Result<Ring, (&'static str, io::Error)> {
        let ring = Ring::new(sizes)?;
        let registered = ring.ring.submitter().register_files_sparse(count);
        registered.map_err(|error| ("IORING_REGISTER_FILES2", error))?;
        Ok(ring)
    }

    /// Checks that this kernel makes connections in slots and sets their options (Linux 6.7). The probe runs every step,
    /// and its connect names an empty slot.
    ///
    /// # Errors
    /// The failed step and its error.
    pub fn connects() -> Result<(), (&'static str, io::Error)> {
        const STEPS: [&str; 3] = ["IORING_OP_SOCKET", "SOCKET_URING_OP_SETSOCKOPT", "IORING_OP_CONNECT"];
        let sizes =
            Sizes { submissions: Sizes::LEAST_SUBMISSIONS, completions: 32, buffers: 1, buffer_bytes: 1024 };
        let mut ring = Ring::with_slots(sizes, 2)?;
        let address = Arc::new(Address::from(SocketAddr::from(([127, 0, 0, 1], 0))));
        ring.socket(0, &address, 0);
        ring.switch(0, SocketOption::NoDelay, 1);
        ring.connect_slot(1, &address, 2);
        let (mut completions, mut results) = (Vec::new(), [None; 3]);
        for _ in 0..10 {
            ring.wait(Some(Duration::from_millis(100)), &mut completions)
                .map_err(|error| ("io_uring_enter", error))?;
            completions.drain(..).for_each(|one| results[one.tag as usize] = Some(one.result));
            if results.iter().all(Option::is_some) {
                break;
            }
        }
        let expected = [0, 0, -libc::EBADF];
        for ((step, result), expected) in STEPS.iter().zip(results).zip(expected) {
            match result {
                Some(result) if result == expected => {}
                Some(result) => return Err((step, io::Error::from_raw_os_error(-result))),
                None => return Err((step, io::ErrorKind::TimedOut.into())),
            }
        }
        Ok(())
    }

    /// Creates a socket for the empty `slot`, enables `switches`, and connects it. The connect completes with `tag`,
    /// the steps before it with `step`. If a step fails, each later one completes with an error of its own, mostly
    /// ECANCELED.
    pub fn connect(&mut self, slot: u32, to: &Arc<Address>, switches: &[SocketOption], step: u64, tag: u64) {
        self.socket(slot, to, step);
        for switch in switches {
            self.switch(slot, *switch, step);
        }
        self.connect_slot(slot, to, tag);
    }

    fn socket(&mut self, slot: u32, to: &Address, tag: u64) {
        let destination = DestinationSlot::try_from_slot_target(slot).expect("tables are smaller than that");
        let entry = opcode::Socket::new(to.family(), libc::SOCK_STREAM, 0).file_index(Some(destination));
        self.link(entry.build().flags(Flags::IO_LINK).user_data(word_of(tag)));
    }

    fn switch(&mut self, slot: u32, switch: SocketOption, tag: u64) {
        let name = match switch {
            SocketOption::NoDelay => libc::TCP_NODELAY,
            SocketOption::JoinAck => libc::TCP_DEFER_ACCEPT,
        };
        let (level, length) = (libc::IPPROTO_TCP as u32, size_of_val(&ON) as u32);
        let entry = opcode::SetSockOpt::new(Fixed(slot), level, name as u32, (&raw const ON).cast(), length);
        self.link(entry.build().flags(Flags::IO_LINK).user_data(word_of(tag)));
    }

    fn connect_slot(&mut self, slot: u32, to: &Arc<Address>, tag: u64) {
        let (start, length) = to.place();
        let word = self.held_table.hold(tag, HeldResource::Address { _address: to.clone() });
        self.push(opcode::Connect::new(Fixed(slot), start, length).build().user_data(word));
    }

    /// See [`Ring::send`], unlinked, on the socket of a slot.
    pub fn send_slot(&mut self, slot: u32, bytes: Bytes, tag: u64) {
        let (start, length) = bytes.address();
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let word = self.held_table.hold(tag, HeldResource::Bytes(bytes));
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        self.push(opcode::Send::new(Fixed(slot), start, length).flags(flags).build().user_data(word));
    }

    /// See [`Ring::receive`], on the socket of a slot.
    pub fn receive_slot(&mut self, slot: u32, tag: u64) {
        let entry = opcode::Recv::new(Fixed(slot), ptr::null_mut(), 0).buf_group(GROUP).build();
        self.push(entry.flags(Flags::BUFFER_SELECT).user_data(word_of(tag)));
    }

    /// Discards up to `count` received bytes of the socket of a slot without copying them: `MSG_TRUNC` (`man 7 tcp`).
    /// With this flag TCP writes nothing through the pointer, which is null. Slots hold only TCP sockets.
    pub fn discard_slot(&mut self, slot: u32, count: u32, tag: u64) {
        let entry = opcode::Recv::new(Fixed(slot), ptr::null_mut(), count).flags(libc::MSG_TRUNC);
        self.push(entry.build().user_data(word_of(tag)));
    }

    /// Cancels every operation on the socket of a slot; each completes, mostly with ECANCELED.
    pub fn cancel_slot(&mut self, slot: u32, tag: u64) {
        let which = CancelBuilder::fd(Fixed(slot)).all();
        self.push(opcode::AsyncCancel2::new(which).build().user_data(word_of(tag)));
    }

    /// Closes the socket of a slot, which is empty afterwards.
    pub fn close_slot(&mut self, slot: u32, tag: u64) {
        self.push(opcode::Close::new(Fixed(slot)).build().user_data(word_of(tag)));
    }
}
