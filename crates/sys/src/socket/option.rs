//! Options of TCP that `rustix` has no name for.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `TCP_DEFER_ACCEPT`: a listening socket hands connections out when their first bytes are there; on a
/// connecting one, the handshake's acknowledgement travels with them.
pub(crate) fn defer_accept(socket: BorrowedFd<'_>) -> io::Result<()> {
    const SECONDS: u32 = 1;
    set_tcp_option(socket, libc::TCP_DEFER_ACCEPT, SECONDS)
}

/// Sets an option of TCP whose value is a number; the greatest one stands for every greater one.
pub(super) fn set_tcp_option(socket: BorrowedFd<'_>, option: libc::c_int, value: u32) -> io::Result<()> {
    let value = libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
    // SAFETY: the options that are set here take an int; the pointer and length are those of a live one.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
