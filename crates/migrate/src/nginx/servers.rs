//! The blocks `server`: addresses, names, certificates, and redirects to other hosts and to https.

use super::state::{Context, Level, Nginx, Plan, VARIABLES_TOO};
use crate::draft::Scope;
use crate::outcome::{Outcome, default, refused};
use crate::reasons::{TLS_FILE, VARIABLES};
use crate::tree::Directive;

const REDIRECTED: &str = "each request for these hosts is redirected";
const ACME: &str =
    "https-redirect leaves the paths of ACME as they are; with tls, the server answers the authority itself";

fn servers<'t>(directives: &'t [Directive], found: &mut Vec<&'t Directive>) {
    for directive in directives {
        match directive.name.as_str() {
            "server" if directive.block.is_some() => found.push(directive),
            "http" => servers(directive.inner(), found),
            _ => {}
        }
    }
}

/// Finds the hosts and the certificates before any directive is translated.
pub(super) fn prepare(nginx: &mut Nginx<'_, '_>, tree: &[Directive]) {
    let mut all = Vec::new();
    servers(tree, &mut all);
    let http = tree.iter().find(|directive| directive.name == "http").map_or(tree, Directive::inner);
    certificates(nginx, http);
    all.iter().for_each(|server| certificates(nginx, server.inner()));
    let is_content = |server: &&&Directive| !redirects(server) && !refuses(server);
    let mut groups: Vec<Vec<String>> = Vec::new();
    for server in all.iter().filter(is_content) {
        let names = names(server);
        if !groups.iter().any(|group| group.iter().any(|name| names.contains(name)) || *group == names) {
            groups.push(names);
        }
    }
    for server in all {
        let plan = match () {
            () if refuses(server) => Plan::Refuse,
            () if redirects(server) => Plan::Redirect,
            () if groups.len() < 2 || names(server).is_empty() => Plan::Content(0),
            () => Plan::Content(nginx.draft.host(&names(server), server.line).unwrap_or(0)),
        };
        nginx.plans.push(plan);
    }
    nginx.plans.reverse();
    nginx.has_hosts = groups.len() > 1;
}

/// Adds the pairs of certificates and keys of a block.
fn certificates(nginx: &mut Nginx<'_, '_>, block: &[Directive]) {
    let of = |name: &'static str| {
        block.iter().filter(move |directive| directive.name == name).map(|found| found.arg(0))
    };
    for (certificate, key) in of("ssl_certificate").zip(of("ssl_certificate_key")) {
        let pair = (certificate.to_owned(), key.to_owned());
        let is_plain = ![certificate, key]
            .iter()
            .any(|path| path.contains('$') || path.contains(':') || path.is_empty());
        if is_plain && !nginx.draft.certificates.contains(&pair) {
            nginx.draft.certificates.push(pair);
        }
    }
}

/// Returns the names of a server as Tenfold writes them.
fn names(server: &Directive) -> Vec<String> {
    let all = server
        .inner()
        .iter()
        .filter(|directive| directive.name == "server_name")
        .flat_map(|names| &names.args);
    let mut found: Vec<String> = Vec::new();
    for name in all.filter(|name| !matches!(name.as_str(), "_" | "" | "localhost" | "default_server")) {
        match name.strip_prefix('.') {
            Some(domain) => found.extend([domain.to_owned(), format!("*.{domain}")]),
            None if name.starts_with('~') || name.ends_with(".*") => {}
            None => found.push(name.clone()),
        }
    }
    found.dedup();
    found
}

/// Whether a server only redirects.
fn redirects(server: &Directive) -> bool {
    let inner = server.inner();
    let is_redirect = |directive: &Directive| {
        directive.name == "return" && directive.args.last().is_some_and(|target| target.contains("://"))
            || directive.name == "rewrite"
                && matches!(directive.arg(0), "^" | "^(.*)$" | "^(.*)" | "^/(.*)$")
                && directive.arg(1).contains("://")
    };
    let root = inner.iter().find(|directive| directive.name == "location" && directive.args == ["/"]);
    let by_certbot = inner.iter().any(|directive| directive.name == "return" && directive.arg(0) == "404")
        && inner
            .iter()
            .any(|directive| directive.name == "if" && directive.inner().iter().any(leads_to_https));
    inner.iter().any(is_redirect)
        || by_certbot
        || root.is_some_and(|root| root.inner().iter().any(is_redirect))
}

/// Whether a server refuses the requests for unknown hosts.
fn refuses(server: &Directive) -> bool {
    let closes = |directive: &Directive| {
        directive.name == "return" && directive.args.len() == 1 && directive.arg(0).starts_with('4')
            || directive.name == "ssl_reject_handshake" && directive.arg(0) == "on"
    };
    names(server).is_empty() && server.inner().iter().any(closes) && !redirects(server)
}

/// Whether a `return` leads to the same URL with https.
pub(super) fn leads_to_https(directive: &Directive) -> bool {
    let target = directive.args.last().map_or("", String::as_str);
    let hosts = ["https://$host", "https://$http_host", "https://$server_name", "https://${host}"];
    let rest = hosts.iter().find_map(|front| target.strip_prefix(front));
    directive.name == "return"
        && rest.is_some_and(|rest| {
            matches!(rest, "$request_uri" | "$uri" | "${request_uri}" | "$uri$is_args$args")
        })
}

/// Sets `https-redirect`.
pub(super) fn https_redirect(nginx: &mut Nginx<'_, '_>, line: usize) -> Outcome {
    match nginx.draft.uses_tls() {
        true => nginx.draft.set("https-redirect", &["on"], line),
        false => refused(TLS_FILE),
    }
}

/// Redirects a host.
pub(super) fn host_redirect(nginx: &mut Nginx<'_, '_>, host: &str, returned: &Directive) -> Outcome {
    if leads_to_https(returned) {
        return https_redirect(nginx, returned.line);
    }
    to_host(nginx, &[host.to_owned()], returned)
}

/// Redirects every request for hosts to another host.
fn to_host(nginx: &mut Nginx<'_, '_>, hosts: &[String], returned: &Directive) -> Outcome {
    let (status, target) = match (returned.name.as_str(), returned.args.as_slice()) {
        ("rewrite", [_, target, flag]) => (if flag == "permanent" { 301 } else { 302 }, target.as_str()),
        ("rewrite", [_, target]) => (302, target.as_str()),
        (_, [status, target]) => (status.parse().unwrap_or(301), target.as_str()),
        (_, [target]) => (302, target.as_str()),
        _ => return refused("a target is missing"),
    };
    let target = target.replace("$scheme", "https");
    let front = ["$request_uri", "$uri$is_args$args", "$uri", "$1", "/$1"]
        .iter()
        .find_map(|rest| target.strip_suffix(rest));
    let (from, to) = match front {
        Some(front) => ("/**", format!("{}/**", front.trim_end_matches('/'))),
        None => ("/**", target.clone()),
    };
    if to.contains('$') {
        return refused(format!("the target {target} {VARIABLES_TOO}"));
    }
    let name =
        target.split("://").nth(1).and_then(|rest| rest.split(['/', '$', ':']).next()).unwrap_or_default();
    let others: Vec<String> = hosts.iter().filter(|host| *host != name).cloned().collect();
    let mut outcome = Outcome::Translated;
    // The host itself is only redirected to https.
    if hosts.len() != others.len() || hosts.is_empty() {
        outcome = https_redirect(nginx, returned.line);
    }
    if !others.is_empty() {
        let done = match nginx.draft.separate_host(&others, returned.line) {
            Ok(site) => nginx.draft.redirect(site, (from, &to), status, returned.line),
            Err(why) => why,
        };
        outcome = if outcome == Outcome::Translated { done } else { outcome };
    }
    outcome
}

/// Translates a server.
pub(super) fn server(nginx: &mut Nginx<'_, '_>, directive: &Directive) {
    let plan = nginx.plans.pop().unwrap_or(Plan::Content(0));
    let inner = directive.inner();
    if plan == Plan::Refuse {
        let why = "other hosts get the site at root: to refuse them, give root an empty folder, and each site a \
            [[host]]";
        return nginx.refuse(directive, why);
    }
    if !inner.iter().any(|inner| inner.name == "listen") {
        nginx.draft.listen("0.0.0.0:80", false, false, directive.line);
    }
    let (names, site) = match &plan {
        Plan::Content(site) => (Vec::new(), *site),
        _ => (names(directive), 0),
    };
    let context =
        Context { scope: Scope::of(site), level: Level::Server, server: inner, block: inner, hidden: false };
    let has_several = nginx.draft.sites.len() > 1;
    let is_shared = plan == Plan::Content(0) && has_several && nginx.has_hosts;
    let outcome = match is_shared {
        true => refused(
            "this server has no name of its own, so its rules are in [site], and each [[host]] has them, too",
        ),
        false => Outcome::Translated,
    };
    nginx.draft.record(directive.line, &directive.name, outcome);
    if plan != Plan::Redirect {
        return nginx.block(inner, &context);
    }
    for part in inner {
        redirecting(nginx, part, &names, &context);
    }
}

/// Translates a directive of a server that only redirects.
fn redirecting<'t>(nginx: &mut Nginx<'_, '_>, part: &'t Directive, names: &[String], context: &Context<'t>) {
    let is_way = |part: &Directive| {
        matches!(part.name.as_str(), "return" | "rewrite")
            && part.args.last().is_some_and(|_| part.args.iter().any(|word| word.contains("://")))
    };
    let outcome = match part.name.as_str() {
        "return" if part.arg(0) == "404" => default(REDIRECTED),
        _ if is_way(part) && leads_to_https(part) => https_redirect(nginx, part.line),
        _ if is_way(part) => to_host(nginx, names, part),
        "root" | "index" | "access_log" | "error_log" | "charset" | "autoindex" | "add_header" => {
            default(REDIRECTED)
        }
        "location"
            if part
                .args
                .iter()
                .any(|path| path.contains("acme-challenge") || path.contains("well-known")) =>
        {
            nginx.draft.record(part.line, &part.name, default(ACME));
            return nginx.accept_all(part.inner(), &default(ACME));
        }
        "location" if part.args == ["/"] => {
            nginx.draft.record(part.line, &part.name, Outcome::Translated);
            return part.inner().iter().for_each(|inner| redirecting(nginx, inner, names, context));
        }
        "location" => {
            nginx.refuse(part, "only ACME is an exception of a redirect for every path");
            return;
        }
        _ => return nginx.directive(part, context),
    };
    nginx.draft.record(part.line, &part.name, outcome.clone());
    nginx.accept_all(part.inner(), &outcome);
}

/// Translates a directive about addresses, names or certificates.
pub(super) fn of_server(nginx: &mut Nginx<'_, '_>, directive: &Directive, site: usize) -> Outcome {
    let (first, line) = (directive.arg(0), directive.line);
    match directive.name.as_str() {
        "listen" => listen(nginx, directive),
        "server_name" => {
            let wrong = directive.args.iter().find(|name| name.starts_with('~') || name.ends_with(".*"));
            match wrong {
                Some(name) => {
                    refused(format!("{name}: a host has names, or *.example.org, and no expressions"))
                }
                None if names_of(directive).is_empty() || site == 0 => {
                    default("[site] answers every host without a [[host]]")
                }
                None => match nginx.draft.host(&names_of(directive), line) {
                    Ok(_) => Outcome::Translated,
                    Err(why) => why,
                },
            }
        }
        "ssl" => default("each address with a certificate has TLS"),
        "ssl_certificate" | "ssl_certificate_key" => {
            let is_known = |(certificate, key): &(String, String)| certificate == first || key == first;
            match nginx.draft.certificates.iter().any(is_known) {
                true => Outcome::Translated,
                false if first.contains('$') => refused(VARIABLES),
                false => refused("a certificate needs its key, and each is a file"),
            }
        }
        _ => {
            let has = |version: &str| directive.args.iter().any(|word| word == version);
            match (has("TLSv1.2"), has("TLSv1.3")) {
                (false, true) => nginx.draft.set("tls-preset", &["modern"], line),
                (true, _) if !has("TLSv1.1") && !has("TLSv1") => default("TLS 1.2 and 1.3 are on"),
                _ => refused("TLS has the versions 1.2 and 1.3"),
            }
        }
    }
}

fn names_of(directive: &Directive) -> Vec<String> {
    let block = Some(vec![directive.clone()]);
    names(&Directive { line: 0, name: String::new(), args: Vec::new(), block })
}

fn listen(nginx: &mut Nginx<'_, '_>, directive: &Directive) -> Outcome {
    let (first, options) = match directive.args.split_first() {
        Some((first, options)) => (first.as_str(), options),
        None => return refused("an address is missing"),
    };
    let has = |option: &str| options.iter().any(|word| word == option);
    if has("quic") || has("http3") {
        return refused("HTTP/3 is not supported");
    }
    let tls = has("ssl");
    if tls && !nginx.draft.uses_tls() {
        return refused(TLS_FILE);
    }
    let proxied = has("proxy_protocol");
    if proxied && !nginx.proxies {
        return refused(
            "the PROXY header needs a trusted-proxy: name the address of the proxy, and use the prefix proxy:",
        );
    }
    let port = if tls { "443" } else { "80" };
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let address = match first {
        _ if first.starts_with("unix:") => first.to_owned(),
        _ if is_port(first) => format!("0.0.0.0:{first}"),
        _ if first.ends_with(']') => format!("{first}:{port}"),
        _ => match first.rsplit_once(':') {
            Some(("*", port)) => format!("0.0.0.0:{port}"),
            Some(("localhost", port)) => format!("127.0.0.1:{port}"),
            Some(_) => first.to_owned(),
            None if first == "localhost" => format!("127.0.0.1:{port}"),
            None if first == "*" => format!("0.0.0.0:{port}"),
            None => format!("{first}:{port}"),
        },
    };
    let outcome = nginx.draft.listen(&address, tls, proxied, directive.line);
    if let Some(backlog) = options.iter().find_map(|word| word.strip_prefix("backlog=")) {
        nginx.draft.set("backlog", &[backlog], directive.line);
    }
    match address.strip_prefix("[::]:") {
        Some(port) if has("ipv6only=off") && outcome == Outcome::Translated => {
            nginx.draft.listen(&format!("0.0.0.0:{port}"), tls, proxied, directive.line)
        }
        _ => outcome,
    }
}
