//! The names that a root of this machine permits (RFC 5280 §4.2.1.10). The key of the root is on this machine, so without
//! constraints its theft would let the thief pretend to be any site to the clients that trust the root.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rcgen::{CidrSubnet, GeneralSubtree, NameConstraints};
use rustls::pki_types::{CertificateDer, DnsName};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

/// Domains of machines and private networks, without public names (RFC 6761, RFC 6762, RFC 8375).
const DOMAINS: [&str; 6] = ["localhost", "local", "lan", "internal", "home.arpa", "test"];

/// Loopback, private and link-local addresses (RFC 1918, RFC 3927, RFC 4193, RFC 4291).
const NETWORKS: [(IpAddr, u8); 8] = [
    (IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(172, 16, 0, 0)), 12),
    (IpAddr::V4(Ipv4Addr::new(192, 168, 0, 0)), 16),
    (IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), 16),
    (IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
    (IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10),
    (IpAddr::V6(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0)), 7),
];

/// The names that a root permits; `None`: all names, as roots of earlier versions do.
pub(super) struct Permitted(Option<Vec<GeneralSubtree>>);

impl Permitted {
    /// Returns the private names, and `names` with the domains beneath them.
    pub(super) fn with(names: &[String]) -> Permitted {
        let domains = DOMAINS.map(|domain| GeneralSubtree::DnsName(domain.to_owned()));
        let networks = NETWORKS.map(|(address, prefix)| network(address, prefix));
        let mut subtrees: Vec<GeneralSubtree> = domains.into_iter().chain(networks).collect();
        for name in names {
            if !permits(&subtrees, name) {
                subtrees.extend(subtree(name));
            }
        }
        Permitted(Some(subtrees))
    }

    /// Reads the names that a certificate permits.
    pub(super) fn read(root: &CertificateDer<'_>) -> Result<Permitted, String> {
        let (_, root) = X509Certificate::from_der(root).map_err(|error| error.to_string())?;
        let Some(found) = root.name_constraints().map_err(|error| error.to_string())? else {
            return Ok(Permitted(None));
        };
        let subtrees = found.value.permitted_subtrees.iter().flatten();
        let subtrees = subtrees.filter_map(|subtree| match &subtree.base {
            GeneralName::DNSName(name) => Some(GeneralSubtree::DnsName((*name).to_owned())),
            GeneralName::IPAddress(bytes) => match bytes.len() {
                8 => Some(CidrSubnet::V4(bytes[..4].try_into().ok()?, bytes[4..].try_into().ok()?)),
                32 => Some(CidrSubnet::V6(bytes[..16].try_into().ok()?, bytes[16..].try_into().ok()?)),
                _ => None,
            }
            .map(GeneralSubtree::IpAddress),
            _ => None,
        });
        Ok(Permitted(Some(subtrees.collect())))
    }

    /// Whether a certificate for `name` is valid below the root.
    pub(super) fn permits(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|subtrees| permits(subtrees, name))
    }

    /// Returns the extension of the root.
    pub(super) fn into_extension(self) -> Option<NameConstraints> {
        self.0.map(|permitted_subtrees| NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() })
    }
}

fn permits(subtrees: &[GeneralSubtree], name: &str) -> bool {
    let host = name.strip_prefix("*.").unwrap_or(name).to_ascii_lowercase();
    let contains = |subtree: &GeneralSubtree| match (subtree, name.parse()) {
        (GeneralSubtree::IpAddress(CidrSubnet::V4(network, mask)), Ok(IpAddr::V4(address))) => {
            is_in(&address.octets(), network, mask)
        }
        (GeneralSubtree::IpAddress(CidrSubnet::V6(network, mask)), Ok(IpAddr::V6(address))) => {
            is_in(&address.octets(), network, mask)
        }
        (GeneralSubtree::DnsName(domain), Err(_)) => {
            host.strip_suffix(domain.as_str()).is_some_and(|front| front.is_empty() || front.ends_with('.'))
        }
        _ => false,
    };
    subtrees.iter().any(contains)
}

fn is_in(address: &[u8], network: &[u8], mask: &[u8]) -> bool {
    address.iter().zip(network).zip(mask).all(|((address, network), mask)| (address ^ network) & mask == 0)
}

/// Returns the subtree of a name; `None` for a malformed name, with which clients would refuse the root.
fn subtree(name: &str) -> Option<GeneralSubtree> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Some(network(address, if address.is_ipv4() { 32 } else { 128 }));
    }
    let host = name.strip_prefix("*.").unwrap_or(name).to_ascii_lowercase();
    DnsName::try_from(host.as_str()).is_ok().then_some(GeneralSubtree::DnsName(host))
}

fn network(address: IpAddr, prefix: u8) -> GeneralSubtree {
    GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(address, prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_names_and_the_given_names_are_permitted() {
        let given = ["Box", "*.shop.example", "192.0.2.7", "2001:db8::7", "a..b"].map(str::to_owned);
        let permitted = Permitted::with(&given);
        for name in [
            "localhost",
            "a.localhost",
            "box.local",
            "nas.lan",
            "a.internal",
            "a.home.arpa",
            "a.test",
            "box",
            "*.shop.example",
            "www.shop.example",
            "192.0.2.7",
            "2001:db8::7",
            "127.1.2.3",
            "10.0.0.1",
            "172.31.0.1",
            "192.168.9.9",
            "169.254.0.1",
            "::1",
            "fe80::1",
            "fd00::1",
        ] {
            assert!(permitted.permits(name), "{name}");
        }
        for name in [
            "example",
            "xlocalhost",
            "localhost.example",
            "arpa",
            "bbox",
            "a..b",
            "192.0.2.8",
            "2001:db8::8",
            "172.32.0.1",
            "11.0.0.1",
            "::2",
            "fec0::1",
        ] {
            assert!(!permitted.permits(name), "{name}");
        }
    }
}
