//! The client of a request: cookies, address, and whether its connection is encrypted.

use std::net::IpAddr;

use tenfold_http::{Connection, Method, Peer, Request, Scheme};

use super::trust::{TrustedProxy, counted};
use crate::ask::ClientIdentity;
use crate::token;

/// The cookies, by purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cookie {
    /// The session of a member.
    Session,
    /// The secret behind the token of a form.
    Form,
    /// The marker of a browser that has logged in before.
    Known,
}

impl Cookie {
    /// Its name. Browsers accept the prefix `__Host-` only from encrypted connections, and for this host alone.
    pub(super) fn name(self, secure: bool) -> &'static str {
        match (self, secure) {
            (Cookie::Session, true) => "__Host-session",
            (Cookie::Session, false) => "session",
            (Cookie::Form, true) => "__Host-form",
            (Cookie::Form, false) => "form",
            (Cookie::Known, true) => "__Host-known",
            (Cookie::Known, false) => "known",
        }
    }
}

/// The greatest length of a cookie value; longer ones are ignored.
const LONGEST: usize = 256;

/// The client of a request.
#[derive(Clone, Debug)]
pub(super) struct RequestClient {
    pub(super) session: Option<String>,
    pub(super) form: Option<String>,
    known: Option<String>,
    /// Whether the connection to the browser is encrypted.
    pub(super) secure: bool,
    address: String,
}

impl RequestClient {
    pub(super) fn read(
        request: &Request<'_>,
        connection: &Connection,
        trusted: &[TrustedProxy],
    ) -> RequestClient {
        let (address, secure) = client(request, connection, trusted);
        let read = |cookie: Cookie| value(request, cookie.name(secure));
        RequestClient {
            session: read(Cookie::Session),
            form: read(Cookie::Form),
            known: read(Cookie::Known),
            secure,
            address,
        }
    }

    /// The digest of the session that the browser sent.
    pub(super) fn session_digest(&self) -> Option<String> {
        self.session.as_deref().map(token::digest)
    }

    /// The form token for this browser.
    pub(super) fn token(&self) -> Option<String> {
        self.form.as_deref().map(|form| token::of_form(form, self.session.as_deref()))
    }

    pub(super) fn from(&self) -> ClientIdentity {
        ClientIdentity { address: self.address.clone(), known: self.known.clone() }
    }
}

/// The value of a cookie that occurs once: of two, another site may have set one.
fn value(request: &Request<'_>, name: &str) -> Option<String> {
    let lines = request.values("cookie").filter_map(|line| std::str::from_utf8(line).ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(found, _)| *found == name).map(|(_, value)| value);
    let first = values.next()?;
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let good = !first.is_empty() && first.len() <= LONGEST && first.chars().all(legal);
    (values.next().is_none() && good).then(|| first.to_owned())
}

/// The address for counting attempts of a client.
pub fn counted_address(request: &Request<'_>, connection: &Connection, trusted: &[TrustedProxy]) -> String {
    client(request, connection, trusted).0
}

/// The address for counting attempts, and whether the connection to the browser is encrypted. Both are the peer's,
/// unless it is a trusted proxy.
fn client(request: &Request<'_>, connection: &Connection, trusted: &[TrustedProxy]) -> (String, bool) {
    let Connection { peer, scheme, .. } = connection;
    let own = match peer {
        Peer::Internet(peer) => counted(peer.ip()),
        Peer::Unix => "unix".into(),
    };
    let encrypted = *scheme == Scheme::Https;
    if !trusted.iter().any(|proxy| proxy.is(peer)) {
        return (own, encrypted);
    }
    let text = |name| request.values(name).last().and_then(|value| std::str::from_utf8(value).ok());
    let forwarded = text("x-forwarded-proto");
    let secure = forwarded.map_or(encrypted, |proto| proto.trim().eq_ignore_ascii_case("https"));
    // Each proxy appends its client's address: the last one that is no trusted proxy is the client.
    let hops = text("x-forwarded-for").unwrap_or_default().rsplit(',');
    let mut hops = hops.map_while(|hop| hop.trim().parse::<IpAddr>().ok());
    let client = hops.find(|hop| !trusted.iter().any(|proxy| proxy.holds(*hop)));
    (client.map_or(own, counted), secure)
}

/// Whether the request is for a page to display, not for a part of one or from a program.
pub(super) fn wants_page(request: &Request<'_>) -> bool {
    if !matches!(request.method, Method::Get | Method::Head) {
        return false;
    }
    if let Some(mode) = request.only("sec-fetch-mode") {
        return mode == b"navigate";
    }
    let accepts = request.values("accept").any(|value| value.windows(9).any(|part| part == b"text/html"));
    let last = request.target.path.rsplit('/').next().unwrap_or_default();
    accepts || last.ends_with(".html") || last.ends_with(".htm") || !last.contains('.')
}

#[cfg(test)]
mod tests {
    use tenfold_http::h1::parse_request;

    use super::*;
    use tenfold_http::Local;

    fn client_of(peer: &Peer, trusted: &[&str], fields: &str) -> (String, bool) {
        let trusted: Vec<_> = trusted.iter().map(|text| text.parse().expect("a proxy")).collect();
        let mut bytes = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes();
        let connection = Connection::plaintext(*peer, Local { listener: 0 });
        parse_request(&mut bytes, |request| {
            client(&request.expect("the request is good"), &connection, &trusted)
        })
    }

    #[test]
    fn visitors_behind_a_proxy_on_a_unix_socket_are_told_apart_if_it_is_trusted() {
        let fields = "X-Forwarded-For: 203.0.113.9, 192.0.2.1\r\nX-Forwarded-Proto: https\r\n";
        assert_eq!(client_of(&Peer::Unix, &["unix"], fields), ("192.0.2.1".into(), true));
        assert_eq!(client_of(&Peer::Unix, &["unix", "192.0.2.0/24"], fields), ("203.0.113.9".into(), true));
        assert_eq!(client_of(&Peer::Unix, &["unix"], ""), ("unix".into(), false));
        assert_eq!(client_of(&Peer::Unix, &["0.0.0.0/0"], fields), ("unix".into(), false));
        let peer = Peer::Internet("198.51.100.7:80".parse().expect("an address"));
        assert_eq!(client_of(&peer, &["unix"], fields), ("198.51.100.7".into(), false));
    }
}
