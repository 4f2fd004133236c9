//! Stand-ins for libevent in a build without it.

use std::io;
use std::os::fd::RawFd;

use crate::readiness::Ready;
use crate::readiness::libevent::interest::LibeventInterest;

/// The methods of the absent library.
pub const METHODS: &[&str] = &[];

/// An event base, which cannot be created in this build.
pub enum AbsentBase {}

impl AbsentBase {
    /// There is no libevent in this build.
    pub fn new(_method: Option<&str>) -> io::Result<AbsentBase> {
        let why = "this build has no libevent; install libevent-dev and build again";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// The method that the library uses.
    pub fn method(&self) -> &'static str {
        match *self {}
    }

    /// Registers `number` under `key`, or changes its interest.
    pub fn set(&mut self, _number: RawFd, _key: u64, _interest: LibeventInterest) -> io::Result<()> {
        match *self {}
    }

    /// Ends a registration.
    pub fn remove(&mut self, _number: RawFd) {
        match *self {}
    }

    /// Waits.
    pub fn wait(&mut self, _milliseconds: Option<u32>, _report: impl FnMut(Ready)) -> io::Result<()> {
        match *self {}
    }
}
