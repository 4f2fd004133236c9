//! Connecting to a server: to an address or a path, from a chosen source address.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags};

use crate::net::socket::{Socket, option};

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Remote {
    /// An address and a port.
    Internet(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remote::Internet(address) => address.fmt(f),
            Remote::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Options set on a socket before it connects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectOptions {
    /// The source address. The kernel chooses the port at the connect, so that ports count per pair of addresses and
    /// not per source (`IP_BIND_ADDRESS_NO_PORT`, `man 7 ip`).
    pub source: Option<IpAddr>,
    /// `TCP_NODELAY`: send small segments immediately.
    pub tcp_nodelay: bool,
    /// `TCP_DEFER_ACCEPT` on the connecting side: the last acknowledgement of the handshake waits for the first bytes
    /// and travels with them. This saves a packet (`man 7 tcp`).
    pub join_ack: bool,
    /// Bytes of the receive buffer (`SO_RCVBUF`, `man 7 socket`); a small one makes backpressure of a slow reader
    /// visible.
    pub receive_buffer: Option<u32>,
}

/// Starts a non-blocking connect. The socket becomes writable once it is connected.
///
/// # Errors
/// The error of `socket(2)`, `bind(2)` or `connect(2)`; `WouldBlock` for a Unix socket whose queue is full.
pub fn connect(to: &Remote, options: &ConnectOptions) -> io::Result<Socket> {
    let (socket, result) = match to {
        Remote::Internet(at) => {
            let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let socket = option::new_socket(family, SocketFlags::NONBLOCK)?;
            set_options(&socket, at, options)?;
            let result = rustix::net::connect(&socket, at);
            (socket, result)
        }
        Remote::Unix(path) => {
            let at = SocketAddrUnix::new(path.as_path())?;
            let socket = option::new_socket(AddressFamily::UNIX, SocketFlags::NONBLOCK)?;
            let result = rustix::net::connect(&socket, &at);
            (socket, result)
        }
    };
    match result {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

fn set_options(socket: &OwnedFd, to: &SocketAddr, options: &ConnectOptions) -> io::Result<()> {
    if options.tcp_nodelay {
        sockopt::set_tcp_nodelay(socket, true)?;
    }
    if options.join_ack {
        option::defer_accept(socket.as_fd())?;
    }
    if let Some(bytes) = options.receive_buffer {
        sockopt::set_socket_recv_buffer_size(socket, bytes as usize)?;
    }
    if let Some(source) = options.source {
        option::set_option(socket.as_fd(), libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
        let mut from = SocketAddr::new(source, 0);
        if let (SocketAddr::V6(from), SocketAddr::V6(to)) = (&mut from, to) {
            // A link-local address needs the interface (`man 7 ipv6`), which is that of the server.
            from.set_scope_id(to.scope_id());
        }
        rustix::net::bind(socket, &from)?;
    }
    Ok(())
}

impl Socket {
    /// The pending error of the socket (`SO_ERROR`, `man 7 socket`), such as that of a failed connect.
    pub fn take_error(&self) -> io::Result<()> {
        match sockopt::socket_error(self.as_fd())? {
            Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Discards up to `count` received bytes without copying them (`MSG_TRUNC` on TCP, `man 7 tcp`); 0 is the end. Not
    /// for Unix sockets, where the flag has another meaning.
    ///
    /// # Errors
    /// The error of the system call; `WouldBlock` if the call would wait.
    pub fn discard(&self, count: usize) -> io::Result<usize> {
        // SAFETY: with MSG_TRUNC a TCP socket writes nothing through the pointer; on any other socket a null pointer
        // makes the call fail with EFAULT.
        let result =
            unsafe { libc::recv(self.as_fd().as_raw_fd(), std::ptr::null_mut(), count, libc::MSG_TRUNC) };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    #[test]
    fn connects_from_the_given_source_and_discards_bytes() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let to = Remote::Internet(listener.local_addr().expect("it is bound"));
        let source = IpAddr::from([127, 0, 0, 9]);
        let options = ConnectOptions { source: Some(source), tcp_nodelay: true, ..ConnectOptions::default() };
        let socket = connect(&to, &options).expect("loopback connects");
        let (mut peer, address) = listener.accept().expect("somebody connected");
        assert_eq!(address.ip(), source);
        assert!(socket.take_error().is_ok());
        peer.write_all(b"0123456789").expect("it is open");
        assert_eq!(socket.discard(6).expect("bytes are there"), 6);
        let mut rest = [0; 16];
        assert_eq!(socket.receive(&mut rest).expect("bytes are left"), 4);
        assert_eq!(&rest[..4], b"6789");
        drop(peer);
    }

    #[test]
    fn a_handshake_ends_with_the_first_bytes_where_that_is_wanted() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let to = Remote::Internet(listener.local_addr().expect("it is bound"));
        for join_ack in [false, true] {
            let options = ConnectOptions { join_ack, ..ConnectOptions::default() };
            let socket = connect(&to, &options).expect("loopback connects");
            assert_eq!(deferred(&socket) > 0, join_ack);
            socket.send(b"hello", false).expect("its side of the handshake is done");
            let (mut peer, _) = listener.accept().expect("somebody connected");
            let mut word = [0; 5];
            peer.read_exact(&mut word).expect("the bytes came with the handshake or behind it");
            assert_eq!(&word, b"hello");
        }
    }

    /// `TCP_DEFER_ACCEPT` of `socket`, in seconds.
    fn deferred(socket: &Socket) -> libc::c_int {
        let (mut seconds, mut length): (libc::c_int, _) = (-1, size_of::<libc::c_int>() as libc::socklen_t);
        // SAFETY: the option is an int; the pointers are those of live ones, the length is the int's.
        let result = unsafe {
            libc::getsockopt(
                socket.number(),
                libc::IPPROTO_TCP,
                libc::TCP_DEFER_ACCEPT,
                (&raw mut seconds).cast(),
                &raw mut length,
            )
        };
        assert_eq!(result, 0);
        seconds
    }

    #[test]
    fn a_socket_without_a_listener_is_an_error() {
        let nowhere = Remote::Unix("/nonexistent/socket".into());
        let error = connect(&nowhere, &ConnectOptions::default()).expect_err("nobody is there");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
