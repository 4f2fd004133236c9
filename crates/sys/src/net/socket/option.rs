//! New sockets, and options without a name in `rustix`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// `TCP_DEFER_ACCEPT`: a listening socket returns connections once their first bytes have arrived; on a connecting
/// socket, the handshake's acknowledgement travels with the first bytes.
pub(crate) fn defer_accept(socket: BorrowedFd<'_>) -> io::Result<()> {
    const SECONDS: u32 = 1;
    set_tcp_option(socket, libc::TCP_DEFER_ACCEPT, SECONDS)
}

/// Sets an option of TCP whose value is a number. Greater values than an int can hold are clamped.
pub(super) fn set_tcp_option(socket: BorrowedFd<'_>, option: libc::c_int, value: u32) -> io::Result<()> {
    let value = libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
    set_option(socket, libc::IPPROTO_TCP, option, value)
}

/// asm-generic/socket.h, Linux 6.16. The `libc` crate does not have it.
pub(super) const SO_PASSRIGHTS: libc::c_int = 83;

/// Refuses descriptors that clients of a listening Unix socket attach to their bytes: the send fails. A worker would close
/// them with the connection, and that close can wait as long as the SO_LINGER of the client says. Kernels before 6.16 lack
/// the option, and nothing changes.
pub(super) fn refuse_descriptors(socket: impl AsFd) {
    let _ = set_option(socket.as_fd(), libc::SOL_SOCKET, SO_PASSRIGHTS, 0);
}

/// Sets an option whose value is an int.
pub(in crate::net) fn set_option(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    set_bytes(socket, level, option, &value.to_ne_bytes())
}

/// Sets an option whose value has these bytes.
pub(in crate::net) fn set_bytes(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: &[u8],
) -> io::Result<()> {
    let length = value.len() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `value`, which outlives the call.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value.as_ptr().cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option whose value has at least as many bytes as `value`.
pub(in crate::net) fn read_bytes(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: &mut [u8],
) -> io::Result<()> {
    let mut length = value.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `value`, and their number to `length`.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, option, value.as_mut_ptr().cast(), &raw mut length)
    };
    match result {
        0 if length as usize == value.len() => Ok(()),
        0 => Err(io::ErrorKind::Unsupported.into()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Permits zero-copy sends ([`crate::net::zerocopy`]) on the connections that a listening socket accepts.
///
/// # Errors
/// EOPNOTSUPP on a Unix socket.
pub(crate) fn permit_zerocopy(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1)
}

/// Whether zero-copy sends are permitted.
pub(super) fn is_zerocopy_permitted(socket: BorrowedFd<'_>) -> bool {
    let mut on = [0; 4];
    read_bytes(socket, libc::SOL_SOCKET, libc::SO_ZEROCOPY, &mut on).is_ok() && on != [0; 4]
}

/// Creates a stream socket with these flags that is closed on exec.
pub(in crate::net) fn new_socket(family: AddressFamily, flags: SocketFlags) -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | flags, None)?)
}
