//! Operations of Asio: each read, write or accept owns its memory until its result is returned.
//!
//! The caller of an operation gives its memory away and gets it back with the result. If the socket is given back
//! first, the memory stays until the library has completed every operation on it.
//!
//! Sockets are named by their numbers. Those that are accepted here, or named in an operation, are registered
//! with the library until [`CompletionContext::close`] or [`CompletionContext::discard`].

mod sends;

use std::io;
use std::os::fd::{AsFd as _, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use super::buffer::{AsioCompletion, Spare};
use super::context::{IoContext, StreamDescriptor};
use super::declared::{self as c, RawStream};
use super::handles::{AcceptorHandle, StreamHandle, success};
use super::stream::StreamOperations;
use crate::completion::Readable;
use crate::net::socket::Socket;

/// An `io_context` with everything that is in flight on it. It belongs to one thread.
pub struct CompletionContext {
    listeners: Vec<Listening>,
    events: Vec<WatchedEventFd>,
    streams: Vec<StreamOperations>,
    /// Free places among the streams.
    free: Vec<usize>,
    /// The place of each socket among the streams, by its number.
    places: Vec<Option<usize>>,
    spare: Spare,
    /// Completions for the next wait to return.
    done: Vec<AsioCompletion>,
    /// Declared last, so that it is dropped after everything registered with it.
    context: IoContext,
}

struct Listening {
    number: RawFd,
    tag: u64,
    acceptor: AcceptorHandle,
    /// The handle for the next accepted connection; in flight while `accepting`.
    next: Option<StreamHandle>,
    accepting: bool,
}

struct WatchedEventFd {
    number: RawFd,
    tag: u64,
    watched: StreamDescriptor,
}

/// Kind of an operation, in the upper half of its key; the lower half is a place.
const READ: u64 = 0;
const WRITTEN: u64 = 1;
const ROOM: u64 = 2;
const ACCEPTED: u64 = 3;
const READY: u64 = 4;
/// There is room for the rest of a send.
const GO_ON: u64 = 5;

fn key(kind: u64, place: usize) -> u64 {
    kind << 32 | place as u64
}

impl CompletionContext {
    /// A context for this thread.
    pub fn new() -> io::Result<CompletionContext> {
        Ok(CompletionContext {
            listeners: Vec::new(),
            events: Vec::new(),
            streams: Vec::new(),
            free: Vec::new(),
            places: Vec::new(),
            spare: Spare::default(),
            done: Vec::new(),
            context: IoContext::new()?,
        })
    }

    /// Accepts one connection on the non-blocking `listener`. Only one accept may be in flight.
    pub fn accept(&mut self, listener: RawFd, tag: u64) {
        if let Err(result) = self.begin_accept(listener, tag) {
            self.done.push(AsioCompletion::plain(tag, result));
        }
    }

    fn begin_accept(&mut self, listener: RawFd, tag: u64) -> Result<(), i32> {
        let place = match self.listeners.iter().position(|listening| listening.number == listener) {
            Some(place) => place,
            None => {
                let acceptor = AcceptorHandle::new(&self.context, listener)?;
                let (number, next, accepting) = (listener, None, false);
                self.listeners.push(Listening { number, tag, acceptor, next, accepting });
                self.listeners.len() - 1
            }
        };
        let listening = &mut self.listeners[place];
        assert!(!listening.accepting, "a listener accepts one connection at a time");
        if listening.next.is_none() {
            listening.next = Some(StreamHandle::new(&self.context)?);
        }
        let into = listening.next.as_ref().map_or(std::ptr::null_mut(), StreamHandle::address);
        let (acceptor, context) = (listening.acceptor.address(), self.context.address());
        // SAFETY: all three are live. The stream has no descriptor, and stays where it is until the result is returned.
        success(unsafe { c::tenfold_asio_accept(context, acceptor, into, key(ACCEPTED, place)) })?;
        (listening.tag, listening.accepting) = (tag, true);
        Ok(())
    }

    /// Cancels the accept on `listener`, which completes with ECANCELED.
    pub fn cancel_accept(&mut self, listener: RawFd) {
        for listening in self.listeners.iter().filter(|listening| listening.number == listener) {
            // SAFETY: the acceptor is live.
            unsafe { c::tenfold_asio_cancel_accept(listening.acceptor.address()) };
        }
    }

    /// Receives once (`async_read_some`). A socket may have one receive in flight.
    pub fn receive(&mut self, number: RawFd, tag: u64) {
        let begun = self.stream(number).and_then(|(place, raw)| {
            let stream = &mut self.streams[place];
            assert!(stream.reading.is_none(), "a socket has one receive at a time");
            let (_, memory) = stream.reading.insert((tag, self.spare.take()));
            let (into, room, context) = (memory.as_mut_ptr(), memory.len(), self.context.address());
            // SAFETY: the context and the stream are live. The memory has that much room, and stays in the stream until
            // the result is returned.
            let result =
                unsafe { c::tenfold_asio_read_some(context, raw, into.cast(), room, key(READ, place)) };
            success(result).inspect_err(|_| stream.reading = None)?;
            stream.in_flight += 1;
            Ok(())
        });
        if let Err(result) = begun {
            self.done.push(AsioCompletion::plain(tag, result));
        }
    }

    /// Reads from `file` at `offset` into `memory`, synchronously: without io_uring, Asio has no operation for it.
    pub fn read(&mut self, file: &Readable, offset: u64, mut memory: Vec<u8>, tag: u64) {
        let result = match rustix::io::pread(file.as_fd(), memory.as_mut_slice(), offset) {
            Ok(count) => i32::try_from(count).unwrap_or(i32::MAX),
            Err(error) => -error.raw_os_error(),
        };
        self.done.push(AsioCompletion { memory: Some(memory), ..AsioCompletion::plain(tag, result) });
    }

    /// Completes an operation with `error` without starting it.
    pub fn refuse(&mut self, tag: u64, error: i32) {
        self.done.push(AsioCompletion::plain(tag, -error));
    }

    /// Closes `socket` after its sends.
    pub fn close(&mut self, socket: Socket, tag: u64) {
        let place = self.place(socket.number());
        match place.map(|place| &mut self.streams[place]).filter(|stream| !stream.sends.is_empty()) {
            Some(stream) => stream.close = Some((tag, socket)),
            None => {
                self.discard(socket);
                self.done.push(AsioCompletion::plain(tag, 0));
            }
        }
    }

    /// Closes `socket` now. Its operations in flight are not reported.
    pub fn discard(&mut self, socket: Socket) {
        let number = usize::try_from(socket.number()).unwrap_or(usize::MAX);
        if let Some(place) = self.places.get_mut(number).and_then(Option::take) {
            // The registration must end before the kernel reuses the number.
            self.streams[place].handle = None;
            self.retire(place);
        }
    }

    /// Reports once that there is room to write on `number`.
    pub fn poll_write(&mut self, number: RawFd, tag: u64) {
        let begun = self.stream(number).and_then(|(place, raw)| {
            let context = self.context.address();
            assert!(self.streams[place].room.is_none(), "room is waited for by one at a time");
            // SAFETY: the context and the stream are live.
            success(unsafe { c::tenfold_asio_wait_room(context, raw, key(ROOM, place)) })?;
            self.streams[place].in_flight += 1;
            self.streams[place].room = Some(tag);
            Ok(())
        });
        if let Err(result) = begun {
            self.done.push(AsioCompletion::plain(tag, result));
        }
    }

    /// Reports once that the eventfd `number` can be read. It must stay open as long as this proactor.
    pub fn poll_read(&mut self, number: RawFd, tag: u64) {
        if let Err(error) = self.begin_poll(number, tag) {
            let result = -error.raw_os_error().unwrap_or(libc::ENOMEM);
            self.done.push(AsioCompletion::plain(tag, result));
        }
    }

    fn begin_poll(&mut self, number: RawFd, tag: u64) -> io::Result<()> {
        let place = match self.events.iter().position(|event| event.number == number) {
            Some(place) => place,
            None => {
                let watched = self.context.watch(number, 0)?;
                self.events.push(WatchedEventFd { number, tag, watched });
                self.events.len() - 1
            }
        };
        self.events[place].tag = tag;
        self.events[place].watched.wait(key(READY, place), true, false)
    }

    /// Cancels all operations in flight on the socket `number`; they complete with ECANCELED.
    pub fn cancel(&mut self, number: RawFd) {
        let Some(stream) = self.place(number).map(|place| &mut self.streams[place]) else { return };
        stream.cancelled = !stream.sends.is_empty();
        if let Some(handle) = &stream.handle {
            // SAFETY: the stream is live.
            unsafe { c::tenfold_asio_cancel(handle.address()) };
        }
    }

    /// Waits until an operation has completed or `timeout` has passed (`None`: no limit), and appends the results of one
    /// handler to `into`. It may return early without a result.
    pub fn wait(&mut self, timeout: Option<Duration>, into: &mut Vec<AsioCompletion>) -> io::Result<()> {
        let timeout = if self.done.is_empty() { timeout } else { Some(Duration::ZERO) };
        let milliseconds = timeout.map(|length| length.as_micros().div_ceil(1000));
        let count =
            self.context.complete(milliseconds.map(|count| u32::try_from(count).unwrap_or(u32::MAX)))?;
        for place in 0..count {
            let (key, value) = self.context.result(place);
            let value = i32::try_from(value).unwrap_or(i32::MAX);
            let (kind, place) = (key >> 32, key as u32 as usize);
            match kind {
                ACCEPTED => self.accepted(place, value),
                READY => self.done.push(AsioCompletion::plain(self.events[place].tag, 1)),
                _ => self.completed(kind, place, value),
            }
        }
        into.append(&mut self.done);
        Ok(())
    }

    fn accepted(&mut self, place: usize, value: i32) {
        let listening = &mut self.listeners[place];
        listening.accepting = false;
        let tag = listening.tag;
        let Some(mut handle) = listening.next.take_if(|_| value >= 0) else {
            return self.done.push(AsioCompletion::plain(tag, value));
        };
        // SAFETY: the stream is live.
        let number = unsafe { c::tenfold_asio_number(handle.address()) };
        handle.keep_open();
        // SAFETY: this accept created the descriptor. The stream leaves it open from here on, so only this socket
        // closes it.
        let socket = Socket::from(unsafe { OwnedFd::from_raw_fd(number) });
        self.insert(number, handle);
        self.done.push(AsioCompletion { socket: Some(socket), ..AsioCompletion::plain(tag, number) });
    }

    fn completed(&mut self, kind: u64, place: usize, value: i32) {
        let stream = &mut self.streams[place];
        stream.in_flight -= 1;
        if stream.handle.is_none() {
            return self.retire(place);
        }
        match kind {
            READ => {
                let (tag, memory) = stream.reading.take().expect("what was read was being read");
                let buffer = self.spare.filled(memory, usize::try_from(value).unwrap_or(0));
                self.done.push(AsioCompletion { buffer, ..AsioCompletion::plain(tag, value) });
            }
            WRITTEN => self.written(place, value),
            GO_ON if value < 0 => self.fail(place, value),
            GO_ON => self.go_on(place),
            _ => {
                let tag = stream.room.take().expect("room that has come was waited for");
                let result = if value < 0 { value } else { crate::completion::ROOM };
                self.done.push(AsioCompletion::plain(tag, result));
            }
        }
    }

    fn place(&self, number: RawFd) -> Option<usize> {
        *self.places.get(usize::try_from(number).ok()?)?
    }

    /// Returns the place and the stream of the socket `number`, and registers it if needed.
    fn stream(&mut self, number: RawFd) -> Result<(usize, *mut RawStream), i32> {
        let place = match self.place(number) {
            Some(place) => place,
            None => {
                let mut handle = StreamHandle::new(&self.context)?;
                handle.keep_open();
                // SAFETY: the stream is live and has no descriptor.
                success(unsafe { c::tenfold_asio_assign(handle.address(), number) })?;
                self.insert(number, handle)
            }
        };
        let handle = self.streams[place].handle.as_ref().expect("a socket that has a place is registered");
        Ok((place, handle.address()))
    }

    fn insert(&mut self, number: RawFd, handle: StreamHandle) -> usize {
        let place = self.free.pop().unwrap_or_else(|| {
            self.streams.push(StreamOperations::default());
            self.streams.len() - 1
        });
        self.streams[place].handle = Some(handle);
        let number = usize::try_from(number).expect("an open descriptor is not negative");
        if self.places.len() <= number {
            self.places.resize(number + 1, None);
        }
        debug_assert!(self.places[number].is_none(), "a socket is given back before its number is another's");
        self.places[number] = Some(place);
        place
    }

    /// Frees the place of a socket that was given back, if no operation is in flight.
    fn retire(&mut self, place: usize) {
        if self.streams[place].in_flight == 0 {
            self.streams[place] = StreamOperations::default();
            self.free.push(place);
        }
    }
}
