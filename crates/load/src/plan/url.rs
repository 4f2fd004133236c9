//! URLs in every form that people type: without a scheme, port or path; with a query, an IPv6 literal or a Unix
//! socket. A wrong URL gets a one-line reason.

use std::fmt;
use std::io;
use std::net::{Ipv6Addr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tenfold_sys::connect::Remote;

/// An `http` or `https` URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetUrl {
    /// Whether the scheme is `https`.
    pub tls: bool,
    /// The server's address.
    pub server: ServerAddress,
    /// The request target: a path that begins with `/`, and the query if there is one.
    pub target: String,
}

/// The address of a server as the user typed it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ServerAddress {
    /// A host, without the brackets of an IPv6 literal, and a port. An IPv6 literal can have a zone after `%`, which
    /// only this machine understands (RFC 4007 §11).
    Host(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

impl ServerAddress {
    /// The address with brackets around an IPv6 literal, without its zone, and without the port if it is
    /// `default_port`.
    pub fn authority(&self, default_port: u16) -> String {
        match self {
            ServerAddress::Unix(_) => "localhost".to_owned(),
            ServerAddress::Host(host, port) => with_port(without_zone(host), *port, default_port),
        }
    }

    /// Resolves the name. Returns the addresses in the system's order.
    pub fn resolve(&self) -> io::Result<Vec<Remote>> {
        match self {
            ServerAddress::Unix(path) => Ok(vec![Remote::Unix(path.clone())]),
            ServerAddress::Host(host, port) => {
                let found: Vec<_> = (host.as_str(), *port).to_socket_addrs()?.map(Remote::Internet).collect();
                if found.is_empty() { Err(io::Error::other("the name has no address")) } else { Ok(found) }
            }
        }
    }
}

impl TargetUrl {
    /// The value of `Host`.
    pub fn authority(&self) -> String {
        self.server.authority(default_port(self.tls))
    }

    /// The name of the server, which a certificate must cover.
    pub(crate) fn host(&self) -> &str {
        match &self.server {
            ServerAddress::Host(host, _) => without_zone(host),
            ServerAddress::Unix(_) => "localhost",
        }
    }

    /// The server and its scheme. URLs with the same origin share connections.
    pub(crate) fn origin(&self) -> (bool, &ServerAddress) {
        (self.tls, &self.server)
    }
}

fn without_zone(host: &str) -> &str {
    host.split('%').next().unwrap_or(host)
}

fn with_port(host: &str, port: u16, default_port: u16) -> String {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    if port == default_port { host } else { format!("{host}:{port}") }
}

/// The port of a URL without one.
fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

impl fmt::Display for TargetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        match &self.server {
            ServerAddress::Unix(path) => write!(f, "{scheme}://unix:{}:{}", path.display(), self.target),
            ServerAddress::Host(host, port) => {
                // A zone is encoded in a URL (RFC 6874).
                let address = with_port(&host.replace('%', "%25"), *port, default_port(self.tls));
                write!(f, "{scheme}://{address}{}", self.target)
            }
        }
    }
}

impl FromStr for TargetUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<TargetUrl, String> {
        parse(text).map_err(|why| format!("cannot use the URL {text:?}: {why}"))
    }
}

fn parse(text: &str) -> Result<TargetUrl, String> {
    let (tls, rest) = match text.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
        Some((scheme, _)) if !scheme.contains(['/', '?', '#', ':']) => {
            return Err(format!("{scheme:?} is not supported, only http and https"));
        }
        _ if is_scheme_with_one_slash(text) => {
            return Err("two slashes follow the scheme, as in http://localhost/".into());
        }
        _ => (false, text),
    };
    // A fragment is never sent (RFC 9110 §4.2.5).
    let rest = rest.split('#').next().unwrap_or_default();
    if let Some(rest) = rest.strip_prefix("unix:") {
        let (path, target) = rest.split_once(':').unwrap_or((rest, ""));
        if path.is_empty() {
            return Err("unix: needs the path of a socket".into());
        }
        return Ok(TargetUrl {
            tls,
            server: ServerAddress::Unix(path.into()),
            target: self::target(target)?,
        });
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    if authority.contains('@') {
        return Err("a user name is not supported; use --header 'Authorization: …'".into());
    }
    let (host, port) = host_and_port(authority, default_port(tls))?;
    Ok(TargetUrl { tls, server: ServerAddress::Host(host, port), target: target(tail)? })
}

/// Whether `text` begins with `http:/` or `https:/`, which would otherwise name a host `http`.
fn is_scheme_with_one_slash(text: &str) -> bool {
    let scheme = text.split_once(":/").map(|(scheme, _)| scheme).unwrap_or_default();
    ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

fn host_and_port(authority: &str, default_port: u16) -> Result<(String, u16), String> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (literal, port) =
                rest.split_once(']').ok_or("the bracket of an IPv6 address is not closed")?;
            let address = without_zone(literal);
            address.parse::<Ipv6Addr>().map_err(|_| format!("{literal:?} is not an IPv6 address"))?;
            let port = match port {
                "" => None,
                _ => {
                    Some(port.strip_prefix(':').ok_or("only a colon and a port may follow an IPv6 address")?)
                }
            };
            (decoded_zone(literal)?, port)
        }
        None if authority.matches(':').count() > 1 => {
            return Err("an IPv6 address needs brackets, as in http://[::1]:8080/".into());
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host.to_owned(), Some(port)),
            None => (authority.to_owned(), None),
        },
    };
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte);
    if host.is_empty() {
        return Err("it has no host".into());
    }
    let name = if host.contains(':') { without_zone(&host) } else { &host };
    if !name.bytes().all(allowed) {
        return Err(format!("{host:?} is not a host name"));
    }
    // The resolver reads a number as an IPv4 address, so a misplaced value of a flag would be a host.
    if host.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("{host:?} is a number, not a host name"));
    }
    match port {
        // An empty port means the scheme's port (RFC 3986 §6.2.3).
        None | Some("") => Ok((host, default_port)),
        Some(port) => match port.parse() {
            Ok(number @ 1..) if port.bytes().all(|byte| byte.is_ascii_digit()) => Ok((host, number)),
            _ => Err(format!("{port:?} is not a port from 1 to 65535")),
        },
    }
}

/// Returns an IPv6 literal with its zone after `%`, which a URL may encode as `%25` (RFC 6874).
fn decoded_zone(literal: &str) -> Result<String, String> {
    let Some((address, zone)) = literal.split_once('%') else { return Ok(literal.to_owned()) };
    let zone = zone.strip_prefix("25").filter(|zone| !zone.is_empty()).unwrap_or(zone);
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    match !zone.is_empty() && zone.bytes().all(allowed) {
        true => Ok(format!("{address}%{zone}")),
        false => Err(format!("{zone:?} is not the zone of an IPv6 address, such as eth0")),
    }
}

fn target(tail: &str) -> Result<String, String> {
    if let Some(wrong) = tail.chars().find(|character| !character.is_ascii_graphic()) {
        return Err(format!("{wrong:?} must be percent-encoded"));
    }
    Ok(if tail.starts_with('/') { tail.to_owned() } else { format!("/{tail}") })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        text.parse::<TargetUrl>().expect(text).to_string()
    }

    #[test]
    fn every_form_of_url_is_parsed() {
        for (typed, meant) in [
            ("http://localhost", "http://localhost/"),
            ("localhost", "http://localhost/"),
            ("localhost:8080", "http://localhost:8080/"),
            ("http:8080", "http://http:8080/"),
            ("http://localhost:", "http://localhost/"),
            ("HTTP://localhost:80/a", "http://localhost/a"),
            ("http://localhost?a=b", "http://localhost/?a=b"),
            ("http://localhost/a?b=http://c/", "http://localhost/a?b=http://c/"),
            ("localhost/a://b", "http://localhost/a://b"),
            ("http://[::1]", "http://[::1]/"),
            ("[::1]:8080/x", "http://[::1]:8080/x"),
            ("http://[fe80::1%25eth0]:8080/", "http://[fe80::1%25eth0]:8080/"),
            ("[fe80::1%eth0.7]", "http://[fe80::1%25eth0.7]/"),
            ("[fe80::1%2]", "http://[fe80::1%252]/"),
            ("http://127.0.0.1:8080/a#b", "http://127.0.0.1:8080/a"),
            ("https://localhost", "https://localhost/"),
            ("HTTPS://localhost:443/a", "https://localhost/a"),
            ("https://localhost:80/", "https://localhost:80/"),
            ("http://localhost:443/", "http://localhost:443/"),
            ("https://unix:/run/a.sock:/b", "https://unix:/run/a.sock:/b"),
            ("unix:/run/a.sock", "http://unix:/run/a.sock:/"),
            ("http://unix:/run/a.sock:/b?c", "http://unix:/run/a.sock:/b?c"),
        ] {
            assert_eq!(shown(typed), meant, "{typed}");
        }
    }

    #[test]
    fn a_wrong_url_gets_a_reason_in_one_line() {
        for (typed, why) in [
            ("", "no host"),
            ("http://", "no host"),
            ("http:///path", "no host"),
            ("http:/", "two slashes"),
            ("HTTP:/localhost/", "two slashes"),
            ("https:/localhost/", "two slashes"),
            ("ftp://localhost", "only http"),
            ("http://[::1", "not closed"),
            ("http://[::x]/", "not an IPv6"),
            ("http://[fe80::1%]/", "not the zone"),
            ("http://[fe80::1%e/h0]/", "not closed"),
            ("http://a%25b/", "not a host name"),
            ("http://[::1]8080/", "colon and a port"),
            ("http://::1/", "brackets"),
            ("http://localhost:0/", "not a port"),
            ("http://localhost:65536/", "not a port"),
            ("http://localhost:+80/", "not a port"),
            ("http://user@localhost/", "Authorization"),
            ("http://local host/", "not a host name"),
            ("10", "is a number"),
            ("http://localhost/a b", "percent-encoded"),
            ("http://localhost/ä", "percent-encoded"),
            ("unix:", "path of a socket"),
        ] {
            let said = typed.parse::<TargetUrl>().expect_err(typed);
            assert!(said.contains(why), "{typed}: {said}");
            assert_eq!(said.lines().count(), 1);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_handled_and_a_printed_url_is_parsed_again(text in "\\PC{0,40}|[a-z:/?#\\[\\]@.0-9]{0,30}") {
            if let Ok(url) = text.parse::<TargetUrl>() {
                prop_assert!(url.target.starts_with('/'));
                prop_assert_eq!(url.to_string().parse::<TargetUrl>().expect("it was one before"), url);
            }
        }
    }
}
