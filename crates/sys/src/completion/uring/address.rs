//! Addresses in the form that the kernel reads.

use std::net::SocketAddr;
use std::ptr;

/// An address to connect to, as the kernel reads it.
pub struct Address(RawAddress);

enum RawAddress {
    V4(libc::sockaddr_in),
    V6(libc::sockaddr_in6),
}

impl From<SocketAddr> for Address {
    fn from(at: SocketAddr) -> Address {
        Address(match at {
            SocketAddr::V4(at) => RawAddress::V4(libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: at.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(at.ip().octets()) },
                sin_zero: [0; 8],
            }),
            SocketAddr::V6(at) => RawAddress::V6(libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: at.port().to_be(),
                sin6_flowinfo: at.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: at.ip().octets() },
                sin6_scope_id: at.scope_id(),
            }),
        })
    }
}

impl Address {
    pub(super) fn family(&self) -> i32 {
        match self.0 {
            RawAddress::V4(_) => libc::AF_INET,
            RawAddress::V6(_) => libc::AF_INET6,
        }
    }

    pub(super) fn place(&self) -> (*const libc::sockaddr, libc::socklen_t) {
        match &self.0 {
            RawAddress::V4(at) => (ptr::from_ref(at).cast(), size_of_val(at) as libc::socklen_t),
            RawAddress::V6(at) => (ptr::from_ref(at).cast(), size_of_val(at) as libc::socklen_t),
        }
    }
}
