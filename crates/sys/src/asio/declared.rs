//! The functions of `native/asio.cpp`.

use std::ffi::{c_int, c_long};

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
    RawWatched
}

/// What one completion came to.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Result {
    pub(super) key: u64,
    /// [`READ`] or [`WRITE`].
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
    pub(super) safe fn tenfold_asio_version() -> c_long;
}
