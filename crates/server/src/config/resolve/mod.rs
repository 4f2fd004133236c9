//! The configuration of a generation of workers: the plan of the engine, its sites and its bounds.

mod capacity;
pub(crate) mod certificates;
pub(crate) mod kernel_tls;
mod shares;

use std::sync::Arc;

use tenfold_engine::{Accept, Bounds, Dispatch, Engine, Plan, Sender, TimerKind, Topology};
use tenfold_sys::limits;
use tenfold_sys::socket::{ListenAddress, ListenOptions};
use tenfold_tls::certificates::files::{KeyFile, LoadedCertificates};

use certificates::{AcmeTask, RunningTls};
use kernel_tls::KernelTls;

use crate::admission::AddressShares;
use crate::config::check;
use crate::config::values::{EngineChoice, ListenEntry, Settings};
use crate::diagnostics::warning;
use crate::sandbox;

/// The configuration of running workers, with every choice made.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedConfig {
    pub(crate) plan: Plan,
    /// The reason for the engine, if the server chose it.
    pub(crate) reason: Option<&'static str>,
    /// The site for requests whose host has no site of its own.
    pub(crate) site: tenfold_site::Settings,
    /// The sites of hosts, in the order of the configuration.
    pub(crate) hosts: Vec<tenfold_site::Settings>,
    pub(crate) options: ListenOptions,
    /// The kernel's bound on the backlog, if it is below the default.
    pub(crate) kernel_backlog: Option<u64>,
    pub(crate) descriptors: u64,
    /// [`Limits::open_files`](tenfold_http::Limits::open_files) of a process.
    pub(crate) open_files: usize,
    /// The bounds of one address; `None` without bounds.
    pub(crate) shares: Option<AddressShares>,
    /// The certificates; `None` without TLS.
    pub(crate) certificates: Option<Arc<LoadedCertificates>>,
    pub(crate) kernel_tls: KernelTls,
    /// The certificate that the ACME process obtains, if there is one.
    pub(crate) acme: Option<Arc<AcmeTask>>,
    /// The files of the keys, until the signing process has the keys; `None` if workers have the keys.
    pub(crate) keys: Option<Arc<Vec<KeyFile>>>,
}

impl ResolvedConfig {
    /// Resolves the settings for a process with at most this many `descriptors`.
    pub(crate) fn resolve(settings: &Settings, descriptors: u64) -> Result<ResolvedConfig, String> {
        Self::resolve_again(settings, descriptors, None)
    }

    /// Resolves the settings while workers with the certificates `running` serve.
    pub(crate) fn resolve_again(
        settings: &Settings,
        descriptors: u64,
        running: Option<&RunningTls>,
    ) -> Result<ResolvedConfig, String> {
        let (engine, reason) = match settings.engine {
            EngineChoice::Named(engine) => (engine, None),
            EngineChoice::Auto => automatic(settings.workers),
        };
        let sender = settings.send.unwrap_or(Sender::Auto);
        let workers = match (settings.workers, settings.topology) {
            (None, None) => most_workers(engine),
            (workers, _) => workers,
        };
        let topology = settings.topology.or_else(|| topology_of_passed(settings, engine, workers));
        let plan = Plan::new(engine, topology, workers, sender, settings.trigger, Bounds::default());
        let dispatch = settings.dispatch.unwrap_or(Dispatch::Inline);
        let plan = plan.and_then(|plan| plan.with_dispatch(dispatch));
        let mut plan = plan.map_err(|why| {
            format!(
                "{why} (engine, topology, workers, dispatch, send and trigger: `tenfold engines --matrix` lists \
                 the legal combinations)"
            )
        })?;
        if let Some(method) = settings.libevent_method {
            plan = plan.with_method(method, settings.trigger)?;
        }
        check::of(settings, &plan)?;
        let kernel_tls = kernel_tls::resolve(settings, &plan)?;
        plan.timer = settings.timer.unwrap_or(TimerKind::Wheel);
        plan.accept = settings.accept.unwrap_or(Accept::All);
        plan.cork = settings.tcp_cork;
        plan.confined = sandbox::CONFINES;
        plan.bounds.handoff_queue = settings.handoff_queue;
        plan.bounds.busy_sleep = settings.busy_sleep;
        plan.bounds.pool_threads = settings.pool_threads;
        // At most an eighth of the descriptors is for pipes, each of which has two.
        plan.bounds.pipes = plan.bounds.pipes.min(usize::try_from(descriptors / 16).unwrap_or(usize::MAX));
        plan.bounds.pool_queue = capacity::pool_queue(settings, &plan, descriptors)?;
        let site = capacity::site(settings, &plan, descriptors);
        let hosts = settings.hosts.iter().map(|host| capacity::host_site(settings, host, &site)).collect();
        plan.bounds.connections = capacity::connections(settings, &plan, &site, descriptors)?;
        let open_files = capacity::open_files(&plan, &site, descriptors);
        let shares = shares::of(settings, &plan);
        let (certificates, keys) = certificates::load(settings, running)?;
        let acme = certificates::task(settings)?.map(Arc::new);
        let options = ListenOptions {
            backlog: settings.backlog as i32,
            tcp_nodelay: settings.tcp_nodelay,
            defer_accept: settings.defer_accept,
            zerocopy: sender == Sender::Zerocopy,
            reuse_port: plan.sockets_per_address() > 1,
            fastopen: settings.fastopen,
            linger: settings.linger,
            notsent_lowat: settings.notsent_lowat,
        };
        let kernel_backlog = limits::backlog().filter(|most| *most < u64::from(settings.backlog));
        match kernel_backlog {
            Some(most) if settings.is_explicit("backlog") => Err(format!(
                "backlog is {}, but this kernel keeps {most} at most; raise net.core.somaxconn, or ask for less",
                settings.backlog
            )),
            _ => Ok(ResolvedConfig {
                plan,
                reason,
                site,
                hosts,
                options,
                kernel_backlog,
                descriptors,
                open_files,
                shares,
                certificates,
                kernel_tls,
                acme,
                keys,
            }),
        }
    }
}

/// Returns the engine that `auto` takes here with this number of workers, and the reason.
pub(crate) fn automatic(workers: Option<usize>) -> (Engine, Option<&'static str>) {
    choose(|engine| {
        tenfold_engine::probe(engine).is_ok() && may_lock(engine, workers, limits::locked_memory())
    })
}

/// The engine for `auto`, and the reason. Measured: `epoll` and `uring` do not differ significantly for small responses
/// on persistent connections. `uring` is cheaper for new connections, and has no operation that sends a file.
fn choose(runs: impl Fn(Engine) -> bool) -> (Engine, Option<&'static str>) {
    let (engine, why) = match () {
        () if runs(Engine::Epoll) => (
            Engine::Epoll,
            "small responses cost the same as on uring, and large files leave without a detour",
        ),
        () if runs(Engine::Uring) => {
            (Engine::Uring, "this system has no epoll, and it has io_uring, within its limits")
        }
        () => (
            Engine::Poll,
            "this system has neither epoll nor, within its limits, io_uring; poll is everywhere",
        ),
    };
    (engine, Some(why))
}

/// Whether workers of `engine` can lock the memory that they need. Root has no limit, but workers do not run as root.
fn may_lock(engine: Engine, workers: Option<usize>, most: Option<u64>) -> bool {
    let workers = workers.or_else(|| most_workers(engine)).unwrap_or(1);
    most.is_none_or(|most| engine.model().locked_bytes * workers as u64 <= most)
}

/// The topology of workers that share a passed TCP socket, because there is not one socket for each worker.
fn topology_of_passed(settings: &Settings, engine: Engine, workers: Option<usize>) -> Option<Topology> {
    let over_tcp = settings.addresses().any(|address| matches!(address, ListenAddress::Internet(_)));
    let shares = settings.passed && over_tcp && workers.is_some_and(|workers| workers > 1);
    let threads = engine.model().topologies.iter().find(|topology| **topology == Topology::Threads);
    threads.copied().filter(|_| shares)
}

/// One worker per processor, if the model can have several workers.
fn most_workers(engine: Engine) -> Option<usize> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (engine.model().topologies.len() > 1).then(|| processors.min(Plan::MOST_WORKERS))
}

/// Warns about legal but unwise settings.
pub(crate) fn warn(settings: &Settings, config: &ResolvedConfig) {
    for warning in config.certificates.iter().flat_map(|all| &all.warnings) {
        warning!("{warning}");
    }
    for warning in [open_passwords(settings), tls_on_http_port(settings)].into_iter().flatten() {
        warning!("{warning}");
    }
}

/// The warning if the port of plain HTTP has TLS: browsers then get 400 from `http://`.
fn tls_on_http_port(settings: &Settings) -> Option<String> {
    const HTTP: u16 = 80;
    let is_http = |entry: &&ListenEntry| {
        let port = matches!(entry.address, ListenAddress::Internet(at) if at.port() == HTTP);
        port && settings.has_tls(entry)
    };
    let address = &settings.listen.iter().find(is_http)?.address;
    Some(format!(
        "{address} has TLS, but browsers send plain HTTP to port {HTTP} and would get 400; write http:{address} in listen"
    ))
}

/// The warning if anyone on the network path can read passwords.
fn open_passwords(settings: &Settings) -> Option<String> {
    let is_open = |entry: &&ListenEntry| entry.address.is_off_loopback() && !settings.has_tls(entry);
    let entry = settings.listen.iter().find(is_open).filter(|_| settings.asks_for_passwords())?;
    let address = &entry.address;
    Some(format!(
        "basic authentication on {address} sends passwords unencrypted; set tls, or listen on 127.0.0.1 behind a proxy \
         with TLS"
    ))
}

#[cfg(test)]
mod tests;
