//! What will run, worked out from settings and from what this system allows, before anything is opened.

use tenfold_engine::{Bounds, Engine, Plan, Sender, Topology};
use tenfold_sys::limits;
use tenfold_sys::socket::ListenOptions;

use crate::settings::{EngineChoice, Settings};

/// What will run.
#[derive(Clone, Debug)]
pub(crate) struct Blueprint {
    pub(crate) plan: Plan,
    /// Why this engine, where the server chose.
    pub(crate) reason: Option<&'static str>,
    pub(crate) site: tenfold_site::Settings,
    pub(crate) options: ListenOptions,
    /// What the kernel makes of the backlog, where that is less than asked for by default.
    pub(crate) kernel_backlog: Option<u64>,
    pub(crate) descriptors: u64,
}

/// Descriptors of a process that are no connections: standard streams, log, sockets, epoll and events.
const OWN_DESCRIPTORS: u64 = 32;
/// Processes at once of a model that makes one per connection, where nobody says how many.
const CONNECTION_PROCESSES: u64 = 1024;

impl Blueprint {
    /// Works it out for a process that may have so many `descriptors`.
    ///
    /// # Errors
    /// In words: a combination that makes no sense, or more than the system gives.
    pub(crate) fn draw(settings: &Settings, descriptors: u64) -> Result<Blueprint, String> {
        let (engine, reason) = match settings.engine {
            EngineChoice::Named(engine) => (engine, None),
            EngineChoice::Auto => choose(),
        };
        let sender = settings.send.unwrap_or(Sender::Auto);
        let workers = match (settings.workers, settings.topology) {
            (None, None) => most_workers(engine),
            (workers, _) => workers,
        };
        let plan = Plan::new(engine, settings.topology, workers, sender, settings.trigger, Bounds::default());
        let mut plan = plan.map_err(|why| {
            format!("{why} (engine, topology, workers, send and trigger: `tenfold engines --matrix` shows what goes together)")
        })?;
        let site = site(settings, &plan, descriptors);
        plan.bounds.connections = connections(settings, &plan, &site, descriptors)?;
        let options = ListenOptions {
            backlog: settings.backlog as i32,
            tcp_nodelay: settings.tcp_nodelay,
            defer_accept: settings.defer_accept,
            reuse_port: plan.sockets_per_address() > 1,
        };
        let kernel_backlog = limits::backlog().filter(|most| *most < u64::from(settings.backlog));
        match kernel_backlog {
            Some(most) if settings.is_explicit("backlog") => Err(format!(
                "backlog is {}, but this kernel keeps {most} at most; raise net.core.somaxconn, or ask for less",
                settings.backlog
            )),
            _ => Ok(Blueprint { plan, reason, site, options, kernel_backlog, descriptors }),
        }
    }
}

/// The model that `auto` stands for, and why.
fn choose() -> (Engine, Option<&'static str>) {
    if tenfold_engine::probe(Engine::Epoll).is_ok() {
        return (Engine::Epoll, Some("it serves many connections at once and every Linux has it"));
    }
    (Engine::Fork, Some("this system has no epoll, and a process per connection works everywhere"))
}

/// One worker per processor, where the model can have several.
fn most_workers(engine: Engine) -> Option<usize> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (engine.model().topologies.len() > 1).then(|| processors.min(Plan::MOST_WORKERS))
}

/// Workers that share the descriptors of a process.
fn workers_per_process(plan: &Plan) -> u64 {
    if plan.topology == Topology::ReuseportProcesses { 1 } else { plan.workers as u64 }
}

fn site(settings: &Settings, plan: &Plan, descriptors: u64) -> tenfold_site::Settings {
    let mut site = tenfold_site::Settings {
        index: settings.index.clone(),
        max_ranges: settings.max_ranges,
        ..Default::default()
    };
    // An explicit sender sends every file by its mechanism; memory is for `auto` only.
    if plan.sender != Sender::Auto {
        site.memory_up_to = 0;
    }
    // What each connection's own thread or process remembers is for that connection alone.
    if matches!(plan.engine, Engine::Fork | Engine::Thread) {
        (site.cache_bytes, site.cache_entries, site.open_files) = (1 << 20, 64, 1);
    }
    // Files that are kept open leave at least three quarters of the descriptors to connections.
    let share = descriptors / 4 / workers_per_process(plan);
    site.open_files = site.open_files.min(usize::try_from(share).unwrap_or(usize::MAX)).max(1);
    site
}

fn connections(
    settings: &Settings,
    plan: &Plan,
    site: &tenfold_site::Settings,
    descriptors: u64,
) -> Result<usize, String> {
    let workers = workers_per_process(plan);
    let possible = descriptors.saturating_sub(OWN_DESCRIPTORS) / workers;
    if possible == 0 {
        return Err(format!(
            "the descriptor limit of {descriptors} leaves none for connections; raise it (ulimit -n) above {}",
            OWN_DESCRIPTORS + workers
        ));
    }
    if let Some(asked) = settings.max_connections {
        // The processes of `fork` have a limit each.
        return match asked as u64 <= possible || plan.engine == Engine::Fork {
            true => Ok(asked),
            false => Err(format!(
                "max-connections is {asked}, but the descriptor limit of {descriptors} is enough for {possible} \
                 in each worker; raise it (ulimit -n), or ask for less"
            )),
        };
    }
    let most = match plan.engine {
        Engine::Fork => {
            possible.min(limits::processes().unwrap_or(u64::MAX) / 2).clamp(1, CONNECTION_PROCESSES)
        }
        // A connection may be sending a file that is not among those kept open.
        _ => (possible.saturating_sub(site.open_files as u64) / 2).max(1),
    };
    Ok(usize::try_from(most).unwrap_or(usize::MAX))
}
