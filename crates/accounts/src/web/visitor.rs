//! The client of a request: cookies, address, and whether its connection is encrypted.

use std::net::{IpAddr, Ipv6Addr};

use tenfold_http::{Connection, Method, Peer, Request, Scheme};

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
    pub(super) fn read(request: &Request<'_>, connection: &Connection) -> RequestClient {
        let secure = connection.scheme == Scheme::Https;
        let read = |cookie: Cookie| value(request, cookie.name(secure));
        RequestClient {
            session: read(Cookie::Session),
            form: read(Cookie::Form),
            known: read(Cookie::Known),
            secure,
            address: counted_address(connection),
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
    let values = request.values("cookie").flat_map(|line| value_in(line, name));
    let [first] = values.take(2).collect::<Vec<_>>()[..] else { return None };
    let legal = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let good = !first.is_empty() && first.len() <= LONGEST && first.iter().all(legal);
    good.then(|| String::from_utf8_lossy(first).into_owned())
}

/// The values of the cookies of this name in a line. Bytes are compared, and only a blank or a tab is not part of a name:
/// a browser takes `__Host-` behind another space for no prefix, and lets a site beside this one set it.
fn value_in<'a>(line: &'a [u8], name: &str) -> impl Iterator<Item = &'a [u8]> {
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    line.split(|byte| *byte == b';').filter_map(move |pair| {
        let before = pair.iter().take_while(blank).count();
        let behind = pair[before..].iter().rev().take_while(blank).count();
        let pair = &pair[before..pair.len() - behind];
        pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
    })
}

/// The key for counting the attempts of a client: its address, or the network of an IPv6 client.
pub fn counted_address(connection: &Connection) -> String {
    let Peer::Internet(peer) = connection.peer else { return "unix".into() };
    match peer.ip().to_canonical() {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).to_string(),
    }
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
    use super::*;
    use tenfold_http::Local;

    #[test]
    fn only_the_exact_name_is_that_of_a_cookie() {
        let found = |line: &str| -> Vec<String> {
            let values = value_in(line.as_bytes(), "__Host-session");
            values.map(|value| String::from_utf8_lossy(value).into_owned()).collect()
        };
        assert_eq!(found("a=b;\t__Host-session=own ; c=d"), ["own"]);
        for space in ["\u{2000}", "\u{a0}", "\u{85}", "\u{b}", "\u{c}", "\r", "\n"] {
            assert_eq!(found(&format!("__Host-session=own; {space}__Host-session=evil")), ["own"]);
            assert_eq!(found(&format!("{space}__Host-session=evil; x=y")), [""; 0]);
        }
        let bytes = b"x=\xff; __Host-session=own";
        assert_eq!(value_in(bytes, "__Host-session").collect::<Vec<_>>(), [b"own"], "others may be anything");
        assert_eq!(found("__Host-session=a; __Host-session=b"), ["a", "b"]);
        assert_eq!(found("__Host-sessions=a; __Host-session"), [""; 0]);
    }

    #[test]
    fn attempts_of_one_ipv6_network_are_one_clients() {
        let counted = |peer| counted_address(&Connection::plaintext(peer, Local { listener: 0 }));
        let address = |text: &str| counted(Peer::Internet(text.parse().expect("an address")));
        assert_eq!(address("[2001:db8:1:2:3:4:5:6]:80"), "2001:db8:1:2::");
        assert_eq!(address("[::ffff:10.0.0.1]:80"), "10.0.0.1");
        assert_eq!(counted(Peer::Unix), "unix");
    }
}
