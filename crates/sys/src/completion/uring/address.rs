//! Addresses in the form that the kernel reads.

use std::net::SocketAddr;

use rustix::net::SocketAddrAny;

/// An address to connect to, as the kernel reads it.
pub struct Address(SocketAddrAny);

impl From<SocketAddr> for Address {
    fn from(at: SocketAddr) -> Address {
        Address(at.into())
    }
}

impl Address {
    pub(super) fn family(&self) -> i32 {
        self.0.address_family().as_raw().into()
    }

    pub(super) fn place(&self) -> (*const libc::sockaddr, libc::socklen_t) {
        (self.0.as_ptr().cast(), self.0.addr_len())
    }
}
