//! The part of the start block that `-v` adds: engine, bounds, sandbox and control socket.

use tenfold_engine::{Dispatch, Engine, Sender, libevent_method};
use tenfold_sys::select::FD_SETSIZE;
use tenfold_tls::connection::KernelUse;

use super::facts::StartFacts;
use crate::admission::ConnectionBound;
use crate::config::parse::units::{shown_duration, shown_size};
use crate::config::resolve::kernel_tls::KernelTls;
use crate::sandbox::CONFINES;

/// The lines, by name.
pub(super) fn lines(facts: &StartFacts<'_>) -> [(&'static str, Option<String>); 10] {
    [
        ("process", Some(std::process::id().to_string())),
        ("engine", engine(facts)),
        ("switches", switches(facts)),
        ("files", files(facts)),
        ("bounds", bounds(facts)),
        ("versions", versions(facts)),
        ("keys", keys(facts)),
        ("records", records(facts)),
        ("sandbox", Some(sandbox(facts))),
        ("control", control(facts)),
    ]
}

/// The number of workers, in words.
pub(crate) fn workers(count: usize) -> String {
    format!("{count} worker{}", if count == 1 { "" } else { "s" })
}

/// The versions of HTTP, if clients do not get both.
fn versions(facts: &StartFacts<'_>) -> Option<String> {
    let settings = facts.settings;
    let reason = settings.http2_excludes().unwrap_or("http2 off");
    (!settings.http2()).then(|| format!("HTTP/1.1 only, because of {reason}"))
}

fn engine(facts: &StartFacts<'_>) -> Option<String> {
    let plan = &facts.config.plan;
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
    Some(format!(
        "{engine}{method}, topology {topology}, {}{dispatch}{triggers}{reason}",
        workers(plan.workers)
    ))
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
    ];
    let unusual = |name: &&str| facts.settings.unusual(name).map(|value| format!("{name} {value}"));
    let all: Vec<_> = SHOWN.iter().filter_map(unusual).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

fn files(facts: &StartFacts<'_>) -> Option<String> {
    let from_memory = match facts.config.site.memory_up_to {
        0 => String::new(),
        up_to => format!("up to {} from memory; others ", shown_size(up_to)),
    };
    match (facts.null, facts.config.plan.sender) {
        (Some(_), _) => None,
        _ if facts.config.kernel_tls.used().is_none()
            && facts.settings.listen.iter().all(|entry| facts.settings.has_tls(entry)) =>
        {
            Some(format!("{from_memory}read and encrypted"))
        }
        (None, Sender::Auto) => Some(format!("auto: {from_memory}by sendfile")),
        (None, sender) => Some(format!("{sender} for every file")),
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
        _ if plan.waits_in_select() => format!(
            "{count} connections a worker (from {} descriptors, of which select watches those below {FD_SETSIZE})",
            facts.config.descriptors
        ),
        _ => format!("{count} connections a worker (from {} descriptors)", facts.config.descriptors),
    };
    let backlog = match facts.config.kernel_backlog {
        Some(kernel) => {
            format!("backlog {kernel} (net.core.somaxconn; {} was requested)", facts.settings.backlog)
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

fn keys(facts: &StartFacts<'_>) -> Option<String> {
    let certificates = facts.config.certificates.as_ref()?;
    Some(match facts.signing {
        None if certificates.pairs.is_empty() => "there is no key yet".to_owned(),
        None => "each worker has the keys in its memory".to_owned(),
        Some(Some(signer)) if facts.user.is_some_and(|workers| workers.id != signer.id) => {
            format!("only a process of user {} has the keys", signer.name)
        }
        Some(_) => "only a process of its own, of the workers' user, has the keys: this stops memory disclosure, not \
                    code execution"
            .to_owned(),
    })
}

/// The side that encrypts sent records: the workers or the kernel.
fn records(facts: &StartFacts<'_>) -> Option<String> {
    match &facts.config.kernel_tls {
        KernelTls::Off => None,
        KernelTls::Missing(why) => Some(format!("encrypted by the workers (tls-kernel auto: {why})")),
        KernelTls::Used(KernelUse { rekeys, .. }) => {
            let keys = if *rekeys {
                ""
            } else {
                "; it cannot change keys, so a request for others ends a connection"
            };
            Some(format!("encrypted by the kernel, on connections of TLS 1.3{keys}"))
        }
    }
}

fn sandbox(facts: &StartFacts<'_>) -> String {
    if !CONFINES {
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
