//! The address under which other machines reach a server that listens on all addresses.

use std::net::{IpAddr, UdpSocket};

/// The address of this machine toward other networks: the source of a packet that is never sent.
pub(crate) fn outward(ipv4: bool) -> Option<IpAddr> {
    // Addresses for documentation (RFC 5737 and RFC 3849), which have the default route.
    let (own, other) = if ipv4 { ("0.0.0.0:0", "198.51.100.1:9") } else { ("[::]:0", "[2001:db8::1]:9") };
    let socket = UdpSocket::bind(own).ok()?;
    socket.connect(other).ok()?;
    socket.local_addr().ok().map(|at| at.ip()).filter(|ip| !ip.is_loopback())
}
