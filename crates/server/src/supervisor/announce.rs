//! The start block: addresses, roots, engine, bounds, and features that are off.

use std::fmt::Write;
use std::net::IpAddr;
use std::path::Path;

use tenfold_accounts::store::url::{DatabaseUrl, without_password};
use tenfold_accounts::web::protect::ProtectedFolder;
use tenfold_engine::{Dispatch, Engine, Sender, libevent_method};
use tenfold_sys::select::FD_SETSIZE;
use tenfold_sys::socket::ListenAddress;
use tenfold_sys::user::SystemUser;
use tenfold_tls::config::SecurityPreset;

use crate::admission::ConnectionBound;
use crate::diagnostics::{self, Level};
use crate::resolved::config::ResolvedConfig;
use crate::resolved::names;
use crate::settings::log::{Full, LogFormat, Manner, Mode, name_of};
use crate::settings::log::{LogTarget, Rotate};
use crate::settings::units::{shown_duration, shown_size};
use crate::settings::values::{Control, Settings};
use crate::worker::null::NullResponse;

/// The facts of the start block.
pub(crate) struct StartFacts<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) config: &'a ResolvedConfig,
    pub(crate) addresses: &'a [ListenAddress],
    /// The members' database, and the user of the accounts process if the server was started as root.
    pub(crate) accounts: Option<(&'a DatabaseUrl, Option<&'a SystemUser>)>,
    pub(crate) user: Option<&'a SystemUser>,
    /// If a process of its own has the keys: its user, if the server was started as root.
    pub(crate) signing: Option<Option<&'a SystemUser>>,
    pub(crate) control: Option<&'a Path>,
    pub(crate) null: Option<NullResponse>,
    /// Whether the kernel limits the files of processes.
    pub(crate) files_limited: bool,
}

/// Prints the start block.
pub(crate) fn announce(facts: &StartFacts<'_>) {
    if facts.settings.log_level >= Level::Info {
        diagnostics::lines(Level::Info, &block(facts, diagnostics::coloured()));
    }
}

fn block(facts: &StartFacts<'_>, coloured: bool) -> String {
    let (strong, faint, plain) = if coloured { ("\x1b[1m", "\x1b[2m", "\x1b[0m") } else { ("", "", "") };
    let mut text =
        format!("{strong}tenfold {}{plain}, process {}\n", env!("CARGO_PKG_VERSION"), std::process::id());
    for (address, entry) in facts.addresses.iter().zip(&facts.settings.listen) {
        let scheme = if facts.settings.has_tls(entry) { "https" } else { "http" };
        let proxied = if entry.proxied { " (behind a proxy, with PROXY headers)" } else { "" };
        let _ = writeln!(text, "  {faint}serves{plain}   {strong}{}{plain}{proxied}", link(scheme, address));
    }
    let lines = [
        ("root", root(facts)),
        ("tls", tls(facts)),
        ("members", members(facts)),
        ("engine", engine(facts)),
        ("switches", switches(facts)),
        ("files", files(facts)),
        ("bounds", bounds(facts)),
        ("log", log(facts)),
        ("user", user(facts)),
        ("sandbox", Some(sandbox(facts))),
        ("control", control(facts)),
        ("off", off(facts)),
    ];
    for (name, said) in lines {
        if let Some(said) = said {
            let _ = writeln!(text, "  {faint}{name:<8}{plain} {said}");
        }
    }
    text
}

/// An address as a URL that terminals recognize.
fn link(scheme: &str, address: &ListenAddress) -> String {
    match address {
        ListenAddress::Internet(at) if at.ip().is_unspecified() => {
            let own =
                if at.is_ipv4() { IpAddr::from([127, 0, 0, 1]).to_string() } else { "[::1]".to_owned() };
            format!("{scheme}://{own}:{}/ and every other address of this machine ({at})", at.port())
        }
        ListenAddress::Internet(at) => format!("{scheme}://{at}/"),
        ListenAddress::Unix(path) => format!("unix:{}", path.display()),
    }
}

fn root(facts: &StartFacts<'_>) -> Option<String> {
    if let Some(null) = facts.null {
        let close = if null.close { ", and closes" } else { "" };
        return Some(format!("none: every request gets one response of {} bytes{close}", null.body));
    }
    let root = std::path::absolute(&facts.settings.root).unwrap_or_else(|_| facts.settings.root.clone());
    Some(format!("{} ({})", root.display(), facts.settings.index))
}

fn tls(facts: &StartFacts<'_>) -> Option<String> {
    let certificates = facts.config.certificates.as_ref()?;
    let described = certificates
        .summaries()
        .zip(&certificates.pairs)
        .map(|(summary, pair)| format!("{summary} ({})", names::source(facts.settings, &pair.chain.path)));
    let waited = facts.config.acme.as_ref().filter(|task| !task.has_certificate(certificates)).map(|task| {
        let (names, directory) = (task.settings.names.join(", "), &task.settings.directory);
        format!("{names} (waiting for {directory}; handshakes are refused until then)")
    });
    let summaries: Vec<_> = described.chain(waited).collect();
    let versions = match facts.settings.tls_preset {
        SecurityPreset::Modern => "1.3",
        SecurityPreset::Intermediate => "1.2 and 1.3",
    };
    let keys = match facts.signing {
        None if certificates.pairs.is_empty() => "there is no key yet".to_owned(),
        None => "each worker has the keys in its memory".to_owned(),
        Some(Some(signer)) if facts.user.is_some_and(|workers| workers.id != signer.id) => {
            format!("only a process of user {} has the keys", signer.name)
        }
        Some(_) => "only a process of its own, of the workers' user, has the keys: this stops memory disclosure, not \
                    code execution"
            .to_owned(),
    };
    Some(format!("{versions}: {}; {keys}", summaries.join("; ")))
}

fn members(facts: &StartFacts<'_>) -> Option<String> {
    let said = &facts.settings.members;
    let mut text = facts.accounts?.0.to_string();
    if let Some(sessions) = &said.sessions {
        let _ = write!(text, ", sessions in {}", without_password(sessions));
    }
    let _ = match said.protect.as_slice() {
        [] => write!(text, ", nothing is protected"),
        folders => write!(
            text,
            ", for them alone: {}",
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

fn engine(facts: &StartFacts<'_>) -> Option<String> {
    let plan = &facts.config.plan;
    let workers = if plan.workers == 1 { "1 worker".to_owned() } else { format!("{} workers", plan.workers) };
    let triggers =
        if plan.engine.model().triggers { format!(", trigger {}", plan.triggers) } else { String::new() };
    let method = match (plan.engine, plan.method) {
        (Engine::Libevent, Some(method)) => format!(" by {method}"),
        (Engine::Libevent, None) => {
            libevent_method().map(|method| format!(" by {method}")).unwrap_or_default()
        }
        _ => String::new(),
    };
    let dispatch = match (plan.dispatch, plan.bounds.pool_threads) {
        (Dispatch::Inline, _) => String::new(),
        (dispatch, 1) => format!(", dispatch {dispatch} (1 thread each)"),
        (dispatch, threads) => format!(", dispatch {dispatch} ({threads} threads each)"),
    };
    let reason = facts.config.reason.map(|why| format!(" (auto: {why})")).unwrap_or_default();
    let (engine, topology) = (plan.engine, plan.topology);
    Some(format!("{engine}{method}, topology {topology}, {workers}{dispatch}{triggers}{reason}"))
}

/// Transport and timer settings that differ from their defaults, for the record of measurements.
fn switches(facts: &StartFacts<'_>) -> Option<String> {
    const SHOWN: &[&str] = &[
        "write",
        "accept",
        "tcp-nodelay",
        "tcp-cork",
        "defer-accept",
        "fastopen",
        "linger",
        "notsent-lowat",
        "timer",
        "timer-update",
    ];
    let unusual = |name: &&str| facts.settings.unusual(name).map(|value| format!("{name} {value}"));
    let all: Vec<_> = SHOWN.iter().filter_map(unusual).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn files(facts: &StartFacts<'_>) -> Option<String> {
    let up_to = shown_size(facts.config.site.memory_up_to);
    match (facts.null, facts.config.plan.sender) {
        (Some(_), _) => None,
        _ if facts.settings.listen.iter().all(|entry| facts.settings.has_tls(entry)) => {
            Some(format!("up to {up_to} from memory, read beyond, and encrypted"))
        }
        (None, Sender::Auto) => Some(format!("auto: up to {up_to} from memory, sendfile beyond")),
        (None, sender) => Some(format!("{sender}, every one")),
    }
}

fn bounds(facts: &StartFacts<'_>) -> Option<String> {
    let plan = &facts.config.plan;
    let count = plan.bounds.connections;
    let connections = match plan.engine {
        Engine::Naive => "1 connection at once".to_owned(),
        Engine::Pool => {
            format!("{} connections at once, {} more wait", plan.bounds.pool_threads, plan.bounds.pool_queue)
        }
        _ if facts.settings.max_connections.is_some() => format!("{count} connections a worker"),
        Engine::Fork => format!("{count} connections, a process each"),
        Engine::Thread => format!("{count} connections, a thread each"),
        Engine::Select => format!(
            "{count} connections a worker (from {} descriptors, of which select watches those below {FD_SETSIZE})",
            facts.config.descriptors
        ),
        _ => format!("{count} connections a worker (from {} descriptors)", facts.config.descriptors),
    };
    let backlog = match facts.config.kernel_backlog {
        Some(kernel) => {
            format!("backlog {kernel} (net.core.somaxconn; {} was wished)", facts.settings.backlog)
        }
        None => format!("backlog {}", facts.settings.backlog),
    };
    let idle = shown_duration(facts.settings.limits.idle_timeout);
    let of_address = match facts.config.shares.as_ref().map(|shares| shares.connections) {
        Some(ConnectionBound::Explicit(bound) | ConnectionBound::Default(bound)) => {
            format!(", {bound} of one address")
        }
        Some(ConnectionBound::Unbounded) | None => String::new(),
    };
    Some(format!("{connections}{of_address}, {backlog}, idle {idle}"))
}

fn log(facts: &StartFacts<'_>) -> Option<String> {
    match (&facts.settings.access_log, facts.null) {
        (LogTarget::Off, _) | (_, Some(_)) => None,
        (LogTarget::Output, None) => Some(format!("standard output, {}", manner(facts.settings))),
        (LogTarget::File(path), None) => Some(format!("{}, {}", path.display(), manner(facts.settings))),
    }
}

fn manner(settings: &Settings) -> String {
    let Manner { format, mode, full, queue } = settings.log;
    let mut said = format!("{}, {}", name_of(LogFormat::WORDS, &format), name_of(Mode::WORDS, &mode));
    if mode == Mode::Async {
        let _ = write!(said, " ({} when {} wait)", name_of(Full::WORDS, &full), shown_size(queue as u64));
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
    if settings.log_compress {
        said += ", compressed";
    }
    said
}

fn user(facts: &StartFacts<'_>) -> Option<String> {
    const SAME: &str = "keeps the accounts, too: their isolation stops memory disclosure, not code execution";
    Some(match (facts.user, facts.accounts) {
        (None, None) => return None,
        (None, Some(_)) => format!("the user of this process {SAME}"),
        (Some(user), None) => format!("{} serves; the supervisor stays root", user.name),
        (Some(user), Some((_, Some(keeper)))) if keeper.id != user.id => {
            format!("{} serves, {} keeps the accounts; the supervisor stays root", user.name, keeper.name)
        }
        (Some(user), Some(_)) => format!("{} serves and {SAME}; the supervisor stays root", user.name),
    })
}

fn sandbox(facts: &StartFacts<'_>) -> String {
    if !facts.settings.sandbox {
        return "off: workers may make any system call".into();
    }
    let accounts = if facts.accounts.is_some() { ", the accounts to theirs" } else { "" };
    let signing = if facts.signing.is_some() { ", the signing process to its own" } else { "" };
    let files = match facts.files_limited {
        true => "to their roots and the log",
        false => "not to folders (this kernel has no Landlock)",
    };
    let engine = facts.config.plan.engine;
    format!("on: workers are held to the system calls of {engine}{accounts}{signing}, and {files}")
}

fn control(facts: &StartFacts<'_>) -> Option<String> {
    facts.control.map(|path| path.display().to_string())
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
        off.push(match facts.settings.lists_folders() {
            false => "folder listings, dotfiles and links that leave the root (for safety)",
            true => "dotfiles and links that leave the root (for safety)",
        });
    }
    if facts.config.certificates.is_none() {
        off.push("TLS (tls off)");
    }
    Some(off.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::given::GivenSettings;

    fn said(flags: &[(&'static str, &str)]) -> String {
        let flags = flags.iter().map(|(name, value)| (*name, vec![(*value).to_owned()])).collect();
        let settings = GivenSettings { flags, ..GivenSettings::default() }.resolve().expect("legal");
        let config = ResolvedConfig::resolve(&settings, 1024).expect("it can be done");
        let addresses: Vec<_> = settings.addresses().cloned().collect();
        block(
            &StartFacts {
                settings: &settings,
                config: &config,
                addresses: &addresses,
                accounts: None,
                user: None,
                signing: None,
                control: Some(Path::new("/run/tenfold.sock")),
                null: None,
                files_limited: false,
            },
            false,
        )
    }

    #[test]
    fn the_start_says_where_what_and_how() {
        let flags = [("root", "/srv/site"), ("engine", "epoll"), ("workers", "1"), ("backlog", "64")];
        let said = said(&flags);
        let (first, rest) = said.split_once('\n').expect("several lines");
        assert!(first.starts_with("tenfold 0."), "{first}");
        assert_eq!(
            rest,
            "  serves   http://127.0.0.1:8080/\n\
             \x20 root     /srv/site (index.html)\n\
             \x20 engine   epoll, topology single, 1 worker, trigger lt+et\n\
             \x20 files    auto: up to 32 KiB from memory, sendfile beyond\n\
             \x20 bounds   663 connections a worker (from 1024 descriptors), backlog 64, idle 75s\n\
             \x20 log      standard output, combined, buffered\n\
             \x20 sandbox  on: workers are held to the system calls of epoll, and not to folders (this kernel has \
             no Landlock)\n\
             \x20 control  /run/tenfold.sock\n\
             \x20 off      folder listings, dotfiles and links that leave the root (for safety), \
             TLS (tls off)\n"
        );
    }

    #[test]
    fn h78_the_start_tells_how_far_the_accounts_are_isolated() {
        let settings = GivenSettings::default().resolve().expect("legal");
        let config = ResolvedConfig::resolve(&settings, 1024).expect("it can be done");
        let url = "sqlite:members.db".parse().expect("a legal URL");
        let named = |name: &str, id| SystemUser { name: name.into(), id, group: id, groups: vec![id] };
        let (web, keeper) = (named("web", 1), named("keeper", 2));
        let said = |user, accounts| {
            let accounts = Some((&url, accounts));
            let (settings, config) = (&settings, &config);
            let facts = StartFacts {
                settings,
                config,
                addresses: &[],
                accounts,
                user,
                signing: None,
                control: None,
                null: None,
                files_limited: false,
            };
            super::user(&facts).expect("there are accounts")
        };
        let limit = "their isolation stops memory disclosure, not code execution";
        assert!(said(None, None).contains(limit));
        assert!(said(Some(&web), Some(&web)).contains(limit));
        assert_eq!(
            said(Some(&web), Some(&keeper)),
            "web serves, keeper keeps the accounts; the supervisor stays root"
        );
    }

    #[test]
    fn switches_are_said_where_they_are_not_what_they_usually_are() {
        let flags = [("tcp-nodelay", "off"), ("write", "split"), ("accept", "all"), ("engine", "epoll")];
        let said = said(&flags);
        assert!(said.contains("\n  switches write split, tcp-nodelay off\n"), "{said}");
    }

    #[test]
    fn auto_says_what_it_chose_and_why() {
        let said = said(&[]);
        assert!(said.contains("  engine   epoll, topology "), "{said}");
        assert!(said.contains("(auto: small responses cost the same as on uring, and large files"), "{said}");
    }

    #[test]
    fn listings_are_off_only_if_no_path_has_them() {
        let off = |flags: &[_]| said(flags).lines().last().expect("several lines").to_owned();
        assert!(off(&[]).contains("folder listings, dotfiles"));
        assert!(!off(&[("listing", "html")]).contains("listings"));
        assert!(off(&[("listing", "json")]).contains("  off      dotfiles and links"));
    }

    #[test]
    fn every_address_of_the_machine_is_said_to_be_that() {
        let said = said(&[("listen", "0.0.0.0:80"), ("access-log", "off")]);
        assert!(
            said.contains("http://127.0.0.1:80/ and every other address of this machine (0.0.0.0:80)"),
            "{said}"
        );
        assert!(said.contains("access log (access-log off)"), "{said}");
    }
}
