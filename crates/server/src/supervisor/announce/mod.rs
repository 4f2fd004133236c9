//! The start block: links, who can reach them, and the folder. For a configured server also its log and the features
//! that are off. With `-v` all of these, the engine, bounds, sandbox and control socket.

mod details;
mod facts;
mod qr;

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tenfold_accounts::web::protect::ProtectedFolder;
use tenfold_site::Listing;
use tenfold_sys::socket::ListenAddress;
use tenfold_tls::config::SecurityPreset;

use crate::config::parse::units::shown_size;
use crate::config::resolve::certificates;
use crate::config::resolve::certificates::outward;
use crate::config::values::bounds::LOG_QUEUE;
use crate::config::values::log::{Full, Manner, Mode, name_of};
use crate::config::values::log::{LogTarget, Rotate};
use crate::config::values::{Control, Settings};
use crate::diagnostics::{self, Level};
use crate::sandbox;

pub(crate) use details::workers;
pub(crate) use facts::StartFacts;

/// Prints the start block.
pub(crate) fn announce(facts: &StartFacts<'_>) {
    // A requested code is shown at any level.
    if facts.qr || facts.settings.log_level >= Level::Info {
        diagnostics::lines(Level::Info, &block(facts, diagnostics::coloured()));
    }
}

/// The greatest width of a line.
const WIDTH: usize = 100;
/// The width of names and the blanks around them.
const INDENT: usize = 11;

fn block(facts: &StartFacts<'_>, coloured: bool) -> String {
    let (strong, faint, plain) = if coloured { ("\x1b[1m", "\x1b[2m", "\x1b[0m") } else { ("", "", "") };
    let detailed = facts.settings.log_level >= Level::Debug;
    // A user who shares a folder needs the link, and how to end it.
    let is_brief = !detailed && !facts.settings.configured;
    let mut text = match is_brief {
        true => String::new(),
        false => format!("{strong}tenfold {}{plain}\n", env!("CARGO_PKG_VERSION")),
    };
    let links = links(facts);
    for Link { link, reach, .. } in &links {
        let _ = writeln!(text, "  {faint}serves{plain}   {strong}{link}{plain}   {reach}");
    }
    if facts.qr {
        let outward = links.iter().find(|link| link.outward).and_then(|link| qr::code(&link.link, coloured));
        text += &outward.unwrap_or_else(|| no_code(facts));
    }
    let lines = [
        ("folder", root(facts)),
        ("tls", tls(facts)),
        ("members", members(facts)),
        ("log", log(facts).filter(|_| !is_brief)),
        ("user", user(facts)),
        ("off", off(facts).filter(|_| !is_brief)),
    ];
    let details = detailed.then(|| details::lines(facts)).into_iter().flatten();
    for (name, value) in lines.into_iter().chain(details) {
        if let Some(value) = value {
            let _ = writeln!(text, "  {faint}{name:<8}{plain} {}", wrapped(&value));
        }
    }
    if is_brief {
        text += "  Ctrl-C stops it; -v shows more\n";
    }
    text
}

/// Shown in place of a code that other machines could not use.
fn no_code(facts: &StartFacts<'_>) -> String {
    let port = facts.addresses.iter().find_map(|address| match address {
        ListenAddress::Internet(at) => Some(at.port()),
        ListenAddress::Unix(_) => None,
    });
    let port = port.unwrap_or(8080);
    format!("  no QR code: other machines reach no address of this server; `-l :{port}` opens it to them\n")
}

/// A link to an address of the server.
struct Link {
    link: String,
    /// The machines that can reach it, in words.
    reach: String,
    /// Whether other machines can.
    outward: bool,
}

/// Breaks a value into lines, if possible after a comma or a semicolon.
fn wrapped(value: &str) -> String {
    let room = WIDTH - INDENT;
    let mut text = String::new();
    let mut rest = value;
    while rest.chars().count() > room {
        let end = rest.char_indices().nth(room).map_or(rest.len(), |(at, _)| at);
        let head = &rest[..end];
        let place = head.rfind(", ").max(head.rfind("; ")).map(|at| at + 1).or_else(|| head.rfind(' '));
        // A path longer than a line stays whole.
        let Some(place) = place.or_else(|| rest.find(' ')) else { break };
        let (line, next) = rest.split_at(place);
        let _ = write!(text, "{line}\n{:INDENT$}", "");
        rest = &next[1..];
    }
    text + rest
}

/// Returns a link to each address, and who can reach it.
fn links(facts: &StartFacts<'_>) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    let mut add = |link, reach, outward| links.push(Link { link, reach, outward });
    let served: Vec<_> = facts.addresses.iter().zip(&facts.settings.listen).collect();
    for (address, entry) in &served {
        let scheme = if facts.settings.has_tls(entry) { "https" } else { "http" };
        let proxied = if entry.proxied { ", behind a proxy with PROXY headers" } else { "" };
        match address {
            ListenAddress::Unix(path) => {
                let reach = format!("programs of this machine{proxied}");
                add(format!("unix:{}", path.display()), reach, false);
            }
            ListenAddress::Internet(at) if at.ip().is_unspecified() => {
                let same = |(other, _): &(&ListenAddress, _)| {
                    matches!(other, ListenAddress::Internet(other) if other.ip() == IpAddr::from([0; 4])
                        && other.port() == at.port())
                };
                // IPv4 and IPv6 of one port have one link.
                if at.is_ipv6() && served.iter().any(same) {
                    continue;
                }
                let own: IpAddr =
                    if at.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
                let link = |ip| format!("{scheme}://{}/", SocketAddr::new(ip, at.port()));
                let all = "other machines: it listens on all addresses".to_owned();
                match outward(at.is_ipv4()) {
                    Some(ip) => {
                        add(link(own), format!("this machine{proxied}"), false);
                        add(link(ip), all, true);
                    }
                    None => add(link(own), all, false),
                }
            }
            ListenAddress::Internet(at) => {
                let outward = !at.ip().is_loopback();
                let reach = match outward {
                    true => "other machines that reach this address".to_owned(),
                    false if facts.settings.configured => "this machine only".to_owned(),
                    false => format!("this machine only; `-l :{}` opens it to the network", at.port()),
                };
                add(format!("{scheme}://{at}/"), format!("{reach}{proxied}"), outward);
            }
        }
    }
    links
}

fn root(facts: &StartFacts<'_>) -> Option<String> {
    if let Some(null) = facts.null {
        let close = if null.close { ", and closes" } else { "" };
        return Some(format!("none: every request gets one response of {} bytes{close}", null.body));
    }
    let settings = facts.settings;
    let root = std::path::absolute(&settings.root).unwrap_or_else(|_| settings.root.clone());
    let names = settings.index.join(" or ");
    let by_site = settings.site.policy.listing;
    let listing = by_site.unwrap_or(settings.listing());
    let said = match (settings.index.iter().find(|index| root.join(index).is_file()), listing) {
        (Some(index), _) => index.clone(),
        (None, Listing::Off) if by_site.is_some() => {
            format!("no {names}: 404; listing = \"html\" in [site] lists its files")
        }
        (None, Listing::Off) => format!("no {names}: 404; --listing html lists its files"),
        // The user may not have requested a listing that other machines can see, so name the flag that hides it.
        (None, Listing::Html | Listing::Json) if !settings.is_local() && settings.listing.is_none() => {
            format!("no {names}: its files are listed, also to other machines; --listing off hides them")
        }
        (None, Listing::Html | Listing::Json) => format!("no {names}: its files are listed"),
    };
    Some(format!("{} ({said})", root.display()))
}

fn tls(facts: &StartFacts<'_>) -> Option<String> {
    let certificates = facts.config.certificates.as_ref()?;
    let described = certificates.summaries().zip(&certificates.pairs).map(|(summary, pair)| {
        format!("{summary} ({})", certificates::source(facts.settings, &pair.chain.path))
    });
    let waited = facts.config.acme.as_ref().filter(|task| !task.has_certificate(certificates)).map(|task| {
        let (names, directory) = (task.settings.names.join(", "), &task.settings.directory);
        format!("{names} (waiting for {directory}; handshakes are refused until then)")
    });
    let summaries: Vec<_> = described.chain(waited).collect();
    let versions = match facts.settings.tls_preset {
        SecurityPreset::Modern => "1.3",
        SecurityPreset::Intermediate => "1.2 and 1.3",
    };
    Some(format!("{versions}: {}", summaries.join("; ")))
}

fn members(facts: &StartFacts<'_>) -> Option<String> {
    let said = &facts.settings.members;
    let mut text = facts.accounts?.0.to_string();
    let _ = match said.protect.as_slice() {
        [] => write!(text, ", nothing is protected"),
        folders => write!(
            text,
            ", members only: {}",
            folders.iter().map(ProtectedFolder::url).collect::<Vec<_>>().join(" ")
        ),
    };
    let everywhere = facts.settings.listen.iter().all(|entry| facts.settings.has_tls(entry));
    text += match facts.settings.proxies.proxies.as_slice() {
        _ if everywhere => "; cookies are Secure",
        [] if facts.config.certificates.is_some() => "; cookies are Secure with TLS, and plain elsewhere",
        [] => "; cookies are plain: without TLS, an observer of the network can steal them",
        _ => "; cookies are Secure where a trusted proxy says https, and plain elsewhere",
    };
    Some(text)
}

fn log(facts: &StartFacts<'_>) -> Option<String> {
    match (&facts.settings.access_log, facts.null) {
        (LogTarget::Off, _) | (_, Some(_)) => None,
        (LogTarget::Output, None) => Some(format!("standard output, {}", manner(facts.settings))),
        (LogTarget::File(path), None) => Some(format!("{}, {}", path.display(), manner(facts.settings))),
    }
}

fn manner(settings: &Settings) -> String {
    let Manner { format, mode, full } = &settings.log;
    let mut said = format!("{}, {}", format.name(), name_of(Mode::WORDS, mode));
    if *mode == Mode::Async {
        let _ = write!(said, " ({} when {} wait)", name_of(Full::WORDS, full), shown_size(LOG_QUEUE as u64));
    }
    match settings.log_rotate {
        Rotate::Off => {}
        Rotate::Size(bytes) => {
            let _ = write!(said, ", a new file at {}", shown_size(bytes));
        }
        Rotate::Lines(count) => {
            let _ = write!(said, ", a new file every {count} lines");
        }
        Rotate::Daily => said += ", a new file every day",
    }
    if let Some(most) = settings.log_keep {
        let _ = write!(said, ", {most} rotated files");
    }
    said
}

fn user(facts: &StartFacts<'_>) -> Option<String> {
    const SAME: &str = "the workers and the process of the accounts run as";
    Some(match (facts.user, facts.accounts) {
        (None, None) => return None,
        // Only shown with accounts: every server that root starts has such a user.
        (Some(_), None) if facts.settings.log_level < Level::Debug => return None,
        (None, Some(_)) => format!("{SAME} the user of this process; start as root to separate them"),
        (Some(user), None) => format!("{} serves; the supervisor stays root", user.name),
        (Some(user), Some((_, Some(keeper)))) if keeper.id != user.id => {
            format!("{} serves, {} keeps the accounts; the supervisor stays root", user.name, keeper.name)
        }
        (Some(user), Some(_)) => {
            format!("{SAME} {}; set accounts-user to separate them; the supervisor stays root", user.name)
        }
    })
}

/// Lists features that are off, each with the reason.
fn off(facts: &StartFacts<'_>) -> Option<String> {
    let mut off = Vec::new();
    match (facts.null, &facts.settings.access_log) {
        (Some(_), _) => off.push("site and log (--null)"),
        (None, LogTarget::Off) => off.push("access log (access-log off)"),
        _ => {}
    }
    if facts.settings.control == Control::Off {
        off.push("`tenfold status` (control off)");
    }
    if facts.null.is_none() {
        let (listed, hidden) = (facts.settings.lists_folders(), facts.settings.serves_dotfiles());
        off.extend((!listed).then_some("folder listings"));
        off.extend((!hidden).then_some("dotfiles"));
        off.push("links that leave the root (for safety)");
    }
    if facts.config.certificates.is_none() {
        off.push("TLS (tls off)");
    }
    match (sandbox::CONFINES, facts.files_limited) {
        (false, _) => off.push("sandbox (a build for sanitizers)"),
        (true, false) => off.push("the sandbox for files (this kernel has no Landlock)"),
        (true, true) => {}
    }
    (!off.is_empty()).then(|| off.join(", "))
}

#[cfg(test)]
mod tests;
