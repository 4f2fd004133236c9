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

/// An `io_context` with operations, which cannot be created in this build.
pub enum AbsentCompletions {}

/// The buffer of a receive.
pub enum AbsentBuffer {}

impl AbsentContext {
    /// There is no Asio in this build.
    pub fn new() -> io::Result<AbsentContext> {
        let why = "this build has no Asio; install libasio-dev or libboost-dev and build again";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }
}

impl AbsentCompletions {
    /// There is no Asio in this build.
    pub fn new() -> io::Result<AbsentCompletions> {
        AbsentContext::new().map(|context| match context {})
    }
}

/// The methods of types without values.
macro_rules! methods {
    ($($name:ident { $($method:ident($($kind:ty),*) $(-> $result:ty)?;)+ })+) => {
        $(
            #[expect(missing_docs, reason = "see the methods in a build with Asio")]
            impl $name {
                $(
                    pub fn $method(&mut self, $(_: $kind),*) $(-> $result)? {
                        match *self {}
                    }
                )+
            }
        )+
    };
}

methods! {
    AbsentContext {
        watch(RawFd, u64) -> io::Result<AbsentDescriptor>;
        run(Option<u32>, impl FnMut(Ready)) -> io::Result<()>;
    }
    AbsentDescriptor {
        wait(u64, bool, bool) -> io::Result<()>;
    }
    AbsentCompletions {
        accept(RawFd, u64);
        cancel_accept(RawFd);
        receive(RawFd, u64);
        send(RawFd, Bytes, bool, u64);
        read(&Readable, u64, Vec<u8>, u64);
        refuse(u64, i32);
        close(Socket, u64);
        discard(Socket);
        poll_write(RawFd, u64);
        poll_read(RawFd, u64);
        cancel(RawFd);
        wait(Option<Duration>, &mut Vec<Completion<AbsentBuffer>>) -> io::Result<()>;
    }
    AbsentBuffer {
        consume(usize);
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
