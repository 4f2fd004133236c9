//! Addresses of sites, certificates, and the options of the whole server.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use super::state::{Caddy, duration, only_redirects};

use crate::outcome::{Outcome, default, refused};
use crate::reasons;
use crate::tree::Directive;
use crate::values::{bytes, size};

/// Translates the block of options.
pub(super) fn global(caddy: &mut Caddy<'_, '_>, block: &Directive) {
    caddy.draft.record(block.line, "{", default("settings of the whole server come first"));
    for option in block.inner() {
        let (first, line) = (option.arg(0), option.line);
        let port = first.parse::<u16>().ok();
        let outcome = match option.name.as_str() {
            "email" => caddy.draft.set("tls-contact", &[first], line),
            "acme_ca" => caddy.draft.set("tls-directory", &[first], line),
            "acme_ca_root" => caddy.draft.set("tls-directory-root", &[first], line),
            "acme_eab" => refused("use tls-external-account, a file with both keys"),
            "acme_dns" => refused("use tls-dns-command"),
            "http_port" => {
                caddy.global.http_port = port;
                Outcome::Translated
            }
            "https_port" => {
                caddy.global.https_port = port;
                Outcome::Translated
            }
            "auto_https" => match first {
                "off" => {
                    (caddy.global.without_tls, caddy.global.without_redirects) = (true, true);
                    Outcome::Translated
                }
                "disable_redirects" => {
                    caddy.global.without_redirects = true;
                    Outcome::Translated
                }
                _ => refused("certificates are obtained for every name in tls"),
            },
            "local_certs" => {
                caddy.global.local = true;
                Outcome::Translated
            }
            "debug" => caddy.draft.set("log-level", &["debug"], line),
            "grace_period" => match duration(first) {
                Some(time) => caddy.draft.set("drain-timeout", &[&time], line),
                None => refused("this is not a time"),
            },
            "default_bind" => bind(caddy),
            "admin" if first == "off" => default("there is no API"),
            "log" => refused("messages go to standard error; log-level chooses them"),
            "servers" => {
                servers(caddy, option);
                Outcome::Translated
            }
            "default_sni" | "fallback_sni" => default("a client without a name gets the first certificate"),
            "frankenphp" => refused(reasons::PROGRAMS),
            name => reasons::caddy(name).unwrap_or_else(|| refused("this option is unknown")),
        };
        caddy.record(option, outcome.clone());
        if option.name != "servers" {
            caddy.record_all(option.inner(), &outcome);
        }
    }
}

fn servers(caddy: &mut Caddy<'_, '_>, block: &Directive) {
    for option in block.inner() {
        let line = option.line;
        let words: Vec<&str> = option.args.iter().map(String::as_str).collect();
        let outcome = match option.name.as_str() {
            "trusted_proxies" if option.arg(0) == "static" => {
                let private =
                    ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "::1", "fc00::/7"];
                let named = words[1..].iter().copied().filter(|word| *word != "private_ranges");
                let all = named.chain(private.into_iter().filter(|_| words.contains(&"private_ranges")));
                caddy.draft.extend("trusted-proxy", &all.collect::<Vec<_>>(), line)
            }
            "protocols" if words.contains(&"h2") && words.contains(&"h1") => {
                default("HTTP/1.1 and HTTP/2 are on")
            }
            "protocols" if words == ["h1"] => caddy.draft.set("http2", &["off"], line),
            "max_header_size" => match bytes(option.arg(0)) {
                Some(most) => caddy.draft.set("max-head", &[&size(most)], line),
                None => refused("this is not a size"),
            },
            "timeouts" => Outcome::Translated,
            "metrics" => refused("use admin = \"127.0.0.1:9145\""),
            "strict_sni_host" | "enable_full_duplex" => {
                default("421 for a host that the connection cannot have")
            }
            _ => refused("Tenfold has no such option"),
        };
        caddy.record(option, outcome);
        for inner in option.inner() {
            let setting = match inner.name.as_str() {
                "read_body" => Some("body-timeout"),
                "read_header" => Some("head-timeout"),
                "write" => Some("send-timeout"),
                "idle" => Some("idle-timeout"),
                _ => None,
            };
            let outcome = match (setting, duration(inner.arg(0))) {
                (Some(setting), Some(time)) => caddy.draft.set(setting, &[&time], inner.line),
                _ => refused("Tenfold has no such option"),
            };
            caddy.record(inner, outcome);
            caddy.record_all(inner.inner(), &refused("Tenfold has no such option"));
        }
    }
}

/// An address of a site.
struct SiteAddress {
    host: String,
    port: Option<u16>,
    /// `Some` if the scheme is named.
    tls: Option<bool>,
}

fn parse(text: &str) -> Option<SiteAddress> {
    let (tls, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
        (Some(rest), _) => (Some(false), rest),
        (_, Some(rest)) => (Some(true), rest),
        _ => (None, text),
    };
    if rest.contains(['{', '}', '/', '@']) {
        return None;
    }
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port.parse().ok()?)),
        _ => (rest, None),
    };
    Some(SiteAddress { host: host.to_ascii_lowercase(), port, tls })
}

/// Returns the place of a site, after its addresses. `None` if the site is refused.
pub(super) fn site(caddy: &mut Caddy<'_, '_>, site: &Directive, several: bool) -> Option<usize> {
    let words = std::iter::once(&site.name)
        .chain(&site.args)
        .flat_map(|word| word.split(','))
        .filter(|word| !word.is_empty());
    let own = site.find("tls").is_some_and(|tls| tls.args.len() == 2 && !tls.arg(0).contains('@'));
    let internal = site.find("tls").is_some_and(|tls| tls.args == ["internal"]);
    let (mut names, mut outcome) = (Vec::new(), Outcome::Translated);
    for word in words.map(str::to_owned).collect::<Vec<_>>() {
        let Some(address) = parse(&word) else {
            outcome = refused(format!(
                "{word} has a path or a variable: a host has a name, and addresses are in listen"
            ));
            continue;
        };
        let done = listen(caddy, &address, site.line, own, internal);
        outcome = if outcome == Outcome::Translated { done } else { outcome };
        if !address.host.is_empty() && !address.host.starts_with('[') && address.host != "0.0.0.0" {
            names.push(address.host);
        }
    }
    names.dedup();
    let is_redirect = only_redirects(site);
    let at = match (several || is_redirect) && !names.is_empty() {
        true => caddy.draft.host(&names, site.line),
        false => Ok(0),
    };
    let is_named =
        |name: &String| caddy.draft.settings.get("tls").is_some_and(|names| names.values.contains(name));
    if at == Ok(0) && outcome == Outcome::Translated && !names.iter().all(is_named) {
        outcome = default("the only site answers every name; name it in [[host]] to limit it to its names");
    }
    match at {
        Ok(at) => {
            caddy.draft.record(site.line, &site.name, outcome);
            Some(at)
        }
        Err(why) => {
            caddy.draft.record(site.line, &site.name, why.clone());
            caddy.record_all(site.inner(), &why);
            None
        }
    }
}

/// Returns the addresses of `bind`, or of the `usual` option, if they are the same IP addresses for every site.
pub(super) fn bound_by_all(sites: &[&Directive], usual: Option<&Directive>) -> Vec<IpAddr> {
    let bound = |site: &&Directive| -> Option<Vec<IpAddr>> {
        let words = site.find("bind").or(usual)?.args.iter();
        words.map(|word| word.trim_matches(['[', ']']).parse().ok()).collect()
    };
    let all: BTreeSet<Option<Vec<IpAddr>>> = sites.iter().map(bound).collect();
    if all.len() == 1 { all.into_iter().flatten().flatten().collect() } else { Vec::new() }
}

/// Returns the outcome of `bind` and `default_bind`.
pub(super) fn bind(caddy: &Caddy<'_, '_>) -> Outcome {
    match caddy.global.bound.is_empty() {
        true => refused(
            "addresses are the server's, and sites have others: every site is reachable at every address of listen",
        ),
        false => Outcome::Translated,
    }
}

/// Adds a port at the addresses of the sites.
fn listen_at(caddy: &mut Caddy<'_, '_>, port: u16, tls: bool, line: usize) -> Outcome {
    if caddy.global.bound.is_empty() {
        return caddy.draft.listen(&format!(":{port}"), tls, false, line);
    }
    let at = caddy.global.bound.iter().map(|ip| SocketAddr::new(*ip, port).to_string());
    let done: Vec<Outcome> =
        at.collect::<Vec<_>>().iter().map(|at| caddy.draft.listen(at, tls, false, line)).collect();
    done.into_iter().find(|done| *done != Outcome::Translated).unwrap_or(Outcome::Translated)
}

/// Adds the address and the certificate of a site.
fn listen(
    caddy: &mut Caddy<'_, '_>,
    address: &SiteAddress,
    line: usize,
    own: bool,
    internal: bool,
) -> Outcome {
    let SiteAddress { host, port, tls } = address;
    let (http, https) = caddy.global.ports();
    let is_tls = match (tls, port) {
        (Some(tls), _) => *tls,
        (None, Some(port)) if *port == http => false,
        (None, Some(port)) if *port == https => true,
        (None, _) => !host.is_empty() && !caddy.global.without_tls,
    };
    if !is_tls {
        return listen_at(caddy, port.unwrap_or(http), false, line);
    }
    let is_private = host == "localhost"
        || [".localhost", ".local", ".internal", ".home.arpa", ".test"].iter().any(|end| host.ends_with(end))
        || host.parse::<std::net::IpAddr>().is_ok()
        || host.starts_with('[');
    let outcome = match () {
        () if own => Outcome::Translated,
        () if host.is_empty() => refused("a certificate needs a name: tls = [\"example.org\"]"),
        () if internal || is_private || caddy.global.local => caddy.draft.set("tls", &["internal"], line),
        () if host.starts_with("*.") => refused("a certificate for a wildcard needs tls-dns-command"),
        () if caddy.draft.settings.get("tls").is_some_and(|names| names.values == ["internal"]) => {
            refused("names in tls and tls = \"internal\" exclude each other")
        }
        () => caddy.draft.extend("tls", &[host], line),
    };
    if outcome != Outcome::Translated {
        return outcome;
    }
    match port {
        Some(port) if *port != https => listen_at(caddy, *port, true, line),
        _ => {
            caddy.global.usual_tls.get_or_insert(line);
            Outcome::Translated
        }
    }
}

/// Adds the usual addresses of sites with TLS, unless Tenfold has them by default.
pub(super) fn finish(caddy: &mut Caddy<'_, '_>) {
    let names = caddy.draft.settings.get("tls").is_some_and(|names| names.values != ["internal"]);
    let Some(line) = caddy.global.usual_tls else { return };
    let (http, https) = caddy.global.ports();
    let is_usual = caddy.global.bound.is_empty() && (http, https) == (80, 443);
    let is_default = names && caddy.draft.addresses.is_empty() && is_usual;
    if !is_default {
        listen_at(caddy, https, true, line);
        listen_at(caddy, http, false, line);
    }
    if caddy.global.without_redirects {
        caddy.draft.set("https-redirect", &["off"], line);
    } else if !names {
        caddy.draft.set("https-redirect", &["on"], line);
    }
}

/// A redirect of a site to the same URL with https.
pub(super) fn https_redirect(caddy: &mut Caddy<'_, '_>, line: usize) -> Outcome {
    match caddy.draft.uses_tls() {
        true => caddy.draft.set("https-redirect", &["on"], line),
        false => refused(reasons::TLS_FILE),
    }
}

/// Translates `tls`.
pub(super) fn tls(caddy: &mut Caddy<'_, '_>, directive: &Directive) -> Outcome {
    let line = directive.line;
    let outcome = match directive.args.as_slice() {
        [] => Outcome::Translated,
        [word] if word == "internal" => Outcome::Translated,
        [email] if email.contains('@') => caddy.draft.set("tls-contact", &[email], line),
        [certificate, key] if !certificate.contains('{') && !key.contains('{') => {
            let pair = (certificate.clone(), key.clone());
            if !caddy.draft.certificates.contains(&pair) {
                caddy.draft.certificates.push(pair);
            }
            Outcome::Translated
        }
        _ => refused(reasons::VARIABLES),
    };
    for option in directive.inner() {
        let own = match option.name.as_str() {
            "ca" => caddy.draft.set("tls-directory", &[option.arg(0)], option.line),
            "ca_root" => caddy.draft.set("tls-directory-root", &[option.arg(0)], option.line),
            "protocols" if option.arg(0) == "tls1.3" => {
                caddy.draft.set("tls-preset", &["modern"], option.line)
            }
            "protocols" => default("TLS 1.2 and 1.3 are on"),
            "ciphers" | "curves" | "alpn" => default("tls-preset has suites with forward secrecy only"),
            "dns" | "resolvers" | "propagation_timeout" | "propagation_delay" => {
                refused("use tls-dns-command")
            }
            "client_auth" => {
                caddy.draft.close(&crate::draft::Scope::of(0), option.line);
                refused("clients have no certificates; the site is closed until then")
            }
            _ => refused("Tenfold has no such option"),
        };
        caddy.record(option, own.clone());
        caddy.record_all(option.inner(), &own);
    }
    outcome
}
