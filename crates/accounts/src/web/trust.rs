//! Proxies that are believed what they say of their clients.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// An address, or all of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    bits: u128,
    length: u32,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let wrong = || format!("{text:?} is no address or network such as 127.0.0.1, 10.0.0.0/8 or fd00::/8");
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
    /// Whether the address is in it.
    pub fn holds(&self, address: IpAddr) -> bool {
        let shift = 128 - self.length;
        let head = |bits: u128| bits.checked_shr(shift).unwrap_or(0);
        head(bits(address)) == head(self.bits)
    }
}

/// IPv4 addresses as IPv6 maps them, so that a socket for both sees one.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// Whom attempts are counted for: an address, or the network that one IPv6 client has.
pub(super) fn counted(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).to_string(),
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
    fn attempts_of_one_ipv6_network_are_one_clients() {
        assert_eq!(counted("2001:db8:1:2:3:4:5:6".parse().expect("an address")), "2001:db8:1:2::");
        assert_eq!(counted("::ffff:10.0.0.1".parse().expect("an address")), "10.0.0.1");
    }
}
