//! Facts about a connection, shared by its requests.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::request_id::RequestId;

/// Facts about a connection. A driver sets them, and a layer such as TLS adds its own before the first
/// request. A clone does not allocate; a deferred response keeps one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Connection {
    /// The peer, as the socket reports it.
    pub peer: Peer,
    /// The listener that accepted the connection.
    pub local: Local,
    /// The scheme of the requests' URLs.
    pub scheme: Scheme,
    /// The result of the TLS handshake, if there was one. The layer keeps it while the connection is idle.
    pub tls: Option<Arc<TlsFacts>>,
    /// The identifier of the request for which the facts were copied.
    pub request_id: Option<RequestId>,
}

impl Connection {
    /// Returns the facts of a plaintext connection.
    pub const fn plaintext(peer: Peer, local: Local) -> Connection {
        Connection { peer, local, scheme: Scheme::Http, tls: None, request_id: None }
    }
}

/// The result of a TLS handshake, as its layer reports it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TlsFacts {
    /// The protocol version, as in logs: `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite, by its IANA name: `TLS_AES_128_GCM_SHA256`.
    pub cipher: &'static str,
    /// The client's server name (SNI, RFC 6066 §3), in lower case.
    pub server_name: Option<Box<str>>,
    /// The application protocol that the server chose from its own list (ALPN, RFC 7301): `http/1.1`.
    pub alpn: Option<&'static str>,
    /// Whether the handshake resumed an earlier session.
    pub resumed: bool,
    /// The DNS names of the server's certificate, in lower case; None: unknown.
    pub certificate_names: Option<Arc<[String]>>,
}

impl TlsFacts {
    /// Whether a request for `host` (a `Host` without its port) is on the wrong connection (RFC 9110
    /// §15.5.20): the client used another server name in its handshake, and the certificate is not valid for
    /// `host`. Clients without a server name, and requests for IP addresses, are exempt.
    pub fn misdirects(&self, host: &str) -> bool {
        let (Some(asked), Some(names)) = (self.server_name.as_deref(), self.certificate_names.as_deref())
        else {
            return false;
        };
        let host = host.strip_suffix('.').unwrap_or(host);
        let is_address = host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok();
        !(host.is_empty() || asked.eq_ignore_ascii_case(host) || is_address || covers_name(names, host))
    }
}

/// Whether one of `names`, in lower case, covers the DNS name `host`. A wildcard matches exactly one label
/// (RFC 9525 §6.3). A `host` that is itself a wildcard must be among the names literally.
pub fn covers_name(names: &[String], host: &str) -> bool {
    let parent = host.split_once('.').filter(|(label, _)| *label != "*").map(|(_, parent)| parent);
    names.iter().any(|name| {
        let by_wildcard = || name.strip_prefix("*.").zip(parent);
        name.eq_ignore_ascii_case(host)
            || by_wildcard().is_some_and(|(suffix, parent)| suffix.eq_ignore_ascii_case(parent))
    })
}

/// Returns a host without its port, which follows the last colon outside an IPv6 address.
pub fn without_port(host: &str) -> &str {
    match host.rfind([':', ']']) {
        Some(at) if host.as_bytes()[at] == b':' => &host[..at],
        _ => host,
    }
}

/// The peer of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// An address and a port.
    Internet(SocketAddr),
    /// A process on this machine, connected through a Unix socket.
    Unix,
}

/// The listener that accepted a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Local {
    /// The index of the listener in the list of listening addresses.
    pub listener: u16,
}

/// A URL scheme (RFC 9110 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plaintext.
    Http,
    /// A layer encrypts the connection.
    Https,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(server_name: Option<&str>, names: &[&str]) -> TlsFacts {
        TlsFacts {
            version: "TLSv1.3",
            cipher: "TLS_AES_128_GCM_SHA256",
            server_name: server_name.map(Box::from),
            alpn: None,
            resumed: false,
            certificate_names: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        }
    }

    #[test]
    fn a_host_that_is_neither_asked_for_nor_covered_is_misdirected() {
        let names = ["a.test", "*.b.test"];
        for (asked, host, expected) in [
            (Some("a.test"), "a.test", false),
            (Some("a.test"), "A.TEST.", false),
            (Some("a.test"), "www.b.test", false),
            (Some("a.test"), "WWW.B.test", false),
            (Some("a.test"), "other.test", true),
            (Some("a.test"), "b.test", true),
            (Some("a.test"), "x.www.b.test", true),
            (Some("a.test"), "*.b.test", false),
            (Some("a.test"), "*.a.test", true),
            // The client accepted a certificate without this name.
            (Some("other.test"), "other.test", false),
            (Some("other.test"), "a.test", false),
            (Some("other.test"), "third.test", true),
            (Some("a.test"), "127.0.0.1", false),
            (Some("a.test"), "[::1]", false),
            (Some("a.test"), "", false),
            (None, "other.test", false),
        ] {
            assert_eq!(facts(asked, &names).misdirects(host), expected, "{asked:?} {host}");
        }
        let unknown = TlsFacts { certificate_names: None, ..facts(Some("a.test"), &[]) };
        assert!(!unknown.misdirects("other.test"));
    }
}
