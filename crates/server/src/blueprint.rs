//! What will run, worked out from settings and from what this system allows, before anything is opened.

use tenfold_engine::{Bounds, Driver, Engine, MODELS, Plan, Sender, TimerKind, TimerUpdate, Topology};
use tenfold_sys::limits;
use tenfold_sys::select::FD_SETSIZE;
use tenfold_sys::socket::{ListenAddress, ListenOptions};

use crate::log::Mode;
use crate::settings::tables::SiteTable;
use crate::settings::{EngineChoice, LogTarget, Rotate, Settings};

/// What will run.
#[derive(Clone, Debug)]
pub(crate) struct Blueprint {
    pub(crate) plan: Plan,
    /// Why this engine, where the server chose.
    pub(crate) reason: Option<&'static str>,
    /// What is served where no host is named that has a site of its own.
    pub(crate) site: tenfold_site::Settings,
    /// The sites of hosts, in the order of the configuration.
    pub(crate) hosts: Vec<tenfold_site::Settings>,
    pub(crate) options: ListenOptions,
    /// What the kernel makes of the backlog, where that is less than asked for by default.
    pub(crate) kernel_backlog: Option<u64>,
    pub(crate) descriptors: u64,
}

/// Descriptors of a process that are no connections: standard streams, log, sockets, epoll and events.
const OWN_DESCRIPTORS: u64 = 32;
/// Processes or threads at once of a model that makes one per connection, where nobody says how many.
const CONNECTION_PROCESSES: u64 = 1024;

impl Blueprint {
    /// Works it out for a process that may have so many `descriptors`.
    ///
    /// # Errors
    /// In words: a combination that makes no sense, or more than the system gives.
    pub(crate) fn draw(settings: &Settings, descriptors: u64) -> Result<Blueprint, String> {
        let (engine, reason) = match settings.engine {
            EngineChoice::Named(engine) => (engine, None),
            EngineChoice::Auto => choose(|engine| tenfold_engine::probe(engine).is_ok()),
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
        refuse_what_is_for_others(settings, engine)?;
        refuse_logs_that_can_not_be(settings, engine)?;
        refuse_bounds_of_nothing(settings)?;
        plan.timer = settings.timer.unwrap_or(TimerKind::Wheel);
        plan.timer_update = settings.timer_update.unwrap_or(TimerUpdate::Lazy);
        if settings.is_explicit("handoff-queue") && plan.topology != Topology::Handoff {
            return Err(format!("handoff-queue is for topology handoff, not {}", plan.topology));
        }
        plan.bounds.handoff_queue = settings.handoff_queue;
        plan.bounds.busy_sleep = settings.busy_sleep;
        plan.bounds.pool_threads = settings.pool_threads;
        plan.bounds.pool_queue = pool_queue(settings, &plan, descriptors)?;
        let site = site(settings, &plan, descriptors);
        let hosts = settings.hosts.iter().map(|host| host_site(settings, host, &site)).collect();
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
            _ => Ok(Blueprint { plan, reason, site, hosts, options, kernel_backlog, descriptors }),
        }
    }
}

/// Which engines have a use for a setting.
type Uses = fn(Engine) -> bool;

/// Settings that only some engines have a use for.
const FOR_SOME: &[(&str, Uses)] = &[
    ("pool-threads", |engine| engine == Engine::Pool),
    ("pool-queue", |engine| engine == Engine::Pool),
    ("busy-sleep", |engine| engine == Engine::Busy),
    // Calls that wait have their deadline in the socket.
    ("timer", |engine| engine.model().driver != Driver::Blocking),
    ("timer-update", |engine| engine.model().driver != Driver::Blocking),
    // One serves one; the other is bounded by its threads and its queue.
    ("max-connections", |engine| !matches!(engine, Engine::Naive | Engine::Pool)),
    ("max-connections-per-address", |engine| engine != Engine::Naive),
];

/// A switch that is accepted does something.
fn refuse_what_is_for_others(settings: &Settings, engine: Engine) -> Result<(), String> {
    let idle = FOR_SOME.iter().find(|(name, uses)| settings.is_explicit(name) && !uses(engine));
    let Some((name, uses)) = idle else { return Ok(()) };
    let able: Vec<_> = MODELS.iter().filter(|model| uses(model.engine)).map(|model| model.name).collect();
    let are = if able.len() == 1 { "engine" } else { "engines" };
    Err(format!("{name} is for {are} {}, not {engine}", able.join(", ")))
}

/// A bound that bounds nothing, or that leaves no room for another.
fn refuse_bounds_of_nothing(settings: &Settings) -> Result<(), String> {
    let (connections, requests) = (settings.max_connections_per_address, settings.max_requests_per_address);
    let unix = |address: &&ListenAddress| matches!(address, ListenAddress::Unix(_));
    match (settings.max_rate, settings.limits.min_rate) {
        _ if requests.is_none() && settings.is_explicit("request-burst") => {
            Err("request-burst is for max-requests-per-address, which is off".into())
        }
        _ if connections.or(requests).is_none() && settings.is_explicit("max-addresses") => Err(
            "max-addresses is for max-connections-per-address and max-requests-per-address, which are off"
                .into(),
        ),
        (Some(most), least) if most <= least => Err(format!(
            "max-rate is {most} and min-rate {least}: nobody could keep both; raise one or lower the other"
        )),
        (Some(_), _) if let Some(address) = settings.listen.iter().find(unix) => {
            Err(format!("max-rate is for TCP, and {address} is none"))
        }
        _ => Ok(()),
    }
}

fn refuse_logs_that_can_not_be(settings: &Settings, engine: Engine) -> Result<(), String> {
    let is_async = settings.log.mode == Mode::Async;
    match () {
        () if is_async && engine == Engine::Fork => Err(
            "log-mode async does not go with engine fork: a child that ends with its connection has no use for a \
             thread; take sync or buffered"
                .into(),
        ),
        () if settings.is_explicit("log-full") && !is_async => {
            Err("log-full is for log-mode async: the others have no queue".into())
        }
        () if settings.log_rotate != Rotate::Off && settings.access_log == LogTarget::Output => {
            Err("log-rotate is for an access log that is a file: standard output can not be renamed".into())
        }
        () => Ok(()),
    }
}

/// The model that `auto` stands for, and why. What was measured: `epoll` and `uring` are within each other's
/// spread at small responses on connections that stay; `uring` is cheaper for each new connection, and has no
/// operation that sends a file.
fn choose(runs: impl Fn(Engine) -> bool) -> (Engine, Option<&'static str>) {
    let (engine, why) = match () {
        () if runs(Engine::Epoll) => (
            Engine::Epoll,
            "small responses cost the same as on uring, and large files leave without a detour",
        ),
        () if runs(Engine::Uring) => (Engine::Uring, "this system has no epoll, and it has io_uring"),
        () => (Engine::Poll, "this system has neither epoll nor io_uring, and poll is everywhere"),
    };
    (engine, Some(why))
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
        policies: settings.site.policies(),
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
    let stores =
        if plan.engine == Engine::Pool { plan.bounds.pool_threads as u64 } else { workers_per_process(plan) };
    let share = descriptors / 4 / stores;
    site.open_files = site.open_files.min(usize::try_from(share).unwrap_or(usize::MAX)).max(1);
    // What a worker remembers is bounded whatever it serves: hosts share it.
    let sites = 1 + settings.hosts.len();
    site.cache_bytes /= sites;
    site.cache_entries = (site.cache_entries / sites).max(1);
    site.open_files = (site.open_files / sites).max(1);
    site
}

/// The site of a host: as the first one, but for what the host says itself.
fn host_site(
    settings: &Settings,
    host: &SiteTable,
    first: &tenfold_site::Settings,
) -> tenfold_site::Settings {
    let host = settings.site.above(host);
    tenfold_site::Settings {
        policies: host.policies(),
        index: host.index.unwrap_or_else(|| settings.index.clone()),
        ..first.clone()
    }
}

/// Connections at once of each worker.
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
    let watched = (FD_SETSIZE as u64).saturating_sub(OWN_DESCRIPTORS) / workers;
    if plan.engine == Engine::Select && watched == 0 {
        return Err(format!(
            "engine select watches descriptors below {FD_SETSIZE}: too few for {workers} workers in one process"
        ));
    }
    if plan.engine == Engine::Pool {
        return Ok(plan.bounds.pool_threads + plan.bounds.pool_queue);
    }
    if let Some(asked) = settings.max_connections {
        return match asked as u64 {
            asked if plan.engine == Engine::Select && asked > watched => Err(format!(
                "max-connections is {asked}, but engine select watches descriptors below {FD_SETSIZE}: enough for \
                 {watched} in each worker; ask for less, or choose another engine"
            )),
            // The processes of `fork` have a limit each.
            asked if asked > possible && plan.engine != Engine::Fork => Err(format!(
                "max-connections is {asked}, but the descriptor limit of {descriptors} is enough for {possible} \
                 in each worker; raise it (ulimit -n), or ask for less"
            )),
            _ => Ok(asked),
        };
    }
    // A connection may be sending a file that is not among those kept open.
    let with_files = possible.saturating_sub(site.open_files as u64) / 2;
    let tasks = (limits::processes().unwrap_or(u64::MAX) / 2).min(CONNECTION_PROCESSES);
    let most = match plan.engine {
        Engine::Fork => possible.min(tasks),
        // Each thread keeps a file open beside the one that it sends.
        Engine::Thread => (possible / 3).min(tasks),
        Engine::Select => with_files.min(watched),
        _ => with_files,
    };
    Ok(usize::try_from(most.max(1)).unwrap_or(usize::MAX))
}

/// How many connections may wait for a thread of `pool`. Unless somebody says, no more than there are
/// descriptors for.
fn pool_queue(settings: &Settings, plan: &Plan, descriptors: u64) -> Result<usize, String> {
    let (threads, queue) = (settings.pool_threads, settings.pool_queue);
    let possible = descriptors.saturating_sub(OWN_DESCRIPTORS);
    // A thread has a connection, the file that it sends, and one that it keeps open.
    let left = usize::try_from(possible).unwrap_or(usize::MAX).saturating_sub(3 * threads);
    match settings.is_explicit("pool-queue") || settings.is_explicit("pool-threads") {
        _ if plan.engine != Engine::Pool => Ok(queue),
        false => Ok(queue.min(left).max(1)),
        true if left >= queue => Ok(queue),
        true => Err(format!(
            "pool-threads {threads} and pool-queue {queue} need {} descriptors, but the limit of {descriptors} \
             leaves {possible}; raise it (ulimit -n), or ask for less",
            3 * threads + queue
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Given;

    const DESCRIPTORS: u64 = 20_000;

    fn draw(words: &[(&'static str, &str)], descriptors: u64) -> Result<Blueprint, String> {
        let flags = words.iter().map(|(name, value)| (*name, vec![(*value).to_owned()])).collect();
        let settings = Given { flags, ..Given::default() }.resolve().expect("legal");
        Blueprint::draw(&settings, descriptors)
    }

    fn refusal(words: &[(&'static str, &str)], descriptors: u64) -> String {
        draw(words, descriptors).expect_err("it makes no sense")
    }

    #[test]
    fn what_an_engine_has_no_use_for_is_refused_with_those_that_have() {
        for (engine, name, value, said) in [
            ("epoll", "pool-threads", "4", "pool-threads is for engine pool, not epoll"),
            ("fork", "pool-queue", "4", "pool-queue is for engine pool, not fork"),
            ("poll", "busy-sleep", "2ms", "busy-sleep is for engine busy, not poll"),
            ("naive", "timer", "wheel", "timer is for engines busy, select, poll, epoll, uring, not naive"),
            (
                "thread",
                "timer-update",
                "eager",
                "timer-update is for engines busy, select, poll, epoll, uring, not thread",
            ),
            (
                "pool",
                "max-connections",
                "9",
                "max-connections is for engines fork, thread, busy, select, poll, epoll, uring, not pool",
            ),
        ] {
            assert_eq!(refusal(&[("engine", engine), (name, value)], DESCRIPTORS), said);
        }
    }

    #[test]
    fn auto_takes_what_the_system_allows_and_says_why() {
        assert_eq!(choose(|_| true).0, Engine::Epoll);
        assert_eq!(choose(|engine| engine != Engine::Epoll).0, Engine::Uring);
        let (last, why) = choose(|engine| !matches!(engine, Engine::Epoll | Engine::Uring));
        assert_eq!(last, Engine::Poll);
        assert!(why.is_some_and(|why| why.contains("neither epoll nor io_uring")));
    }

    #[test]
    fn logs_that_can_not_be_are_refused() {
        for (words, said) in [
            (
                [("engine", "fork"), ("log-mode", "async")],
                "log-mode async does not go with engine fork: a child that ends with its connection has no use for \
                 a thread; take sync or buffered",
            ),
            (
                [("log-mode", "sync"), ("log-full", "drop")],
                "log-full is for log-mode async: the others have no queue",
            ),
            (
                [("access-log", "-"), ("log-rotate", "daily")],
                "log-rotate is for an access log that is a file: standard output can not be renamed",
            ),
        ] {
            assert_eq!(refusal(&words, DESCRIPTORS), said);
        }
    }

    #[test]
    fn what_an_engine_has_a_use_for_arrives_in_its_plan() {
        let pool = [("engine", "pool"), ("pool-threads", "3"), ("pool-queue", "5")];
        let Bounds { pool_threads, pool_queue, connections, .. } =
            draw(&pool, DESCRIPTORS).expect("legal").plan.bounds;
        assert_eq!((pool_threads, pool_queue, connections), (3, 5, 8));
        let handoff =
            [("engine", "epoll"), ("topology", "handoff"), ("workers", "2"), ("handoff-queue", "7")];
        assert_eq!(draw(&handoff, DESCRIPTORS).expect("legal").plan.bounds.handoff_queue, 7);
        let single = [("engine", "epoll"), ("workers", "1"), ("handoff-queue", "7")];
        assert_eq!(refusal(&single, DESCRIPTORS), "handoff-queue is for topology handoff, not single");
        let busy = draw(&[("engine", "busy"), ("busy-sleep", "7ms")], DESCRIPTORS).expect("legal");
        assert_eq!(busy.plan.bounds.busy_sleep.as_millis(), 7);
        let timers = [("engine", "poll"), ("timer", "heap"), ("timer-update", "eager")];
        let plan = draw(&timers, DESCRIPTORS).expect("legal").plan;
        assert_eq!((plan.timer, plan.timer_update), (TimerKind::Heap, TimerUpdate::Eager));
    }

    #[test]
    fn select_has_as_many_connections_as_its_sets_have_room_for() {
        let select = |most| [("engine", "select"), ("workers", "1"), ("max-connections", most)];
        assert_eq!(draw(&select("992"), DESCRIPTORS).expect("legal").plan.bounds.connections, 992);
        assert_eq!(
            refusal(&select("993"), DESCRIPTORS),
            "max-connections is 993, but engine select watches descriptors below 1024: enough for 992 in each \
             worker; ask for less, or choose another engine"
        );
        let unsaid = draw(&select("1")[..2], DESCRIPTORS).expect("legal").plan.bounds.connections;
        assert_eq!(unsaid, 992);
    }

    #[test]
    fn a_pool_that_could_not_hold_its_connections_is_refused() {
        let unsaid = draw(&[("engine", "pool")], 1024).expect("legal").plan.bounds;
        assert_eq!((unsaid.pool_threads, unsaid.pool_queue), (16, 944));
        assert_eq!(
            refusal(&[("engine", "pool"), ("pool-queue", "1024")], 1024),
            "pool-threads 16 and pool-queue 1024 need 1072 descriptors, but the limit of 1024 leaves 992; raise it \
             (ulimit -n), or ask for less"
        );
    }
}
