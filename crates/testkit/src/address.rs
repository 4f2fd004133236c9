//! Addresses for programs that cannot report a port that the system chose.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU16, Ordering};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

/// A loopback address that no other process gets until this value is dropped. A program with `SO_REUSEADDR`, as servers
/// set it, can listen on it meanwhile. Without a listener it refuses connections.
///
/// It is for a configuration of another program, for a second start at the same address, and for the time after a stop.
/// All other servers listen on port 0, and report their port.
#[derive(Debug)]
pub struct ReservedAddress {
    address: SocketAddr,
    _socket: OwnedFd,
}

impl ReservedAddress {
    /// Reserves the next free port. It is below `ip_local_port_range`, so no connection uses it.
    #[track_caller]
    #[expect(clippy::new_without_default, reason = "each value is another")]
    pub fn new() -> ReservedAddress {
        const FIRST: u16 = 12_000;
        const COUNT: u16 = 20_000;
        static NEXT: AtomicU16 = AtomicU16::new(0);
        // Concurrent processes begin at different ports.
        let start = u16::try_from(std::process::id() % 97).expect("it is below 97") * 200;
        let next = || FIRST + start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let reserved = (0..COUNT).find_map(|_| ReservedAddress::at(next()).ok());
        reserved.unwrap_or_else(|| panic!("no port from {FIRST} to {} is free", FIRST + COUNT))
    }

    fn at(port: u16) -> rustix::io::Result<ReservedAddress> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        // Without SO_REUSEADDR it fails if any other socket has the port, such as another reservation.
        bind(&socket, &address)?;
        // A later bind succeeds if both sockets have the option and neither listens (`man 7 socket`).
        sockopt::set_socket_reuseaddr(&socket, true)?;
        Ok(ReservedAddress { address, _socket: socket })
    }
}

impl Deref for ReservedAddress {
    type Target = SocketAddr;

    fn deref(&self) -> &SocketAddr {
        &self.address
    }
}

impl fmt::Display for ReservedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn one_listener_gets_a_reserved_address() {
        let reserved = ReservedAddress::new();
        let refused = || TcpStream::connect(*reserved).expect_err("nobody listens").kind();
        assert_eq!(refused(), ErrorKind::ConnectionRefused);
        for _ in 0..2 {
            // It sets SO_REUSEADDR.
            let listener = TcpListener::bind(*reserved).expect("the first listener");
            TcpStream::connect(*reserved).expect("it listens");
            let second = TcpListener::bind(*reserved).expect_err("a second listener").kind();
            assert_eq!(second, ErrorKind::AddrInUse);
            drop(listener);
            assert_eq!(refused(), ErrorKind::ConnectionRefused);
        }
        assert!(ReservedAddress::at(reserved.port()).is_err(), "it is reserved");
    }
}
