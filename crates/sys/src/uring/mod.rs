//! `io_uring` (`man 7 io_uring`) as a ring that owns what the kernel works on.
//!
//! Whoever hands an operation over gives its bytes and files away, and gets them back with the
//! completion. So nothing that the kernel may still read or write is freed or reused, whatever the caller
//! does; a ring that is dropped with operations in flight keeps their memory for ever.
//!
//! Sockets are named by their numbers (`RawFd`), because their owners move while operations are in flight.
//! A number that is closed, or another descriptor's by now, costs no memory safety: the kernel answers EBADF,
//! or does to another descriptor of this process what any call by that number would. Whoever hands an
//! operation over keeps the descriptor open until its completion.

mod buffers;
#[cfg(any(test, feature = "test-layer"))]
pub mod faults;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{CancelBuilder, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};

use self::buffers::Pool;
pub use self::buffers::RingBuffer;
use crate::mapping::Mapped;
use crate::socket::Socket;

/// How large a ring is. All of it is memory of the worker.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Operations that are handed over in one call, at least [`Sizes::LEAST_SUBMISSIONS`]; more take
    /// another.
    pub submissions: u32,
    /// Completions that are kept until they are read; the kernel keeps the ones that do not fit.
    pub completions: u32,
    /// Receive buffers, a power of two.
    pub buffers: u16,
    /// Bytes of each.
    pub buffer_bytes: usize,
}

impl Sizes {
    /// A chain of operations has to fit one call: at its end the kernel breaks what is linked.
    pub const LEAST_SUBMISSIONS: u32 = 16;
}

/// Bytes that are sent.
pub enum Bytes {
    /// Those of the vector from this place on.
    Owned(Vec<u8>, usize),
    /// A range of shared bytes.
    Shared(Arc<[u8]>, Range<usize>),
    /// Those of a mapped file.
    Mapped(Mapped),
}

impl Bytes {
    /// How many they are.
    #[allow(clippy::len_without_is_empty, reason = "nothing is not sent")]
    pub fn len(&self) -> usize {
        self.address().1
    }

    /// Where they are, and how many. On the heap or mapped: moving their owner does not move them.
    fn address(&self) -> (*const u8, usize) {
        match self {
            Bytes::Owned(bytes, from) => (bytes[*from..].as_ptr(), bytes.len() - from),
            Bytes::Shared(bytes, range) => (bytes[range.clone()].as_ptr(), range.len()),
            Bytes::Mapped(mapped) => mapped.mapping.address(&mapped.range),
        }
    }
}

/// A file that is read.
pub type Readable = Arc<dyn AsFd + Send + Sync>;

/// What an operation in flight keeps alive.
enum Held {
    Bytes(Bytes),
    /// Bytes that were to be held, and were not taken. One more word of the kernel comes.
    Refused {
        _bytes: Bytes,
    },
    /// A file that is read, and the memory that it is read into.
    Read {
        memory: Vec<u8>,
        _file: Readable,
    },
    /// A socket that is closed. It is closed by dropping it when the kernel did not.
    Socket(OwnedFd),
    Free(u32),
}

impl Held {
    fn refuse(&mut self) {
        *self = match std::mem::replace(self, Held::Free(NONE)) {
            Held::Bytes(bytes) => Held::Refused { _bytes: bytes },
            other => other,
        };
    }
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
    /// Where the kernel says that it no longer holds the bytes of a [`Ring::send_held`]: whether it copied
    /// them after all. There is no other result then.
    pub released: Option<bool>,
}

/// A ring, its receive buffers, and everything that is in flight. It belongs to one thread.
pub struct Ring {
    ring: IoUring,
    pool: Rc<Pool>,
    held: Vec<(u64, Held)>,
    free: u32,
    in_flight: usize,
    /// The beginning of a chain whose last operation has yet to come.
    chain: Vec<Entry>,
    /// Operations that did not fit the submission queue.
    overflow: VecDeque<Entry>,
    #[cfg(any(test, feature = "test-layer"))]
    faults: faults::Faults,
}

/// What rings that have ended left in flight. Operations may go on for a while after a ring is closed: what
/// they work on is never freed.
static RETIRED: Mutex<Vec<Vec<(u64, Held)>>> = Mutex::new(Vec::new());

/// Set in a user word that names a place among [`Ring::held`] and not a tag.
const HELD: u64 = 1 << 63;
/// Set in the user word of an accept, whose results are descriptors.
const ACCEPT: u64 = 1 << 62;
/// The bits of a completion of [`Ring::poll_write`] with which a send is worth a try: room, or an error.
pub const ROOM: i32 = (libc::POLLOUT | libc::POLLERR | libc::POLLHUP) as i32;
/// Tags are less than this.
pub const TAG_BOUND: u64 = 1 << 62;
const NONE: u32 = u32::MAX;
const GROUP: u16 = 0;
/// `IORING_RECVSEND_POLL_FIRST`: nothing is expected to be there, so wait before trying.
const POLL_FIRST: u16 = 1;
/// `IORING_SEND_ZC_REPORT_USAGE`: say whether the bytes were copied (Linux 6.2).
const REPORT_USAGE: u16 = 8;
/// `IORING_NOTIF_USAGE_ZC_COPIED`, in the result of a notification.
const COPIED: u32 = 1 << 31;

impl Ring {
    /// A ring for this thread: single issuer, task work done when it waits (Linux 6.1).
    ///
    /// # Errors
    /// Which step failed, and what the system said.
    pub fn new(sizes: Sizes) -> Result<Ring, (&'static str, io::Error)> {
        assert!(sizes.submissions >= Sizes::LEAST_SUBMISSIONS, "a ring has room for a chain");
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
        let (held, chain, overflow) = (Vec::new(), Vec::new(), VecDeque::new());
        Ok(Ring {
            ring,
            pool,
            held,
            free: NONE,
            in_flight: 0,
            chain,
            overflow,
            #[cfg(any(test, feature = "test-layer"))]
            faults: faults::Faults::new(),
        })
    }

    /// Whether this kernel has [`Ring::send_held`] and says what it copied (Linux 6.2).
    ///
    /// # Errors
    /// What `io_uring_setup(2)` and `io_uring_enter(2)` say.
    pub fn sends_held() -> io::Result<bool> {
        let mut ring = IoUring::new(4)?;
        // On a descriptor that there is not, it fails with EBADF; unless the operation is refused before.
        let send = opcode::SendZc::new(Fd(-1), std::ptr::null(), 0).zc_flags(REPORT_USAGE).build();
        // SAFETY: the operation has no memory.
        let pushed = unsafe { ring.submission().push(&send) };
        debug_assert!(pushed.is_ok(), "a new ring has room");
        ring.submit_and_wait(1)?;
        Ok(ring.completion().any(|entry| entry.result() == -libc::EBADF))
    }

    /// Accepts connections on `listener`, again and again; each completion brings a socket.
    pub fn accept(&mut self, listener: RawFd, tag: u64) {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        self.push(opcode::AcceptMulti::new(Fd(listener)).flags(flags).build().user_data(tag | ACCEPT));
    }

    /// Accepts one connection on `listener`.
    pub fn accept_one(&mut self, listener: RawFd, tag: u64) {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let entry = opcode::Accept::new(Fd(listener), std::ptr::null_mut(), std::ptr::null_mut());
        self.push(entry.flags(flags).build().user_data(tag | ACCEPT));
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
    /// (`MSG_MORE`); `linked`, that the next operation begins when this one has succeeded. At most
    /// [`Sizes::LEAST_SUBMISSIONS`] operations are linked, the last of them by none.
    pub fn send(&mut self, number: RawFd, bytes: Bytes, more: bool, linked: bool, tag: u64) {
        let (start, length) = bytes.address();
        let (length, flags) = (u32::try_from(length).unwrap_or(u32::MAX), send_flags(more));
        let word = self.hold(tag, Held::Bytes(bytes));
        let entry = opcode::Send::new(Fd(number), start, length).flags(flags).build().user_data(word);
        match linked {
            true => self.link(entry.flags(Flags::IO_LINK)),
            false => self.push(entry),
        }
    }

    /// As [`Ring::send`], of bytes of a mapped file, which the kernel does not copy but holds. Where it took
    /// them, it says when it holds them no more by another completion: [`Completion::released`].
    ///
    /// It is no part of a chain: where the operation in front of it fails, the kernel says that there is no
    /// second completion, and sends it.
    pub fn send_held(&mut self, number: RawFd, mapped: Mapped, more: bool, tag: u64) {
        assert!(self.chain.is_empty(), "nothing is linked to a send that is held");
        let (start, length) = mapped.mapping.address(&mapped.range);
        let (length, flags) = (u32::try_from(length).unwrap_or(u32::MAX), send_flags(more));
        let word = self.hold(tag, Held::Bytes(Bytes::Mapped(mapped)));
        let send = opcode::SendZc::new(Fd(number), start, length).flags(flags).zc_flags(REPORT_USAGE);
        self.push(send.build().user_data(word));
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

    /// Says each time when room to write has come, as the bits of `poll(2)`. One-shot it would not do:
    /// the kernel adds the end of the peer to what is waited for, and that is there for good.
    pub fn poll_write(&mut self, number: RawFd, tag: u64) {
        self.push(opcode::PollAdd::new(Fd(number), libc::POLLOUT as u32).multi(true).build().user_data(tag));
    }

    /// Says each time when there is something to read.
    pub fn poll_read(&mut self, number: RawFd, tag: u64) {
        self.push(opcode::PollAdd::new(Fd(number), libc::POLLIN as u32).multi(true).build().user_data(tag));
    }

    /// Cancels the receive or the poll that was given `target` as its tag; it completes with ECANCELED.
    pub fn cancel(&mut self, target: u64, tag: u64) {
        self.push(opcode::AsyncCancel::new(target).build().user_data(tag));
    }

    /// Cancels the accept that was given `target` as its tag; it completes with ECANCELED.
    pub fn cancel_accept(&mut self, target: u64, tag: u64) {
        self.cancel(target | ACCEPT, tag);
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
    /// What `io_uring_enter(2)` says. EAGAIN and ENOMEM are a shortage ([`crate::failure::is_shortage`]): what
    /// had completed is in `into`, and what was not taken is handed over by the next wait.
    pub fn wait(&mut self, timeout: Option<Duration>, into: &mut Vec<Completion>) -> io::Result<()> {
        debug_assert!(self.chain.is_empty(), "a chain has its end before it is handed over");
        while !self.overflow.is_empty() {
            let submitted = self.submit();
            self.refill();
            // A kernel may take no more operations while completions wait to be read.
            self.reap(into);
            submitted?;
        }
        let timeout = if into.is_empty() { timeout } else { Some(Duration::ZERO) };
        let result = match timeout {
            Some(Duration::ZERO) => self.look(),
            Some(length) => {
                let limit = Timespec::from(length);
                self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&limit))
            }
            None => self.ring.submit_and_wait(1),
        };
        self.reap(into);
        match result {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::ETIME | libc::EBUSY)) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Hands everything over and lets what has happened complete, without waiting: with deferred task work
    /// that takes a call which asks for events.
    fn look(&mut self) -> io::Result<usize> {
        const GETEVENTS: u32 = 1;
        let count = self.ring.submission().len() as u32;
        // SAFETY: what the entries point to outlives them, as for `push`; there is no argument.
        unsafe { self.ring.submitter().enter::<libc::sigset_t>(count, 0, GETEVENTS, None) }
    }

    fn reap(&mut self, into: &mut Vec<Completion>) {
        let Ring { ring, pool, held, free, in_flight, .. } = self;
        for entry in ring.completion() {
            let (word, result, flags) = (entry.user_data(), entry.result(), entry.flags());
            #[cfg(any(test, feature = "test-layer"))]
            let result = self.faults.result(word, result);
            let buffer = cqueue::buffer_select(flags).map(|id| pool.take(id, result.max(0) as usize));
            let more = cqueue::more(flags);
            let (mut tag, mut result, mut memory) = (word & !ACCEPT, result, None);
            if !more {
                *in_flight -= 1;
            }
            let (mut socket, mut released) = (None, None);
            if word & (HELD | ACCEPT) == ACCEPT && result >= 0 {
                // SAFETY: the kernel made this descriptor for an accept of ours, and each of its
                // completions is read once.
                socket = Some(unsafe { OwnedFd::from_raw_fd(result) }.into());
            }
            if word & HELD != 0 && more {
                let (its_tag, kept) = &mut held[(word & !HELD) as usize];
                (tag, result) = (*its_tag, whole(kept, result));
                if result < 0 {
                    kept.refuse();
                }
            } else if word & HELD != 0 {
                let place = (word & !HELD) as usize;
                let (its_tag, kept) = std::mem::replace(&mut held[place], (0, Held::Free(*free)));
                *free = place as u32;
                if let Held::Refused { .. } = kept {
                    continue;
                }
                tag = its_tag;
                released = cqueue::notif(flags).then_some(result as u32 & COPIED != 0);
                result = if released.is_some() { 0 } else { whole(&kept, result) };
                memory = give_up(kept, result);
            }
            into.push(Completion { tag, result, more, buffer, memory, socket, released });
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

    /// The next operation of a chain, but not its last.
    fn link(&mut self, entry: Entry) {
        self.in_flight += 1;
        #[cfg(any(test, feature = "test-layer"))]
        let entry = self.faults.spoil(entry);
        self.chain.push(entry);
        assert!(self.chain.len() < Sizes::LEAST_SUBMISSIONS as usize, "a chain is short");
    }

    fn push(&mut self, entry: Entry) {
        self.in_flight += 1;
        #[cfg(any(test, feature = "test-layer"))]
        let entry = self.faults.spoil(entry);
        if !self.chain.is_empty() {
            return self.push_chain(entry);
        }
        if !self.overflow.is_empty() {
            return self.overflow.push_back(entry);
        }
        // SAFETY: what the operation points to is in `held`, or in the pool of buffers, until its
        // completion is read; neither is freed while it is in flight.
        if unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.overflow.push_back(entry);
        }
    }

    /// Ends a chain. It is handed over in one call: at the end of a call the kernel breaks what is linked,
    /// and what comes behind would overtake.
    fn push_chain(&mut self, last: Entry) {
        self.chain.push(last);
        // SAFETY: as for `push`.
        let fits =
            self.overflow.is_empty() && unsafe { self.ring.submission().push_multiple(&self.chain) }.is_ok();
        if fits {
            self.chain.clear();
        } else {
            self.overflow.extend(self.chain.drain(..));
        }
    }

    fn submit(&self) -> io::Result<()> {
        match self.ring.submit() {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn refill(&mut self) {
        let Ring { ring, overflow, chain, .. } = self;
        let mut queue = ring.submission();
        while !overflow.is_empty() {
            let linked = overflow.iter().take_while(|entry| is_linked(entry)).count();
            chain.extend(overflow.drain(..overflow.len().min(linked + 1)));
            // SAFETY: as for `push`.
            if unsafe { queue.push_multiple(chain) }.is_err() {
                for entry in chain.drain(..).rev() {
                    overflow.push_front(entry);
                }
                return;
            }
            chain.clear();
        }
    }

    /// Operations that have not completed.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }
}

fn send_flags(more: bool) -> libc::c_int {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
    if more { flags | libc::MSG_MORE } else { flags }
}

/// A send that was to wait for room until all was sent, and came back short, has lost its peer.
fn whole(held: &Held, result: i32) -> i32 {
    match held {
        Held::Bytes(bytes) if result >= 0 && (result as usize) < bytes.len() => -libc::EPIPE,
        _ => result,
    }
}

/// What is left of a completed operation's belongings: memory to be used again.
fn give_up(held: Held, result: i32) -> Option<Vec<u8>> {
    match held {
        Held::Bytes(Bytes::Owned(memory, _)) | Held::Read { memory, .. } => Some(memory),
        Held::Bytes(Bytes::Shared(..) | Bytes::Mapped(..)) | Held::Refused { .. } | Held::Free(_) => None,
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

/// Whether the next operation waits for this one.
fn is_linked(entry: &Entry) -> bool {
    const FLAGS: usize = 1;
    // SAFETY: `Entry` is a `struct io_uring_sqe` of 64 initialised bytes.
    let bytes = unsafe { &*std::ptr::from_ref(entry).cast::<[u8; size_of::<Entry>()]>() };
    // `flags` is the second of them (`man 2 io_uring_enter`).
    bytes[FLAGS] & Flags::IO_LINK.bits() != 0
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
        // Connections that were accepted and never heard of are closed.
        self.reap(&mut Vec::new());
        if self.in_flight > 0 {
            let held = std::mem::take(&mut self.held);
            RETIRED.lock().unwrap_or_else(PoisonError::into_inner).push(held);
        }
    }
}
