//! Refuses combinations of legal values that have no effect, each with an alternative, and engines that do not run here.

use std::fs;

use tenfold_engine::{Accept, Dispatch, Driver, Engine, Facility, MODELS, Plan, Sender, Topology, Trigger};
use tenfold_http::TrustedProxy;
use tenfold_sys::socket::ListenAddress;

use crate::config::parse::rows::rows;
use crate::config::resolve::certificates;
use crate::config::values::log::{LogTarget, Mode, Rotate};
use crate::config::values::{HttpsRedirect, ListenEntry, Settings};

/// Refuses settings that have no effect with `plan`, or with each other.
pub(super) fn of(settings: &Settings, plan: &Plan) -> Result<(), String> {
    what_is_for_other_engines(settings, plan)?;
    what_is_for_other_topologies(settings, plan)?;
    logs_that_can_not_be(settings, plan.engine)?;
    bounds_of_nothing(settings)?;
    content_of_nothing(settings)?;
    members_without_accounts(settings)?;
    proxies_of_nothing(settings)?;
    admin_on_an_address_of_the_site(settings)?;
    tcp_without_tcp(settings)?;
    zerocopy_without_tcp(settings, plan.sender)?;
    tls_without_a_use(settings)?;
    http2_without_records(settings)?;
    certificates::refuse(settings)?;
    fastopen_without_the_kernel(settings)
}

/// Refuses settings about members without the database of the members.
fn members_without_accounts(settings: &Settings) -> Result<(), String> {
    let by_password = settings.asks_for_passwords();
    let without = |name: &str| match name {
        "accounts" => true,
        "login-throttle" => by_password,
        _ => false,
    };
    let about_members = rows().filter(|row| row.heading == "Members" && !without(row.name));
    let said = about_members.map(|row| row.name).find(|name| settings.is_explicit(name));
    match (said, &settings.members.accounts) {
        (Some(name), None) => {
            Err(format!("{name} is for a server that has members; name their database with accounts"))
        }
        _ if settings.members.idle > settings.members.absolute => {
            Err("session-idle is longer than session-lifetime, and would have no effect".into())
        }
        _ => Ok(()),
    }
}

fn proxies_of_nothing(settings: &Settings) -> Result<(), String> {
    let proxies = &settings.proxies.proxies;
    let speaks_to = |entry: &ListenEntry| match entry.address {
        ListenAddress::Unix(_) => proxies.contains(&TrustedProxy::Unix),
        ListenAddress::Internet(_) => proxies.iter().any(|proxy| *proxy != TrustedProxy::Unix),
    };
    let deaf = settings.listen.iter().find(|entry| entry.proxied && !speaks_to(entry));
    match deaf.map(|entry| &entry.address) {
        Some(ListenAddress::Unix(path)) => Err(format!(
            "the PROXY headers of unix:{} need a trusted-proxy: add trusted-proxy unix, which trusts every client of \
             a Unix socket of this server",
            path.display()
        )),
        Some(address) => Err(format!(
            "the PROXY headers of {address} need a trusted-proxy: name the address or the network of the proxy"
        )),
        None if proxies.is_empty() && settings.is_explicit("forwarded-fields") => {
            Err("forwarded-fields has no effect without trusted-proxy; name the proxy, or remove it".into())
        }
        None => Ok(()),
    }
}

fn admin_on_an_address_of_the_site(settings: &Settings) -> Result<(), String> {
    let Some(admin) = &settings.admin else { return Ok(()) };
    let is_same = |address: &ListenAddress| match (address, admin) {
        (ListenAddress::Internet(one), ListenAddress::Internet(other)) => {
            let is_covered =
                one.ip().is_unspecified() || other.ip().is_unspecified() || one.ip() == other.ip();
            one.port() != 0 && one.port() == other.port() && one.is_ipv4() == other.is_ipv4() && is_covered
        }
        (one, other) => one == other,
    };
    match settings.addresses().find(|address| is_same(address)) {
        Some(address) => {
            Err(format!("admin is {admin}, and listen has {address}: choose another port or path for admin"))
        }
        None => Ok(()),
    }
}

/// Whether an engine uses a setting, with inline dispatch.
type Uses = fn(Engine) -> bool;

/// Settings that only some engines use.
const FOR_SOME: &[(&str, Uses)] = &[
    ("pool-threads", |engine| engine == Engine::Pool),
    ("pool-queue", |engine| engine == Engine::Pool),
    ("busy-sleep", |engine| engine == Engine::Busy),
    // Engines that block set their deadlines in the socket.
    ("timer", |engine| engine.model().driver != Driver::Blocking),
    ("accept", Engine::accepts_in_batches),
    // `naive` serves one connection at a time; the threads and the queue of `pool` bound its connections.
    ("max-connections", |engine| !matches!(engine, Engine::Naive | Engine::Pool)),
    // A child of `fork` serves one connection, so each connection would start a watch.
    ("watch", |engine| engine != Engine::Fork),
    ("max-connections-per-address", |engine| engine != Engine::Naive),
];

/// Refuses settings that the planned engine does not use.
fn what_is_for_other_engines(settings: &Settings, plan: &Plan) -> Result<(), String> {
    let (engine, dispatch) = (plan.engine, plan.dispatch);
    let of_a_pool = |name: &str| name.starts_with("pool-");
    let used = |name: &str, uses: &Uses| uses(engine) || of_a_pool(name) && dispatch != Dispatch::Inline;
    let idle = FOR_SOME.iter().find(|(name, uses)| settings.is_explicit(name) && !used(name, uses));
    let Some((name, uses)) = idle else { return Ok(()) };
    if of_a_pool(name) {
        return Err(format!(
            "{name} is for engine pool, and for dispatch reactor and proactor, not for {engine} with dispatch \
             {dispatch}"
        ));
    }
    let able: Vec<_> = MODELS.iter().filter(|model| uses(model.engine)).map(|model| model.name).collect();
    let are = if able.len() == 1 { "engine" } else { "engines" };
    Err(format!("{name} is for {are} {}, not {engine}", able.join(", ")))
}

/// The message for a setting that has no effect while another is off.
pub(super) fn without(name: &str, needed: &str) -> String {
    format!("{name} has no effect while {needed} is off; set {needed}, or remove {name}")
}

/// Refuses a bound without effect, or a bound that leaves no room for another.
fn bounds_of_nothing(settings: &Settings) -> Result<(), String> {
    let requests = settings.max_requests_per_address;
    let unix = |address: &&ListenAddress| matches!(address, ListenAddress::Unix(_));
    match (settings.max_rate, settings.limits.min_rate) {
        _ if requests.is_none() && settings.is_explicit("request-burst") => {
            Err(without("request-burst", "max-requests-per-address"))
        }
        (Some(most), least) if most <= least => Err(format!(
            "max-rate is {most} and min-rate is {least}: no connection can meet both; raise one or lower the other"
        )),
        (Some(_), _) if let Some(address) = settings.addresses().find(unix) => {
            Err(format!("max-rate applies to TCP only, and {address} is a Unix socket"))
        }
        _ => Ok(()),
    }
}

fn content_of_nothing(settings: &Settings) -> Result<(), String> {
    let codings = &settings.codings;
    let idle = ["compress-types", "compress-from"]
        .into_iter()
        .find(|name| codings.made.is_empty() && settings.is_explicit(name));
    idle.map_or(Ok(()), |name| Err(without(name, "compress")))
}

fn logs_that_can_not_be(settings: &Settings, engine: Engine) -> Result<(), String> {
    const OF_THE_LOG: [&str; 5] = ["log-format", "log-mode", "log-full", "log-rotate", "log-keep"];
    let is_async = settings.log.mode == Mode::Async;
    // A flag can turn off a log that the file describes.
    let off = settings.source("access-log");
    let idle = OF_THE_LOG.iter().find(|name| settings.is_explicit(name) && settings.source(name) >= off);
    if let (LogTarget::Off, Some(name)) = (&settings.access_log, idle) {
        return Err(format!(
            "{name} has no effect while access-log is off; name a file, or - for standard output, or remove {name}"
        ));
    }
    match () {
        () if is_async && engine == Engine::Fork => Err(
            "log-mode async does not go with engine fork: a child that ends with its connection has no use for a \
             thread; take sync or buffered"
                .into(),
        ),
        () if settings.is_explicit("log-full") && !is_async => {
            Err("log-full has no effect unless log-mode is async, which has a queue; set it, or remove log-full".into())
        }
        () if settings.log_rotate == Rotate::Off && settings.is_explicit("log-keep") => {
            Err(without("log-keep", "log-rotate"))
        }
        () if settings.log_rotate != Rotate::Off => a_log_that_can_not_be_renamed(&settings.access_log),
        () => Ok(()),
    }
}

/// Refuses rotation of logs other than files, because it renames the old file. Renaming a link could rename a file of
/// the system, such as `/dev/stdout`. A missing log will be created as a file.
fn a_log_that_can_not_be_renamed(log: &LogTarget) -> Result<(), String> {
    let what = match log {
        LogTarget::Off => return Ok(()),
        LogTarget::Output => "standard output cannot be renamed".to_owned(),
        LogTarget::File(path) => match fs::symlink_metadata(path) {
            Ok(facts) if facts.is_symlink() => {
                format!("{} is a link, and its target is not renamed with it", path.display())
            }
            Ok(facts) if !facts.is_file() => format!("{} is not a regular file", path.display()),
            Ok(_) | Err(_) => return Ok(()),
        },
    };
    Err(format!(
        "log-rotate requires an access log in a file: {what}; name a file with access-log, or leave log-rotate out"
    ))
}

fn what_is_for_other_topologies(settings: &Settings, plan: &Plan) -> Result<(), String> {
    let handoff = plan.topology == Topology::Handoff;
    match () {
        () if settings.is_explicit("handoff-queue") && !handoff => {
            Err(format!("handoff-queue is for topology handoff, not {}", plan.topology))
        }
        () if settings.is_explicit("accept") && handoff => Err(
            "accept is for workers that accept for themselves, and not for topology handoff, in which one \
                 thread does nothing else; leave it out, or take topology threads"
                .into(),
        ),
        () if settings.accept == Some(Accept::One) && plan.triggers.listener == Trigger::Edge => {
            Err(format!(
                "accept one does not go with trigger {}: an edge-triggered listener is reported only \
                 once for several connections, and the others would wait; take lt+et or lt+lt",
                plan.triggers
            ))
        }
        () => Ok(()),
    }
}

/// Options of TCP sockets.
const TCP: &[&str] = &["tcp-nodelay", "tcp-cork", "defer-accept", "fastopen", "linger", "notsent-lowat"];

fn tcp_without_tcp(settings: &Settings) -> Result<(), String> {
    if settings.addresses().any(is_tcp) {
        return Ok(());
    }
    match TCP.iter().find(|name| settings.is_explicit(name)) {
        Some(name) => Err(format!(
            "{name} is for TCP, and every address in listen is a Unix socket; leave it out, or listen on an \
             address such as 127.0.0.1:8080, too"
        )),
        None => Ok(()),
    }
}

/// Refuses zero-copy sends without TCP.
fn zerocopy_without_tcp(settings: &Settings, sender: Sender) -> Result<(), String> {
    let unix = settings.addresses().find(|address| matches!(address, ListenAddress::Unix(_)));
    match (sender, unix) {
        (Sender::Zerocopy, Some(address)) => Err(format!(
            "send zerocopy is for TCP, and {address} is a Unix socket; take another sender, or another address"
        )),
        _ => Ok(()),
    }
}

/// Settings of connections with TLS.
const OF_TLS: &[&str] = &[
    "tls-preset",
    "tls-kernel",
    "tls-key-isolation",
    "https-redirect",
    "hsts",
    "max-handshakes-per-address",
];

fn is_tcp(address: &ListenAddress) -> bool {
    matches!(address, ListenAddress::Internet(_))
}

fn tls_without_a_use(settings: &Settings) -> Result<(), String> {
    let (certificates, keys) = (settings.tls_certificate.len(), settings.tls_key.len());
    let source = if certificates == 0 { "tls" } else { "tls-certificate" };
    match (certificates, keys) {
        (0, 0) if !settings.uses_tls() && let Some(name) = OF_TLS.iter().find(|name| settings.is_explicit(name)) => {
            Err(format!("{name} has no effect without tls-certificate or tls; name a certificate, or remove it"))
        }
        (0, 0) if !settings.uses_tls() => Ok(()),
        (1.., 0) => Err("tls-certificate requires tls-key: name the file with the key".into()),
        (0, 1..) => Err("tls-key requires tls-certificate: name the file with the certificate".into()),
        _ if certificates != keys => Err(format!(
            "tls-certificate names {certificates} files and tls-key {keys}; give each certificate its key, in the \
             same order"
        )),
        _ if !settings.listen.iter().any(|entry| settings.has_tls(entry)) => Err(format!(
            "{source} has no use: every address in listen is a Unix socket or begins with http:; listen on an address \
             such as 0.0.0.0:443"
        )),
        _ if settings.https_redirect.is_some_and(|redirect| redirect != HttpsRedirect::Off)
            && !settings.listen.iter().any(|entry| is_tcp(&entry.address) && entry.plaintext) =>
        {
            Err("https-redirect has no use: no TCP address in listen begins with http:; listen on an address such as \
                 http:0.0.0.0:80, too"
                .into())
        }
        _ => Ok(()),
    }
}

/// HTTP/2 has frames of its own: it cannot send a head by separate calls, and it needs records of its own.
fn http2_without_records(settings: &Settings) -> Result<(), String> {
    let other = match settings.http2_excludes() {
        Some(other) if settings.http2 == Some(true) => other,
        _ if !settings.http2() && settings.is_explicit("http2-streams") => {
            return Err("http2-streams has no effect without HTTP/2; remove it".into());
        }
        _ => return Ok(()),
    };
    Err(format!("http2 on excludes {other}; remove one of them"))
}

/// The bit of `net.ipv4.tcp_fastopen` that permits fast open for servers (`Documentation/networking/ip-sysctl.rst`).
const SERVERS: u32 = 2;

fn fastopen_without_the_kernel(settings: &Settings) -> Result<(), String> {
    const SYSCTL: &str = "/proc/sys/net/ipv4/tcp_fastopen";
    if settings.fastopen.is_none() {
        return Ok(());
    }
    let said = fs::read_to_string(SYSCTL).map_err(|error| {
        format!("fastopen needs net.ipv4.tcp_fastopen, and {SYSCTL} cannot be read: {error}; leave it off")
    })?;
    match said.trim().parse::<u32>() {
        Ok(bits) if bits & SERVERS != 0 => Ok(()),
        _ => Err(format!(
            "fastopen needs bit {SERVERS} of net.ipv4.tcp_fastopen, which is {}: the kernel would silently ignore \
             fastopen; set it (sysctl -w net.ipv4.tcp_fastopen=3), or leave fastopen off",
            said.trim()
        )),
    }
}

/// Returns the facility that an engine lacks, with the error of the system.
pub(crate) fn missing(engine: Engine) -> Option<(Facility, String)> {
    tenfold_engine::probe(engine).err()
}

/// Checks that this kernel has the facilities of `engine`.
pub(crate) fn require(engine: Engine) -> Result<(), String> {
    let Some(missing) = missing(engine) else { return Ok(()) };
    let able = MODELS.iter().filter(|model| self::missing(model.engine).is_none());
    let able: Vec<_> = able.map(|model| model.name).collect();
    Err(format!("engine {engine} does not run here: {}; {} can", shown(&missing), able.join(", ")))
}

/// A missing facility, with the system's error.
pub(crate) fn shown((facility, said): &(Facility, String)) -> String {
    format!("{}: {said}", facility.name())
}
