//! The client of a request: cookies, address, and whether its connection is encrypted.

use std::net::{IpAddr, Ipv6Addr};

use tenfold_http::{Connection, Method, Peer, Request, Scheme};

use crate::ask::{ClientIdentity, MOST_TRIED};
use crate::token;

/// The cookies, by purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cookie {
    /// The session of a member.
    Session,
    /// The secret from which the token of a form is computed.
    Form,
    /// The marker of a browser that has logged in before.
    Known,
}

/// The site of a request, as far as the names of its cookies depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CookieSite {
    /// Whether the connection to the browser is encrypted.
    pub(super) secure: bool,
    /// The port, unless it is the default of the scheme. A browser sends the cookies of a host to all of its ports (RFC
    /// 6265 §8.5).
    port: Option<u16>,
}

impl CookieSite {
    fn of(request: &Request<'_>, connection: &Connection) -> CookieSite {
        let secure = connection.scheme == Scheme::Https;
        let port = request.host().and_then(|host| host.rsplit_once(':')?.1.parse().ok());
        CookieSite { secure, port: port.filter(|port| *port != if secure { 443 } else { 80 }) }
    }

    /// The name of a cookie. Browsers accept the prefix `__Host-` only from encrypted connections, and only for this host.
    pub(super) fn name(self, cookie: Cookie) -> String {
        let prefix = if self.secure { "__Host-" } else { "" };
        let name = match cookie {
            Cookie::Session => "session",
            Cookie::Form => "form",
            Cookie::Known => "known",
        };
        let port = self.port.map(|port| format!("-{port}")).unwrap_or_default();
        format!("{prefix}{name}{port}")
    }
}

/// The greatest length of a cookie value; longer ones are ignored.
const LONGEST: usize = 256;

/// The client of a request.
#[derive(Clone, Debug)]
pub(super) struct RequestClient {
    /// The sessions that the browser sent.
    pub(super) sessions: Vec<String>,
    pub(super) forms: Vec<String>,
    known: Vec<String>,
    pub(super) site: CookieSite,
    address: String,
}

impl RequestClient {
    pub(super) fn read(request: &Request<'_>, connection: &Connection) -> RequestClient {
        let site = CookieSite::of(request, connection);
        let read = |cookie: Cookie| values(request, &site.name(cookie));
        RequestClient {
            sessions: read(Cookie::Session),
            forms: read(Cookie::Form),
            known: read(Cookie::Known),
            site,
            address: counted_address(connection),
        }
    }

    /// The digests of the sessions that the browser sent, as in [`Query::Check`](crate::ask::Query::Check).
    pub(super) fn session_digests(&self) -> Option<String> {
        let digests: Vec<_> = self.sessions.iter().map(|session| token::digest(session)).collect();
        (!digests.is_empty()).then(|| digests.join(" "))
    }

    /// The form token for this browser.
    pub(super) fn token(&self) -> Option<String> {
        self.forms.first().map(|form| self.token_of(form))
    }

    /// Whether a form has a token of this browser.
    pub(super) fn has_token(&self, shown: &str) -> bool {
        self.forms.iter().any(|form| token::same(&self.token_of(form), shown))
    }

    fn token_of(&self, form: &str) -> String {
        token::of_form(form, &self.sessions.join(" "))
    }

    pub(super) fn from(&self) -> ClientIdentity {
        let known = (!self.known.is_empty()).then(|| self.known.join(" "));
        ClientIdentity { address: self.address.clone(), known }
    }
}

/// The different values of the cookies of this name, in the order of the request.
fn values(request: &Request<'_>, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for value in request.values("cookie").flat_map(|line| value_in(line, name)) {
        let legal = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        let good = !value.is_empty() && value.len() <= LONGEST && value.iter().all(legal);
        let value = String::from_utf8_lossy(value);
        if good && !found.iter().any(|known| *known == value) {
            found.push(value.into_owned());
        }
        if found.len() == MOST_TRIED {
            break;
        }
    }
    found
}

/// The values of the cookies of this name in a line. Only blanks and tabs are trimmed: after any other space, a browser
/// does not recognise the prefix `__Host-`, and lets another site of the domain set the cookie.
fn value_in<'a>(line: &'a [u8], name: &str) -> impl Iterator<Item = &'a [u8]> {
    let blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    line.split(|byte| *byte == b';').filter_map(move |pair| {
        let before = pair.iter().take_while(blank).count();
        let after = pair[before..].iter().rev().take_while(blank).count();
        let pair = &pair[before..pair.len() - after];
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

/// Whether a browser requests a page to display, not a picture or style of a page.
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
    use tenfold_http::h1::parse_request;

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
    fn each_port_of_a_host_has_cookies_of_its_own() {
        let connection =
            |scheme| Connection { scheme, ..Connection::plaintext(Peer::Unix, Local { listener: 0 }) };
        for (host, scheme, expected) in [
            ("a.test", Scheme::Http, "session"),
            ("a.test:80", Scheme::Http, "session"),
            ("a.test:8080", Scheme::Http, "session-8080"),
            ("[::1]:8080", Scheme::Http, "session-8080"),
            ("[::1]", Scheme::Http, "session"),
            ("a.test:443", Scheme::Https, "__Host-session"),
            ("a.test:8443", Scheme::Https, "__Host-session-8443"),
        ] {
            let mut bytes = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
            parse_request(&mut bytes, |request| {
                let site = CookieSite::of(&request.expect("the request is good"), &connection(scheme));
                assert_eq!(site.name(Cookie::Session), expected, "{host}");
            });
        }
    }

    #[test]
    fn every_cookie_of_a_name_is_tried_within_a_bound() {
        let many: String = (0..9).map(|number| format!("; session={number}")).collect();
        let fields = format!("Cookie: session=b; x=y; session=a; session=b; session=\"; session={many}");
        let mut bytes = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n").into_bytes();
        parse_request(&mut bytes, |request| {
            assert_eq!(values(&request.expect("the request is good"), "session"), ["b", "a", "0", "1"]);
        });
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
