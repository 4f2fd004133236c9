//! `io_uring` (`man 7 io_uring`) as a ring that owns what the kernel works on.
//!
//! Whoever hands an operation over gives its bytes and files away, and gets them back with the
//! completion. So nothing that the kernel may still read or write is freed or reused, whatever the caller
//! does; a ring that is dropped with operations in flight keeps their memory for ever.

mod buffers;

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};

use self::buffers::Pool;
pub use self::buffers::RingBuffer;
use crate::socket::Socket;

/// How large a ring is. All of it is memory of the worker.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Operations that are handed over in one call; more take another.
    pub submissions: u32,
    /// Completions that are kept until they are read; the kernel keeps the ones that do not fit.
    pub completions: u32,
    /// Receive buffers, a power of two.
    pub buffers: u16,
    /// Bytes of each.
    pub buffer_bytes: usize,
}

/// Bytes that are sent.
pub enum Bytes {
    /// Those of the vector from this place on.
    Owned(Vec<u8>, usize),
    /// A range of shared bytes.
    Shared(Arc<[u8]>, Range<usize>),
}

impl Bytes {
    /// How many they are.
    #[allow(clippy::len_without_is_empty, reason = "nothing is not sent")]
    pub fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn as_slice(&self) -> &[u8] {
        match self {
            Bytes::Owned(bytes, from) => &bytes[*from..],
            Bytes::Shared(bytes, range) => &bytes[range.clone()],
        }
    }
}

/// A file that is read.
pub type Readable = Arc<dyn AsFd + Send + Sync>;

/// What an operation in flight keeps alive.
enum Held {
    Bytes(Bytes),
    /// A file that is read, and the memory that it is read into.
    Read {
        memory: Vec<u8>,
        _file: Readable,
    },
    /// A socket that is closed. It is closed by dropping it when the kernel did not.
    Socket(OwnedFd),
    Free(u32),
}

/// An operation that has completed, or has one more result.
pub struct Completion {
    /// The word that the operation was given.
    pub tag: u64,
    /// What the system call of the same name would have returned; an error as its negative number.
    pub result: i32,
    /// Whether a multishot operation goes on.
    pub more: bool,
    /// The bytes that a receive brought.
    pub buffer: Option<RingBuffer>,
    /// The memory of a send or read, to be used again.
    pub memory: Option<Vec<u8>>,
    /// The connection that an accept brought.
    pub socket: Option<Socket>,
}

/// A ring, its receive buffers, and everything that is in flight. It belongs to one thread.
pub struct Ring {
    ring: IoUring,
    pool: Rc<Pool>,
    held: Vec<(u64, Held)>,
    free: u32,
    in_flight: usize,
    /// Operations that did not fit the submission queue.
    overflow: std::collections::VecDeque<Entry>,
}

/// Set in a user word that names a place among [`Ring::held`] and not a tag.
const HELD: u64 = 1 << 63;
/// Set in the user word of an accept, whose results are descriptors.
const ACCEPT: u64 = 1 << 62;
/// Tags are less than this.
pub const TAG_BOUND: u64 = 1 << 62;
const NONE: u32 = u32::MAX;
const GROUP: u16 = 0;
/// `IORING_RECVSEND_POLL_FIRST`: nothing is expected to be there, so wait before trying.
const POLL_FIRST: u16 = 1;

impl Ring {
    /// A ring for this thread: single issuer, task work done when it waits (Linux 6.1).
    ///
    /// # Errors
    /// Which step failed, and what the system said.
    pub fn new(sizes: Sizes) -> Result<Ring, (&'static str, io::Error)> {
        let ring = IoUring::builder()
            .setup_cqsize(sizes.completions)
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .build(sizes.submissions)
            .map_err(|error| ("io_uring_setup", error))?;
        let pool = Rc::new(Pool::new(sizes.buffers, sizes.buffer_bytes));
        // SAFETY: the ring of entries is page-aligned, has `count` of them, and is never freed.
        let registered =
            unsafe { ring.submitter().register_buf_ring_with_flags(pool.address(), pool.count(), GROUP, 0) };
        registered.map_err(|error| ("IORING_REGISTER_PBUF_RING", error))?;
        Ok(Ring { ring, pool, held: Vec::new(), free: NONE, in_flight: 0, overflow: Default::default() })
    }

    /// Accepts connections on `listener`, again and again; each completion brings a socket.
    pub fn accept(&mut self, listener: RawFd, tag: u64) {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        self.push(opcode::AcceptMulti::new(Fd(listener)).flags(flags).build().user_data(tag | ACCEPT));
    }

    /// Receives once into a buffer of the ring.
    pub fn receive(&mut self, number: RawFd, tag: u64) {
        let entry = opcode::Recv::new(Fd(number), std::ptr::null_mut(), 0).buf_group(GROUP).build();
        self.push(entry.flags(Flags::BUFFER_SELECT).user_data(tag));
    }

    /// Receives into buffers of the ring, again and again, from the time when something arrives.
    pub fn receive_on(&mut self, number: RawFd, tag: u64) {
        let mut entry = opcode::RecvMulti::new(Fd(number), GROUP).build().user_data(tag);
        add_priority_flag(&mut entry, POLL_FIRST);
        self.push(entry);
    }

    /// Sends all of `bytes`, waiting for room as often as it takes. `more` says that more follows at once
    /// (`MSG_MORE`); `linked`, that the next operation begins when this one has succeeded.
    pub fn send(&mut self, number: RawFd, bytes: Bytes, more: bool, linked: bool, tag: u64) {
        let slice = bytes.as_slice();
        let (start, length) = (slice.as_ptr(), u32::try_from(slice.len()).unwrap_or(u32::MAX));
        let mut flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        if more {
            flags |= libc::MSG_MORE;
        }
        // The bytes lie on the heap: moving their owner into the table does not move them.
        let word = self.hold(tag, Held::Bytes(bytes));
        let entry = opcode::Send::new(Fd(number), start, length).flags(flags).build().user_data(word);
        self.push(if linked { entry.flags(Flags::IO_LINK) } else { entry });
    }

    /// Reads from `file` at `offset` into `memory`, as many bytes as it is long.
    pub fn read(&mut self, file: Readable, offset: u64, mut memory: Vec<u8>, tag: u64) {
        let number = file.as_fd().as_raw_fd();
        let (start, length) = (memory.as_mut_ptr(), u32::try_from(memory.len()).unwrap_or(u32::MAX));
        let word = self.hold(tag, Held::Read { memory, _file: file });
        self.push(opcode::Read::new(Fd(number), start, length).offset(offset).build().user_data(word));
    }

    /// Closes `socket`.
    pub fn close(&mut self, socket: Socket, tag: u64) {
        let number = socket.number();
        let word = self.hold(tag, Held::Socket(socket.into()));
        self.push(opcode::Close::new(Fd(number)).build().user_data(word));
    }

    /// Waits until there is room to write.
    pub fn poll_write(&mut self, number: RawFd, tag: u64) {
        self.push(opcode::PollAdd::new(Fd(number), libc::POLLOUT as u32).build().user_data(tag));
    }

    /// Says each time when there is something to read.
    pub fn poll_read(&mut self, number: RawFd, tag: u64) {
        self.push(opcode::PollAdd::new(Fd(number), libc::POLLIN as u32).multi(true).build().user_data(tag));
    }

    /// Cancels the operation that was given `target` as its tag; it completes with ECANCELED.
    pub fn cancel(&mut self, target: u64, tag: u64) {
        self.push(opcode::AsyncCancel::new(target).build().user_data(tag));
    }

    /// Cancels every operation that names the descriptor `number`.
    pub fn cancel_all(&mut self, number: RawFd, tag: u64) {
        let which = CancelBuilder::fd(Fd(number)).all();
        self.push(opcode::AsyncCancel2::new(which).build().user_data(tag));
    }

    /// Hands everything over, waits for at least one completion, for `timeout` or a signal, and puts the
    /// completions into `into`.
    ///
    /// # Errors
    /// What `io_uring_enter(2)` says.
    pub fn wait(&mut self, timeout: Option<Duration>, into: &mut Vec<Completion>) -> io::Result<()> {
        while !self.overflow.is_empty() {
            self.submit()?;
            self.refill();
        }
        let result = match timeout {
            Some(Duration::ZERO) => self.ring.submitter().submit_and_wait(0),
            Some(length) => {
                let limit = Timespec::from(length);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit))
            }
            None => self.ring.submit_and_wait(1),
        };
        match result {
            Ok(_) => {}
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::ETIME | libc::EBUSY)) => {}
            Err(error) => return Err(error),
        }
        self.reap(into);
        Ok(())
    }

    fn reap(&mut self, into: &mut Vec<Completion>) {
        let Ring { ring, pool, held, free, in_flight, .. } = self;
        for entry in ring.completion() {
            let (word, result, flags) = (entry.user_data(), entry.result(), entry.flags());
            let buffer = cqueue::buffer_select(flags).map(|id| pool.take(id, result.max(0) as usize));
            let more = cqueue::more(flags);
            let (mut tag, mut result, mut memory) = (word & !ACCEPT, result, None);
            if !more {
                *in_flight -= 1;
            }
            let mut socket = None;
            if word & (HELD | ACCEPT) == ACCEPT && result >= 0 {
                // SAFETY: the kernel made this descriptor for an accept of ours, and each of its
                // completions is read once.
                socket = Some(unsafe { OwnedFd::from_raw_fd(result) }.into());
            }
            if word & HELD != 0 {
                let place = (word & !HELD) as usize;
                let (its_tag, kept) = std::mem::replace(&mut held[place], (0, Held::Free(*free)));
                *free = place as u32;
                tag = its_tag;
                result = whole(&kept, result);
                memory = give_up(kept, result);
            }
            into.push(Completion { tag, result, more, buffer, memory, socket });
        }
    }

    fn hold(&mut self, tag: u64, held: Held) -> u64 {
        let place = match self.free {
            NONE => {
                self.held.push((tag, held));
                self.held.len() as u64 - 1
            }
            place => {
                let slot = &mut self.held[place as usize];
                if let Held::Free(next) = slot.1 {
                    self.free = next;
                }
                *slot = (tag, held);
                u64::from(place)
            }
        };
        HELD | place
    }

    fn push(&mut self, entry: Entry) {
        self.in_flight += 1;
        if !self.overflow.is_empty() {
            return self.overflow.push_back(entry);
        }
        // SAFETY: what the operation points to is in `held`, or in the pool of buffers, until its
        // completion is read; neither is freed while it is in flight.
        if unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.overflow.push_back(entry);
        }
    }

    fn submit(&self) -> io::Result<()> {
        match self.ring.submit() {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY | libc::EAGAIN)) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn refill(&mut self) {
        let mut queue = self.ring.submission();
        while let Some(entry) = self.overflow.front() {
            // SAFETY: as for `push`.
            if unsafe { queue.push(entry) }.is_err() {
                break;
            }
            self.overflow.pop_front();
        }
    }

    /// Operations that have not completed.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }
}

/// A send that was to wait for room until all was sent, and came back short, has lost its peer.
fn whole(held: &Held, result: i32) -> i32 {
    match held {
        Held::Bytes(bytes) if result >= 0 && (result as usize) < bytes.as_slice().len() => -libc::EPIPE,
        _ => result,
    }
}

/// What is left of a completed operation's belongings: memory to be used again.
fn give_up(held: Held, result: i32) -> Option<Vec<u8>> {
    match held {
        Held::Bytes(Bytes::Owned(memory, _)) | Held::Read { memory, .. } => Some(memory),
        Held::Bytes(Bytes::Shared(..)) | Held::Free(_) => None,
        Held::Socket(socket) => {
            if result == -libc::ECANCELED {
                drop(socket);
            } else {
                // The kernel has closed it: the number is no longer ours.
                let _ = socket.into_raw_fd();
            }
            None
        }
    }
}

/// The flags that receives and sends keep in the field of the priority have no name in the crate.
fn add_priority_flag(entry: &mut Entry, flag: u16) {
    const PRIORITY: usize = 1;
    // SAFETY: `Entry` is a `struct io_uring_sqe` of 64 bytes, aligned to 8: 32 words of 16 bits, of which
    // any value is valid.
    let words = unsafe { &mut *std::ptr::from_mut(entry).cast::<[u16; size_of::<Entry>() / 2]>() };
    // `ioprio` is the second of them (`man 2 io_uring_enter`).
    words[PRIORITY] |= flag;
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Operations in flight may go on for a while after the ring is closed: what they work on stays.
        if self.in_flight > 0 {
            let held = std::mem::take(&mut self.held);
            Box::leak(held.into_boxed_slice());
        }
    }
}
