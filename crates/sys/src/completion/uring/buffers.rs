//! A ring of buffers from which the kernel picks one for each receive
//! (`man 3 io_uring_register_buf_ring`).
//!
//! A buffer belongs to the kernel from the moment it is put into the ring until a completion names it;
//! from then on it belongs to one [`RingBuffer`], which puts it back when it is dropped.

use std::cell::Cell;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, null_mut};
use std::rc::Rc;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

use crate::process::Unforkable;

/// Fills buffers that belong to the kernel, if debug assertions are on. A write past the reported length overwrites it
/// and is detected.
const CANARY: u8 = 0xa5;

/// The buffers and the ring of their entries. Their memory is never unmapped: the kernel frees a ring some time after
/// its descriptor is closed, and may write until then.
pub(super) struct BufferPool {
    entries: NonNull<BufRingEntry>,
    data: NonNull<u8>,
    count: u16,
    /// At most `u32::MAX`, because an entry holds the size in 32 bits.
    size: usize,
    /// The ring's tail as we last published it.
    tail: Cell<u16>,
    _unforkable: Unforkable,
}

/// Maps zeroed pages that a forked child does not inherit.
fn allocate(bytes: usize) -> io::Result<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no other memory.
    let start = unsafe { mmap_anonymous(null_mut(), bytes, access, MapFlags::PRIVATE)? };
    // SAFETY: the pages were just mapped and belong to this process alone.
    unsafe { madvise(start, bytes, Advice::LinuxDontFork)? };
    Ok(NonNull::new(start.cast()).expect("a mapping does not begin at zero"))
}

impl BufferPool {
    /// Creates `count` buffers, a power of two, of `size` bytes.
    pub(super) fn new(count: u16, size: usize) -> io::Result<BufferPool> {
        assert!(count.is_power_of_two() && size > 0, "a ring of buffers has a power of two of them");
        let bytes = usize::from(count).checked_mul(size).filter(|_| u32::try_from(size).is_ok());
        let bytes = bytes.ok_or(io::ErrorKind::OutOfMemory)?;
        let entries = allocate(usize::from(count) * size_of::<BufRingEntry>())?.cast();
        let data = allocate(bytes)?;
        let pool = BufferPool {
            entries,
            data,
            count,
            size,
            tail: Cell::new(0),
            _unforkable: Unforkable::new("io_uring"),
        };
        (0..count).for_each(|id| pool.give(id));
        Ok(pool)
    }

    pub(super) fn address(&self) -> u64 {
        self.entries.as_ptr() as u64
    }

    pub(super) fn count(&self) -> u16 {
        self.count
    }

    fn start(&self, id: u16) -> *mut u8 {
        assert!(id < self.count, "a buffer's number is one of the ring's");
        // SAFETY: `id` is less than `count`, so the offset stays within the allocation.
        unsafe { self.data.as_ptr().add(usize::from(id) * self.size) }
    }

    /// Gives buffer `id`, which is ours, to the kernel.
    fn give(&self, id: u16) {
        let start = self.start(id);
        if cfg!(debug_assertions) {
            // SAFETY: the buffer is ours and has `size` bytes.
            unsafe { start.write_bytes(CANARY, self.size) };
        }
        let tail = self.tail.get();
        let place = usize::from(tail & (self.count - 1));
        // SAFETY: `place` is less than `count`, so it stays within the allocation.
        let mut entry = unsafe { self.entries.add(place) };
        // SAFETY: the kernel reads an entry only when the tail has passed it, which happens below.
        let entry = unsafe { entry.as_mut() };
        entry.set_addr(start as u64);
        entry.set_len(self.size as u32);
        entry.set_bid(id);
        self.tail.set(tail.wrapping_add(1));
        // SAFETY: the pointer is to the first entry of a ring of them.
        let shared = unsafe { BufRingEntry::tail(self.entries.as_ptr()) };
        // SAFETY: the tail is aligned, is only accessed atomically, and lives as long as the pool.
        let shared = unsafe { AtomicU16::from_ptr(shared.cast_mut()) };
        shared.store(self.tail.get(), Ordering::Release);
    }

    /// Takes buffer `id`, which holds `length` bytes according to a completion.
    pub(super) fn take(self: &Rc<BufferPool>, id: u16, length: usize) -> RingBuffer {
        assert!(length <= self.size, "the kernel fills no more than a buffer");
        let start = self.start(id);
        if cfg!(debug_assertions) {
            // SAFETY: the completion made the buffer ours, and it has `size` bytes.
            let whole = unsafe { std::slice::from_raw_parts(start, self.size) };
            assert!(
                whole[length..].iter().all(|&byte| byte == CANARY),
                "buffer {id} was written to while it was free"
            );
        }
        RingBuffer { pool: self.clone(), id, start: 0, length }
    }
}

/// Received bytes, in a buffer of the ring. Dropping it gives the buffer back, so hold it for one tick at most.
pub struct RingBuffer {
    pool: Rc<BufferPool>,
    id: u16,
    start: usize,
    length: usize,
}

impl RingBuffer {
    /// The whole buffer, filled or not.
    #[cfg(test)]
    pub(super) fn whole(&mut self) -> &mut [u8] {
        let start = self.pool.start(self.id);
        // SAFETY: as for `deref_mut`.
        unsafe { std::slice::from_raw_parts_mut(start, self.pool.size) }
    }

    /// Drops the first `count` bytes. Panics if there are fewer.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.length, "no more is consumed than was received");
        self.start += count;
        self.length -= count;
    }
}

impl Deref for RingBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let whole = self.pool.start(self.id);
        // SAFETY: the buffer belongs to this value alone and has `size` bytes.
        let whole = unsafe { std::slice::from_raw_parts(whole, self.pool.size) };
        &whole[self.start..self.start + self.length]
    }
}

impl DerefMut for RingBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        let whole = self.pool.start(self.id);
        // SAFETY: as for `deref`, and this value is borrowed exclusively.
        let whole = unsafe { std::slice::from_raw_parts_mut(whole, self.pool.size) };
        &mut whole[self.start..self.start + self.length]
    }
}

impl Drop for RingBuffer {
    fn drop(&mut self) {
        self.pool.give(self.id);
    }
}
