//! Stand-ins for Asio in a build without it.

use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::RawFd;
use std::time::Duration;

use crate::completion::{Bytes, Completion, Readable};
use crate::net::socket::Socket;
use crate::readiness::Ready;

/// The version of the library, if there is one.
pub fn version() -> Option<String> {
    None
}

/// An `io_context`, which cannot be created in this build.
pub enum AbsentContext {}

/// A descriptor that is watched.
pub enum AbsentDescriptor {}

impl AbsentContext {
    /// There is no Asio in this build.
    pub fn new() -> io::Result<AbsentContext> {
        let why = "this build has no Asio; install libasio-dev or libboost-dev and build again";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// Registers `number` under `key`.
    pub fn watch(&self, _number: RawFd, _key: u64) -> io::Result<AbsentDescriptor> {
        match *self {}
    }

    /// Waits.
    pub fn run(&mut self, _milliseconds: Option<u32>, _report: impl FnMut(Ready)) -> io::Result<()> {
        match *self {}
    }
}

impl AbsentDescriptor {
    /// Begins to wait.
    pub fn wait(&mut self, _key: u64, _read: bool, _write: bool) -> io::Result<()> {
        match *self {}
    }
}

/// An `io_context` with operations, which cannot be created in this build.
pub enum AbsentCompletions {}

/// The buffer of a receive.
pub enum AbsentBuffer {}

impl AbsentCompletions {
    /// There is no Asio in this build.
    pub fn new() -> io::Result<AbsentCompletions> {
        AbsentContext::new().map(|context| match context {})
    }

    /// Accepts.
    pub fn accept(&mut self, _listener: RawFd, _tag: u64) {
        match *self {}
    }

    /// Ends an accept.
    pub fn cancel_accept(&mut self, _listener: RawFd) {
        match *self {}
    }

    /// Receives.
    pub fn receive(&mut self, _number: RawFd, _tag: u64) {
        match *self {}
    }

    /// Sends.
    pub fn send(&mut self, _number: RawFd, _bytes: Bytes, _more: bool, _tag: u64) {
        match *self {}
    }

    /// Reads.
    pub fn read(&mut self, _file: &Readable, _offset: u64, _memory: Vec<u8>, _tag: u64) {
        match *self {}
    }

    /// Refuses.
    pub fn refuse(&mut self, _tag: u64, _error: i32) {
        match *self {}
    }

    /// Closes a socket after its sends.
    pub fn close(&mut self, _socket: Socket, _tag: u64) {
        match *self {}
    }

    /// Closes.
    pub fn discard(&mut self, _socket: Socket) {
        match *self {}
    }

    /// Waits for room.
    pub fn poll_write(&mut self, _number: RawFd, _tag: u64) {
        match *self {}
    }

    /// Waits for an eventfd.
    pub fn poll_read(&mut self, _number: RawFd, _tag: u64) {
        match *self {}
    }

    /// Cancels the operations in flight.
    pub fn cancel(&mut self, _number: RawFd) {
        match *self {}
    }

    /// Waits.
    pub fn wait(
        &mut self,
        _timeout: Option<Duration>,
        _into: &mut Vec<Completion<AbsentBuffer>>,
    ) -> io::Result<()> {
        match *self {}
    }
}

impl AbsentBuffer {
    /// Drops bytes.
    pub fn consume(&mut self, _count: usize) {
        match *self {}
    }
}

impl Deref for AbsentBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match *self {}
    }
}

impl DerefMut for AbsentBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match *self {}
    }
}
