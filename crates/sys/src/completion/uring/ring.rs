//! The ring itself: creation, restrictions and teardown.

use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use io_uring::register::Restriction;
use io_uring::squeue::{Entry, Flags};
use io_uring::types::Fd;
use io_uring::{IoUring, opcode};

use super::buffers::BufferPool;
#[cfg(any(test, feature = "test-hooks"))]
use super::faults;
use super::held::HeldTable;

/// The sizes of a ring. All of it is memory of the worker.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Operations per submission, at least [`Sizes::LEAST_SUBMISSIONS`]; further ones take another call.
    pub submissions: u32,
    /// Completions in the queue. The kernel keeps further completions.
    pub completions: u32,
    /// Receive buffers, a power of two.
    pub buffers: u16,
    /// Bytes of each buffer.
    pub buffer_bytes: usize,
}

impl Sizes {
    /// A chain of operations must fit into one call, because the kernel breaks links at its end.
    pub const LEAST_SUBMISSIONS: u32 = 16;
}

/// A ring, its receive buffers, and all operations in flight. It belongs to one thread.
pub struct Ring {
    pub(super) ring: IoUring,
    pub(super) pool: Rc<BufferPool>,
    /// The memory that the kernel uses.
    pub(super) held_table: HeldTable,
    pub(super) in_flight: usize,
    /// The beginning of a chain whose last operation is still missing.
    pub(super) chain: Vec<Entry>,
    /// Operations that did not fit the submission queue.
    pub(super) overflow: VecDeque<Entry>,
    #[cfg(any(test, feature = "test-hooks"))]
    pub(super) faults: faults::Faults,
}

/// The group of the ring's buffers, for receives.
pub(super) const GROUP: u16 = 0;
/// `IORING_SEND_ZC_REPORT_USAGE`: report whether the bytes were copied (Linux 6.2).
pub(super) const REPORT_USAGE: u16 = 8;

/// The operations of a server and their flags; a restricted ring allows no others.
const CODES: [u8; 8] = [
    opcode::Accept::CODE,
    opcode::AsyncCancel::CODE,
    opcode::Close::CODE,
    opcode::PollAdd::CODE,
    opcode::Read::CODE,
    opcode::Recv::CODE,
    opcode::Send::CODE,
    opcode::SendZc::CODE,
];
const FLAGS: Flags = Flags::BUFFER_SELECT.union(Flags::IO_LINK);

impl Ring {
    /// Creates a ring for this thread: single issuer, task work done when it waits (Linux 6.1).
    ///
    /// # Errors
    /// The failed step and its error.
    pub fn new(sizes: Sizes) -> Result<Ring, (&'static str, io::Error)> {
        Ring::build(sizes, false)
    }

    /// Creates a ring for the operations of a server only. Any other operation fails with EACCES, and so does every
    /// registration (`man 2 io_uring_register`, `IORING_REGISTER_RESTRICTIONS`). A filter on system calls does not see
    /// operations.
    ///
    /// # Errors
    /// The failed step and its error.
    pub fn restricted(sizes: Sizes) -> Result<Ring, (&'static str, io::Error)> {
        let ring = Ring::build(sizes, true)?;
        let mut restrictions: Vec<_> = CODES.iter().map(|&code| Restriction::sqe_op(code)).collect();
        restrictions.push(Restriction::sqe_flags_allowed(FLAGS.bits()));
        let submitter = ring.ring.submitter();
        submitter
            .register_restrictions(&mut restrictions)
            .map_err(|error| ("IORING_REGISTER_RESTRICTIONS", error))?;
        submitter.register_enable_rings().map_err(|error| ("IORING_REGISTER_ENABLE_RINGS", error))?;
        Ok(ring)
    }

    fn build(sizes: Sizes, disabled: bool) -> Result<Ring, (&'static str, io::Error)> {
        assert!(sizes.submissions >= Sizes::LEAST_SUBMISSIONS, "a ring has room for a chain");
        let mut builder = IoUring::builder();
        builder
            .setup_cqsize(sizes.completions)
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .dontfork();
        if disabled {
            builder.setup_r_disabled();
        }
        let ring = builder.build(sizes.submissions).map_err(|error| ("io_uring_setup", error))?;
        let pool = BufferPool::new(sizes.buffers, sizes.buffer_bytes);
        let pool = Rc::new(pool.map_err(|error| ("memory for receive buffers", error))?);
        // SAFETY: the ring of entries is page-aligned, has `count` of them, and is never unmapped.
        let registered =
            unsafe { ring.submitter().register_buf_ring_with_flags(pool.address(), pool.count(), GROUP, 0) };
        registered.map_err(|error| ("IORING_REGISTER_PBUF_RING", error))?;
        let (held_table, chain, overflow) = (HeldTable::new(), Vec::new(), VecDeque::new());
        Ok(Ring {
            ring,
            pool,
            held_table,
            in_flight: 0,
            chain,
            overflow,
            #[cfg(any(test, feature = "test-hooks"))]
            faults: faults::Faults::new(),
        })
    }

    /// Whether this kernel has [`Ring::send_held`] and reports copies (Linux 6.2).
    pub fn sends_held() -> io::Result<bool> {
        let mut ring = IoUring::new(4)?;
        // On an invalid descriptor it fails with EBADF, unless the kernel rejects the operation first.
        let send = opcode::SendZc::new(Fd(-1), std::ptr::null(), 0).zc_flags(REPORT_USAGE).build();
        // SAFETY: the operation has no memory.
        let pushed = unsafe { ring.submission().push(&send) };
        debug_assert!(pushed.is_ok(), "a new ring has room");
        ring.submit_and_wait(1)?;
        Ok(ring.completion().any(|entry| entry.result() == -libc::EBADF))
    }

    /// Operations that have not completed.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Accepted connections that were never reported are closed.
        self.reap(&mut Vec::new());
        if self.in_flight > 0 {
            std::mem::replace(&mut self.held_table, HeldTable::new()).retire();
        }
    }
}
