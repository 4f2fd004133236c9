//! What stands for libevent in a build that has none.

use std::io;
use std::os::fd::RawFd;

use crate::readiness::Ready;
use crate::readiness::libevent::interest::Interest;

/// The methods of a library that is not there.
pub const METHODS: &[&str] = &[];

/// An event base, of which there is none in this build.
pub enum Base {}

impl Base {
    /// There is no libevent in this build.
    ///
    /// # Errors
    /// Always.
    pub fn new(_method: Option<&str>) -> io::Result<Base> {
        let why = "this build has no libevent; install libevent-dev and build again";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// The method that the library uses.
    pub fn method(&self) -> &'static str {
        match *self {}
    }

    /// Registers `number` under `key`, or changes what it wants to hear of.
    ///
    /// # Errors
    /// None that could come.
    pub fn set(&mut self, _number: RawFd, _key: u64, _interest: Interest) -> io::Result<()> {
        match *self {}
    }

    /// Ends a registration.
    pub fn remove(&mut self, _number: RawFd) {
        match *self {}
    }

    /// Waits.
    ///
    /// # Errors
    /// None that could come.
    pub fn wait(&mut self, _milliseconds: Option<u32>, _report: impl FnMut(Ready)) -> io::Result<()> {
        match *self {}
    }
}
