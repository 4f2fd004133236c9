//! Rules that follow from TLS: redirects to https, Strict-Transport-Security, and requests on the wrong connection.

use std::net::IpAddr;

use tenfold_http::{
    Connection, FieldName, FieldValue, HeaderLines, Request, ResponseWriter, Scheme, covers_name,
    without_port,
};
use tenfold_site::{ResponseSummary, misdirected, redirect};
use tenfold_sys::socket::{ListenAddress, Listener};
use tenfold_tls::certificates::files::LoadedCertificates;

use crate::config::values::{HttpsRedirect, Settings};

const HTTPS: u16 = 443;

/// The rules of a worker.
#[derive(Debug)]
pub(crate) struct TransportRules {
    /// Strict-Transport-Security.
    hsts: Option<&'static HeaderLines>,
    redirects: Option<Redirects>,
}

/// Redirects to https. Only hosts with a certificate or a site are redirected: a host that a client invented could lead
/// others away by a shared cache.
#[derive(Debug)]
struct Redirects {
    /// By listener: whether its requests are redirected.
    listeners: Vec<bool>,
    port: u16,
    names: Vec<String>,
    addresses: Vec<IpAddr>,
}

impl TransportRules {
    /// The rules of a worker with these `listeners`, which are in the order of the setting.
    pub(crate) fn new(
        settings: &Settings,
        certificates: Option<&LoadedCertificates>,
        listeners: &[Listener],
    ) -> TransportRules {
        let entries = settings.listen.iter().zip(listeners);
        let ports =
            entries.clone().filter(|(entry, _)| settings.has_tls(entry)).filter_map(|(_, listener)| {
                match listener.address() {
                    ListenAddress::Internet(at) => Some(at.port()),
                    ListenAddress::Unix(_) => None,
                }
            });
        let port = match settings.redirect() {
            HttpsRedirect::Off => None,
            HttpsRedirect::On => ports.clone().next(),
            HttpsRedirect::ToPort(port) => Some(port),
        };
        // Until there is a certificate, plaintext is all that clients can get.
        let certificates = certificates.filter(|certificates| !certificates.pairs.is_empty());
        let redirects = certificates.zip(port).map(|(certificates, port)| {
            let is_redirected = |entry: &ListenAddress| matches!(entry, ListenAddress::Internet(_));
            let facts = || certificates.pairs.iter().map(|pair| pair.chain.facts());
            let hosts =
                settings.hosts.iter().flat_map(|host| &host.names).map(|name| name.as_str().to_owned());
            Redirects {
                listeners: entries
                    .map(|(entry, _)| entry.plaintext && is_redirected(&entry.address))
                    .collect(),
                port,
                names: facts().flat_map(|facts| facts.names.iter().cloned()).chain(hosts).collect(),
                addresses: facts().flat_map(|facts| facts.addresses.iter().copied()).collect(),
            }
        });
        TransportRules { hsts: settings.hsts.as_deref().and_then(constant), redirects }
    }

    /// Whether responses have Strict-Transport-Security.
    pub(super) fn has_hsts(&self) -> bool {
        self.hsts.is_some()
    }

    /// Adds Strict-Transport-Security to the next head of a connection with TLS, in place of a field of the site
    /// (RFC 6797 §7.1: one such field). A browser ignores it without TLS, and §7.2 forbids it there. Adds the identifier
    /// of the request if it has one.
    #[inline]
    pub(super) fn secure(&self, connection: &Connection, response: &mut ResponseWriter<'_>) {
        if let Some(fields) = self.hsts
            && connection.scheme == Scheme::Https
        {
            response.set_constant_fields(fields);
        }
        if let Some(id) = &connection.request_id
            && let Some(value) = FieldValue::new(id.as_bytes())
        {
            response.replace_field(FieldName::constant("X-Request-Id"), value);
        }
    }

    /// Writes the response that precedes the site's, if there is one.
    pub(super) fn precede(
        &self,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Option<ResponseSummary> {
        if let Some(tls) = &connection.tls {
            let is_misdirected = tls.misdirects(without_port(request.host()?));
            return is_misdirected.then(|| misdirected(request, response));
        }
        // A trusted proxy has the client's TLS.
        let redirects = self.redirects.as_ref().filter(|_| connection.scheme == Scheme::Http)?;
        let path = request.target.path;
        if !*redirects.listeners.get(usize::from(connection.local.listener))?
            || !path.starts_with('/')
            || is_challenge(path)
        {
            return None;
        }
        Some(match redirects.location(request) {
            Some(location) => redirect(request, 308, &location, response),
            None => misdirected(request, response),
        })
    }
}

/// Returns Strict-Transport-Security with this value. It is never freed: a process has one configuration.
fn constant(hsts: &str) -> Option<&'static HeaderLines> {
    let mut fields = HeaderLines::default();
    fields.field(FieldName::STRICT_TRANSPORT_SECURITY, FieldValue::new(hsts.as_bytes())?);
    Some(Box::leak(Box::new(fields)))
}

impl Redirects {
    /// Returns the URL of the request with https; `None` if its host is missing or not of this server.
    fn location(&self, request: &Request<'_>) -> Option<String> {
        let host = without_port(request.host()?);
        let host = host.strip_suffix('.').unwrap_or(host);
        let is_covered = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(address) => self.addresses.contains(&address) || covers_name(&self.names, host),
            Err(_) => {
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
                host.bytes().all(is_plain) && covers_name(&self.names, host)
            }
        };
        if !is_covered {
            return None;
        }
        let port = if self.port == HTTPS { String::new() } else { format!(":{}", self.port) };
        let query = request.target.query.map(|query| format!("?{query}")).unwrap_or_default();
        Some(format!("https://{host}{port}{}{query}", request.target.path))
    }
}

/// Whether the path is that of a challenge (RFC 8555 §8.3), which an authority may request without TLS. The token is
/// one segment, so the path leads to no other file.
fn is_challenge(path: &str) -> bool {
    path.strip_prefix("/.well-known/acme-challenge/").is_some_and(|token| {
        !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use tenfold_http::{Local, Out, Peer};

    use super::*;

    #[test]
    fn cached_responses_with_strict_transport_security_are_copied() {
        let rules = TransportRules { hsts: constant("max-age=1"), redirects: None };
        let peer = Peer::Internet(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
        let plaintext = Connection::plaintext(peer, Local { listener: 0 });
        let secure = Connection { scheme: Scheme::Https, ..plaintext.clone() };
        for (connection, sends) in [(plaintext, false), (secure, true)] {
            let mut out = Out::new();
            let mut response = ResponseWriter::http1(&mut out);
            rules.secure(&connection, &mut response);
            assert!(response.copies_prepared());
            response.head(204).end();
            let head = out.staged_alone().expect("a head is staged bytes");
            assert_eq!(head.ends_with(b"\r\nStrict-Transport-Security: max-age=1\r\n\r\n"), sends);
        }
    }
}
