//! A visitor with cookies who fills in forms: a minimal browser for the members' pages.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::http2::Http2Wire;
use crate::response::WireResponse;
use crate::wire::Wire;

/// A server that visitors connect to.
pub trait Endpoint {
    /// The address of the server.
    fn address(&self) -> SocketAddr;
    /// Whether its connections use TLS.
    fn is_encrypted(&self) -> bool;
}

/// A visitor with the cookies received so far.
#[derive(Clone, Debug)]
pub struct Visitor {
    address: SocketAddr,
    socket: Option<PathBuf>,
    /// Whether the server, or a proxy in between, terminates TLS.
    seals: bool,
    /// Whether requests use HTTP/2, with a cookie in each `Cookie` field.
    multiplexes: bool,
    /// Cookies by name, without the port at its end.
    pub cookies: BTreeMap<String, String>,
    /// Fields sent with each request.
    pub fields: Vec<(String, String)>,
}

impl Visitor {
    /// A visitor without cookies.
    pub fn new(server: &impl Endpoint) -> Visitor {
        let (cookies, fields) = (BTreeMap::new(), Vec::new());
        let (address, seals) = (server.address(), server.is_encrypted());
        Visitor { address, socket: None, seals, multiplexes: false, cookies, fields }
    }

    /// The same visitor through a Unix socket of the server.
    #[must_use]
    pub fn through(mut self, socket: &Path) -> Visitor {
        self.socket = Some(socket.to_owned());
        self
    }

    /// The same visitor through a proxy at another address.
    #[must_use]
    pub fn at(mut self, address: SocketAddr) -> Visitor {
        self.address = address;
        self
    }

    /// The same visitor through a proxy that terminates TLS.
    #[must_use]
    pub fn over_tls(mut self) -> Visitor {
        self.seals = true;
        self
    }

    /// The same visitor over HTTP/2.
    #[must_use]
    pub fn over_http2(mut self) -> Visitor {
        self.multiplexes = true;
        self
    }

    /// The same visitor with a field in each request.
    #[must_use]
    pub fn saying(mut self, name: &str, value: &str) -> Visitor {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Requests a page as a browser does.
    #[track_caller]
    pub fn get(&mut self, target: &str) -> WireResponse {
        self.ask("GET", target, &[("Accept", "text/html")], b"")
    }

    /// Sends fields as a form, without loading the form first.
    #[track_caller]
    pub fn post(&mut self, target: &str, fields: &[(&str, &str)]) -> WireResponse {
        let kind = ("Content-Type", "application/x-www-form-urlencoded");
        self.ask("POST", target, &[kind], encoded(fields).as_bytes())
    }

    /// Loads a form and sends it with these fields.
    #[track_caller]
    pub fn submit(&mut self, page: &str, target: &str, fields: &[(&str, &str)]) -> WireResponse {
        let token = self.token(page);
        let mut all = vec![("token", token.as_str())];
        all.extend_from_slice(fields);
        self.post(target, &all)
    }

    /// The token of the form on a page.
    #[track_caller]
    pub fn token(&mut self, page: &str) -> String {
        let form = text(&self.get(page));
        let begin =
            form.find("name=\"token\" value=\"").unwrap_or_else(|| panic!("{page} has no form:\n{form}"));
        form[begin + 20..].split('"').next().unwrap_or_default().to_owned()
    }

    /// Registers.
    #[track_caller]
    pub fn register(&mut self, name: &str, password: &str) -> WireResponse {
        let fields = [("name", name), ("password", password), ("again", password)];
        self.submit("/account/register", "/account/register", &fields)
    }

    /// Logs in.
    #[track_caller]
    pub fn log_in(&mut self, name: &str, password: &str) -> WireResponse {
        self.submit("/account/login", "/account/login", &[("name", name), ("password", password)])
    }

    /// Makes any request on a new connection, and stores the cookies of the response.
    #[track_caller]
    pub fn ask(&mut self, method: &str, target: &str, fields: &[(&str, &str)], body: &[u8]) -> WireResponse {
        if self.multiplexes {
            return self.ask_over_http2(method, target, fields, body);
        }
        let mut request = format!("{method} {target} HTTP/1.1\r\nHost: {}\r\n", self.address);
        if !self.cookies.is_empty() {
            // A target with another host has no port.
            let suffix = if target.starts_with("http://") { String::new() } else { self.suffix() };
            let pairs: Vec<_> =
                self.cookies.iter().map(|(name, value)| format!("{name}{suffix}={value}")).collect();
            let _ = write!(request, "Cookie: {}\r\n", pairs.join("; "));
        }
        let own = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in own.chain(fields.iter().copied()) {
            let _ = write!(request, "{name}: {value}\r\n");
        }
        if method == "POST" {
            let _ = write!(request, "Content-Length: {}\r\n", body.len());
        }
        request += "\r\n";
        let mut wire = match &self.socket {
            Some(socket) => Wire::connect_unix(socket),
            None => Wire::connect_over(self.address, self.seals),
        };
        // A refused body need not be sent completely; only the response matters.
        let _ = wire.try_send(&[request.as_bytes(), body].concat());
        let response = if method == "HEAD" { wire.head() } else { wire.response() };
        self.keep_cookies(&response);
        response
    }

    #[track_caller]
    fn ask_over_http2(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> WireResponse {
        let (host, suffix) = (self.address.to_string(), self.suffix());
        let crumbs: Vec<_> =
            self.cookies.iter().map(|(name, value)| format!("{name}{suffix}={value}")).collect();
        let mut all = vec![(":authority", host.as_str())];
        all.extend(crumbs.iter().map(|crumb| ("cookie", crumb.as_str())));
        all.extend(self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        all.extend_from_slice(fields);
        let lower: Vec<_> = all.iter().map(|(name, value)| (name.to_ascii_lowercase(), *value)).collect();
        let lower: Vec<_> = lower.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let wire = Wire::connect(self.address);
        let mut http2 = Http2Wire::new(if self.seals { wire.with_protocol("h2") } else { wire });
        let response = http2.ask(method, target, &lower, body);
        self.keep_cookies(&response);
        response
    }

    /// The suffix of each cookie's name: each port has separate cookies.
    fn suffix(&self) -> String {
        format!("-{}", self.address.port())
    }

    fn keep_cookies(&mut self, response: &WireResponse) {
        for line in response.head.lines().filter_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("set-cookie").then_some(value)
        }) {
            let (name, rest) = line.split_once('=').expect("a cookie has a value");
            let name = name.strip_suffix(&self.suffix()).unwrap_or(name);
            match rest.split(';').next() {
                Some("") | None => self.cookies.remove(name),
                Some(value) => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
    }
}

/// The body of a response as text.
#[track_caller]
pub fn text(response: &WireResponse) -> String {
    String::from_utf8(response.body.clone()).expect("a page is text")
}

/// Encodes fields as a form does.
pub fn encoded(fields: &[(&str, &str)]) -> String {
    let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let pairs: Vec<_> =
        fields.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    pairs.join("&")
}
