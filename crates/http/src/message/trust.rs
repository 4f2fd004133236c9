//! Trusted proxies: the server uses the fields in which they name the client of a request
//! ([`crate::semantics::forwarded`]).

use std::net::IpAddr;
use std::str::FromStr;

use super::connection::Peer;

/// A trusted proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustedProxy {
    /// Every client of the server's Unix sockets.
    Unix,
    /// Every address of a network.
    Network(Network),
}

impl FromStr for TrustedProxy {
    type Err = String;

    fn from_str(text: &str) -> Result<TrustedProxy, String> {
        if text == "unix" { Ok(TrustedProxy::Unix) } else { text.parse().map(TrustedProxy::Network) }
    }
}

impl TrustedProxy {
    /// Whether the peer of a connection is this proxy.
    pub fn is(&self, peer: &Peer) -> bool {
        match (self, peer) {
            (TrustedProxy::Unix, Peer::Unix) => true,
            (TrustedProxy::Network(network), Peer::Internet(peer)) => network.holds(peer.ip()),
            _ => false,
        }
    }

    /// Whether an address belongs to this proxy.
    pub fn holds(&self, address: IpAddr) -> bool {
        matches!(self, TrustedProxy::Network(network) if network.holds(address))
    }
}

/// An address, or a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    bits: u128,
    length: u32,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let wrong =
            || format!("{text:?} is not an address, a network such as 10.0.0.0/8 or fd00::/8, or unix");
        let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(most), str::parse::<u32>).map_err(|_| wrong())?;
        if length > most {
            return Err(wrong());
        }
        Ok(Network { bits: bits(address), length: length + 128 - most })
    }
}

impl Network {
    /// Whether the network contains the address.
    pub fn holds(&self, address: IpAddr) -> bool {
        let shift = 128 - self.length;
        let head = |bits: u128| bits.checked_shr(shift).unwrap_or(0);
        head(bits(address)) == head(self.bits)
    }
}

/// Converts IPv4 addresses to their IPv6-mapped form, which dual-stack sockets use.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_its_addresses() {
        let holds = |network: &str, address: &str| {
            let network: Network = network.parse().unwrap_or_else(|why| panic!("{why}"));
            network.holds(address.parse().expect("an address"))
        };
        assert!(holds("127.0.0.1", "127.0.0.1") && holds("127.0.0.1", "::ffff:127.0.0.1"));
        assert!(!holds("127.0.0.1", "127.0.0.2") && !holds("127.0.0.1", "::1"));
        assert!(holds("10.0.0.0/8", "10.9.9.9") && !holds("10.0.0.0/8", "11.0.0.0"));
        assert!(holds("fd00::/8", "fd12::1") && !holds("fd00::/8", "fe00::1"));
        assert!(holds("0.0.0.0/0", "1.2.3.4") && !holds("0.0.0.0/0", "fe00::1") && holds("::/0", "1.2.3.4"));
        for wrong in ["", "x", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0/8"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_proxy_on_a_unix_socket_is_trusted_only_by_that_word() {
        let unix: TrustedProxy = "unix".parse().expect("a legal word");
        let network: TrustedProxy = "0.0.0.0/0".parse().expect("a network");
        let peer = Peer::Internet("10.0.0.1:80".parse().expect("an address"));
        assert!(unix.is(&Peer::Unix) && !unix.is(&peer));
        assert!(network.is(&peer) && !network.is(&Peer::Unix));
        assert!("Unix".parse::<TrustedProxy>().is_err() && "unix:/s".parse::<TrustedProxy>().is_err());
    }
}
