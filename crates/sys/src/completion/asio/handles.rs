//! Objects of the C++ side, freed on drop.

use std::ffi::c_int;
use std::os::fd::RawFd;
use std::ptr::NonNull;

use super::context::IoContext;
use super::declared::{self as c, RawAcceptor, RawStream};

/// The result of a function of the C++ side; errors are negative numbers.
pub(super) fn success(result: c_int) -> Result<(), i32> {
    if result == 0 { Ok(()) } else { Err(result) }
}

/// A socket for reads and writes. Dropping it cancels the operations in flight: they complete, and touch no memory
/// afterwards.
pub(super) struct StreamHandle {
    raw: NonNull<RawStream>,
    /// Whether another owner closes its descriptor.
    keeps_open: bool,
}

impl StreamHandle {
    /// Creates a handle without a descriptor. Drop it before the context.
    pub(super) fn new(context: &IoContext) -> Result<StreamHandle, i32> {
        // SAFETY: the context is live.
        let raw = NonNull::new(unsafe { c::tenfold_asio_stream(context.address()) });
        raw.map(|raw| StreamHandle { raw, keeps_open: false }).ok_or(-libc::ENOMEM)
    }

    /// Leaves its descriptor open on drop, because it has another owner from now on.
    pub(super) fn keep_open(&mut self) {
        self.keeps_open = true;
    }

    pub(super) fn address(&self) -> *mut RawStream {
        self.raw.as_ptr()
    }
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        // SAFETY: it is live and not used again.
        unsafe { c::tenfold_asio_stream_free(self.raw.as_ptr(), self.keeps_open) };
    }
}

/// A listening socket, which stays open on drop.
pub(super) struct AcceptorHandle(NonNull<RawAcceptor>);

impl AcceptorHandle {
    /// Creates an acceptor for `listener`. Drop it before the context.
    pub(super) fn new(context: &IoContext, listener: RawFd) -> Result<AcceptorHandle, i32> {
        let mut error = 0;
        // SAFETY: the context is live.
        let raw = unsafe { c::tenfold_asio_listen(context.address(), listener, &raw mut error) };
        NonNull::new(raw).map(AcceptorHandle).ok_or(error)
    }

    pub(super) fn address(&self) -> *mut RawAcceptor {
        self.0.as_ptr()
    }
}

impl Drop for AcceptorHandle {
    fn drop(&mut self) {
        // SAFETY: it is live and not used again.
        unsafe { c::tenfold_asio_unlisten(self.0.as_ptr()) };
    }
}
