//! The functions of `native/asio.cpp`.

use std::ffi::{c_int, c_long, c_void};

macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident),+) => {
        $($(#[$doc])*
        #[repr(C)]
        pub(super) struct $name {
            _memory: [u8; 0],
        })+
    };
}

opaque! {
    /// `Context` of the C++ side.
    RawContext,
    /// `Watched` of the C++ side.
    RawWatched,
    /// `Stream` of the C++ side.
    RawStream,
    /// `Acceptor` of the C++ side.
    RawAcceptor
}

/// The result of one completion.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Result {
    pub(super) key: u64,
    /// For a wait [`READ`] or [`WRITE`]; for an operation a byte count, or a negative error number.
    pub(super) value: i64,
}

pub(super) const READ: u8 = 1;
pub(super) const WRITE: u8 = 2;

unsafe extern "C" {
    pub(super) fn tenfold_asio_new() -> *mut RawContext;
    pub(super) fn tenfold_asio_free(context: *mut RawContext);
    pub(super) fn tenfold_asio_watch(
        context: *mut RawContext,
        number: c_int,
        key: u64,
        error: *mut c_int,
    ) -> *mut RawWatched;
    pub(super) fn tenfold_asio_wait(watched: *mut RawWatched, key: u64, kinds: u8) -> c_int;
    pub(super) fn tenfold_asio_forget(watched: *mut RawWatched);
    pub(super) fn tenfold_asio_run(
        context: *mut RawContext,
        milliseconds: c_long,
        into: *mut Result,
        room: c_long,
    ) -> c_long;
    pub(super) fn tenfold_asio_stream(context: *mut RawContext) -> *mut RawStream;
    pub(super) fn tenfold_asio_assign(stream: *mut RawStream, number: c_int) -> c_int;
    pub(super) fn tenfold_asio_number(stream: *mut RawStream) -> c_int;
    pub(super) fn tenfold_asio_stream_free(stream: *mut RawStream, keeps: bool);
    pub(super) fn tenfold_asio_read_some(
        context: *mut RawContext,
        stream: *mut RawStream,
        into: *mut c_void,
        room: usize,
        key: u64,
    ) -> c_int;
    pub(super) fn tenfold_asio_write_some(
        context: *mut RawContext,
        stream: *mut RawStream,
        from: *const c_void,
        count: usize,
        more: bool,
        key: u64,
    ) -> c_int;
    pub(super) fn tenfold_asio_wait_room(context: *mut RawContext, stream: *mut RawStream, key: u64)
    -> c_int;
    pub(super) fn tenfold_asio_cancel(stream: *mut RawStream);
    pub(super) fn tenfold_asio_listen(
        context: *mut RawContext,
        number: c_int,
        error: *mut c_int,
    ) -> *mut RawAcceptor;
    pub(super) fn tenfold_asio_accept(
        context: *mut RawContext,
        acceptor: *mut RawAcceptor,
        into: *mut RawStream,
        key: u64,
    ) -> c_int;
    pub(super) fn tenfold_asio_cancel_accept(acceptor: *mut RawAcceptor);
    pub(super) fn tenfold_asio_unlisten(acceptor: *mut RawAcceptor);
    pub(super) safe fn tenfold_asio_version() -> c_long;
}
