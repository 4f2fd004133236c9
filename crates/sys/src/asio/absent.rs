//! What stands for Asio in a build that has none.

use std::io;
use std::os::fd::RawFd;

use crate::readiness::Ready;

/// The version of the library, where there is one.
pub fn version() -> Option<String> {
    None
}

/// An `io_context`, of which there is none in this build.
pub enum Context {}

/// A descriptor that is watched.
pub enum Watched {}

impl Context {
    /// There is no Asio in this build.
    ///
    /// # Errors
    /// Always.
    pub fn new() -> io::Result<Context> {
        let why = "this build has no Asio; install libasio-dev or libboost-dev and build again";
        Err(io::Error::new(io::ErrorKind::Unsupported, why))
    }

    /// Registers `number` under `key`.
    ///
    /// # Errors
    /// None that could come.
    pub fn watch(&self, _number: RawFd, _key: u64) -> io::Result<Watched> {
        match *self {}
    }

    /// Waits.
    ///
    /// # Errors
    /// None that could come.
    pub fn run(&mut self, _milliseconds: Option<u32>, _report: impl FnMut(Ready)) -> io::Result<()> {
        match *self {}
    }
}

impl Watched {
    /// Begins to wait.
    ///
    /// # Errors
    /// None that could come.
    pub fn wait(&mut self, _key: u64, _read: bool, _write: bool) -> io::Result<()> {
        match *self {}
    }
}
