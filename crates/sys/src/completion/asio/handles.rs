//! Objects of the C++ side, which are freed when they are dropped.

use std::ffi::c_int;
use std::os::fd::RawFd;
use std::ptr::NonNull;

use super::context::Context;
use super::declared::{self as c, RawAcceptor, RawStream};

/// What a function of the C++ side said: an error as its negative number.
pub(super) fn success(result: c_int) -> Result<(), i32> {
    if result == 0 { Ok(()) } else { Err(result) }
}

/// A socket that is read and written. Operations in flight end when it is dropped: they say so, and touch no
/// memory any more.
pub(super) struct Handle {
    raw: NonNull<RawStream>,
    /// Whether its descriptor is somebody else's.
    keeps_open: bool,
}

impl Handle {
    /// One without a descriptor, to be dropped before the context.
    pub(super) fn new(context: &Context) -> Result<Handle, i32> {
        // SAFETY: the context is live.
        let raw = NonNull::new(unsafe { c::tenfold_asio_stream(context.address()) });
        raw.map(|raw| Handle { raw, keeps_open: false }).ok_or(-libc::ENOMEM)
    }

    /// From here on its descriptor is somebody else's, and stays open when it is dropped.
    pub(super) fn keep_open(&mut self) {
        self.keeps_open = true;
    }

    pub(super) fn address(&self) -> *mut RawStream {
        self.raw.as_ptr()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: it is live and not used again.
        unsafe { c::tenfold_asio_stream_free(self.raw.as_ptr(), self.keeps_open) };
    }
}

/// A listening socket, which stays open.
pub(super) struct Acceptor(NonNull<RawAcceptor>);

impl Acceptor {
    /// One for `listener`, to be dropped before the context.
    pub(super) fn new(context: &Context, listener: RawFd) -> Result<Acceptor, i32> {
        let mut error = 0;
        // SAFETY: the context is live.
        let raw = unsafe { c::tenfold_asio_listen(context.address(), listener, &raw mut error) };
        NonNull::new(raw).map(Acceptor).ok_or(error)
    }

    pub(super) fn address(&self) -> *mut RawAcceptor {
        self.0.as_ptr()
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        // SAFETY: it is live and not used again.
        unsafe { c::tenfold_asio_unlisten(self.0.as_ptr()) };
    }
}
