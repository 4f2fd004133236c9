//! The lists of configurations on which cases run. `cargo test -p tenfold-tests --test suite -- --list` prints each case
//! with its configurations.
//!
//! A case about the meaning of HTTP, rules, caching, logs or members runs on one engine of each driver: [`SEMANTICS`],
//! [`DRIVERS`], [`WORKERS`]. A case about a mechanism (to wait, accept, send, close or drain, and faults) runs on every
//! engine, topology and sender that it is about: [`ENGINES`], [`TOPOLOGIES`], [`SENDERS`], [`MECHANISMS`]. Deadlines,
//! limits, members, generations and hardening add [`ANOTHER`] engine, which the commit selects.
//!
//! `TENFOLD_TEST_TURN=17` selects the engines of [`ANOTHER`], and then a fifth of the configurations of each case.
//! Without it, a case runs on all configurations of its lists.
//! `TENFOLD_TEST_ALL=1` extends the lists.

use tenfold_engine::{Dispatch, Driver, Engine, Topology};

use crate::config::{Config, everything};
use crate::part::place;

/// A list, and its configurations on which a case runs.
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// The configurations.
    pub configs: fn() -> Vec<Config>,
    take: Take,
    /// The configurations with `TENFOLD_TEST_ALL=1`.
    extended: fn() -> Vec<Config>,
}

/// The configurations of a list on which a case runs.
#[derive(Clone, Copy, Debug)]
enum Take {
    /// All of them.
    Each,
    /// A single configuration, which depends on the case.
    One,
    /// A single configuration, which depends on the case and the turn.
    OneInTurn,
}

/// One engine of each driver.
pub const SEMANTICS: List = each(drivers, every);
/// One engine of each driver, through TLS. A case runs on one of them, always the same.
pub const ONE_TLS: List = List { take: Take::One, ..each(drivers_through_tls, every_through_tls) };
/// One engine of each driver, for cases with servers of their own.
pub const DRIVERS: List = each(drivers, engines);
/// One engine of each driver, in each of its topologies.
pub const WORKERS: List = each(workers, every_topology);
/// The engines that are not in [`DRIVERS`]. A case runs on one of them, which the commit selects.
pub const ANOTHER: List = in_turn(other_engines, none);
/// As [`ANOTHER`], without engines that serve few connections concurrently.
pub const ANOTHER_CONCURRENT: List = in_turn(other_concurrent, none);
/// Every engine. A case runs on one of them, which the commit selects.
pub const ANY: List = in_turn(engines, engines);

/// Every engine, and `epoll` with each kind of pool.
pub const ENGINES: List = each(engines, engines);
/// Every engine, and the engines of [`EVERY_TOPOLOGY`] in each topology.
pub const TOPOLOGIES: List = each(topologies, every_topology);
/// Every engine with each of its senders.
pub const SENDERS: List = each(senders, every);
/// Every engine with each of its topologies and triggers, and with each of its senders.
pub const MECHANISMS: List = each(mechanisms, every);
/// The layer over each driver.
pub const TLS: List = each(representatives_through_tls, every_through_tls);
/// The layer over other engines. A case runs on one of them, which the commit selects.
pub const ANOTHER_TLS: List = in_turn(others_through_tls, none);
/// As [`ANOTHER_TLS`], without engines that serve few connections concurrently.
pub const ANOTHER_CONCURRENT_TLS: List = in_turn(other_concurrent_through_tls, none);
/// Every engine with each of its senders and each kind of pool. `TENFOLD_TEST_REQUESTS` adds every topology.
pub const COMPARED: List = each(compared, every_compared);
/// Every engine that serves any number of concurrent connections.
pub const CONCURRENT: List = each(concurrent, every_concurrent);
/// Every engine with an event loop.
pub const LOOPS: List = each(loops, loops);
/// The engines of [`EVERY_TOPOLOGY`] with several serving processes.
pub const PROCESSES: List = each(processes, every_with_processes);
/// Every engine with triggers, with each pair of triggers.
pub const TRIGGERS: List = each(triggers, every_trigger);
/// Every engine with each kind of pool for its connections.
pub const DISPATCHES: List = each(dispatches, dispatches);
/// `epoll`.
pub const EPOLL: List = each(|| vec![Config::of(Engine::Epoll)], || vec![Config::of(Engine::Epoll)]);
/// `epoll`; with `TENFOLD_TEST_ALL=1` every engine. For clients that differ in nothing that depends on an engine.
pub const EPOLL_OR_ALL: List = each(|| vec![Config::of(Engine::Epoll)], engines);
/// `uring`.
pub const URING: List = each(|| vec![Config::of(Engine::Uring)], || vec![Config::of(Engine::Uring)]);
/// `fork` only.
pub const FORK: List = each(|| vec![Config::of(Engine::Fork)], || vec![Config::of(Engine::Fork)]);

/// One engine of each driver.
const REPRESENTATIVES: [Engine; 3] = [Engine::Thread, Engine::Epoll, Engine::Uring];

/// The engines that run in each topology, because drivers implement topologies, not engines.
pub const EVERY_TOPOLOGY: [Engine; 2] = [Engine::Epoll, Engine::Uring];

const fn each(configs: fn() -> Vec<Config>, extended: fn() -> Vec<Config>) -> List {
    List { configs, take: Take::Each, extended }
}

const fn in_turn(configs: fn() -> Vec<Config>, extended: fn() -> Vec<Config>) -> List {
    List { configs, take: Take::OneInTurn, extended }
}

impl List {
    /// The configurations of this case. Without a turn, the case runs on every configuration that a turn can select.
    pub fn of(&self, case: &str, turn: Option<usize>) -> Vec<Config> {
        if everything() {
            return (self.extended)();
        }
        let configs = (self.configs)();
        let one = |turn: usize| {
            let at = (place(case, configs.len()) + turn % configs.len()) % configs.len();
            vec![configs[at]]
        };
        match (self.take, turn) {
            (Take::Each, _) | (Take::OneInTurn, None) => configs,
            (Take::One, _) => one(0),
            (Take::OneInTurn, Some(turn)) => one(turn),
        }
    }
}

/// A fifth of the configurations of a case, at least one. The turn selects them: most turns differ.
pub(crate) fn fifth(configs: &[Config], case: &str, turn: usize) -> Vec<Config> {
    let first = place(&format!("{case} {turn}"), 5);
    let kept: Vec<Config> = configs.iter().skip(first).step_by(5).copied().collect();
    match configs.len() {
        0..5 => configs.get(first % configs.len().max(1)).copied().into_iter().collect(),
        _ => kept,
    }
}

/// The turn in `TENFOLD_TEST_TURN`; `None` if it is unset.
pub fn turn() -> Result<Option<usize>, String> {
    let Some(value) = std::env::var_os("TENFOLD_TEST_TURN") else { return Ok(None) };
    let turn = value.to_str().and_then(|text| text.parse().ok());
    turn.map(Some).ok_or_else(|| format!("TENFOLD_TEST_TURN: {} is not a number", value.display()))
}

fn pick(keep: impl Fn(&Config) -> bool) -> Vec<Config> {
    Config::all().iter().filter(|config| keep(config)).copied().collect()
}

fn through_tls(configs: Vec<Config>) -> Vec<Config> {
    configs.into_iter().map(Config::over_tls).collect()
}

fn none() -> Vec<Config> {
    Vec::new()
}

fn drivers() -> Vec<Config> {
    REPRESENTATIVES.map(Config::of).into()
}

fn drivers_through_tls() -> Vec<Config> {
    through_tls(drivers())
}

fn workers() -> Vec<Config> {
    pick(|config| {
        REPRESENTATIVES.contains(&config.engine) && !config.has_pool() && config.differs_in_topology()
    })
}

fn engines() -> Vec<Config> {
    pick(|config| config.has_defaults() && epoll_has_the_pool(config))
}

fn other_engines() -> Vec<Config> {
    engines().into_iter().filter(|config| !drivers().contains(config)).collect()
}

fn other_concurrent() -> Vec<Config> {
    other_engines().into_iter().filter(|config| config.at_once().is_none()).collect()
}

fn representatives_through_tls() -> Vec<Config> {
    let all = engines().into_iter();
    through_tls(all.filter(|config| REPRESENTATIVES.contains(&config.engine)).collect())
}

fn others_through_tls() -> Vec<Config> {
    let all = engines().into_iter();
    through_tls(all.filter(|config| !REPRESENTATIVES.contains(&config.engine)).collect())
}

fn other_concurrent_through_tls() -> Vec<Config> {
    others_through_tls().into_iter().filter(|config| config.at_once().is_none()).collect()
}

fn topologies() -> Vec<Config> {
    pick(|config| {
        let wanted = config.has_first_topology() || EVERY_TOPOLOGY.contains(&config.engine);
        wanted && config.differs_in_topology() && epoll_has_the_pool(config)
    })
}

fn senders() -> Vec<Config> {
    pick(|config| differs_in_sender(config) && epoll_has_the_pool(config))
}

/// The topologies of an engine with each of its triggers, and its senders. An engine over a library shares the rest of
/// its code with its driver.
fn mechanisms() -> Vec<Config> {
    pick(|config| match config.has_library() {
        true => !config.has_pool() && config.differs_in_topology() && in_topologies_of_libraries(config),
        // Many concurrent rings exceed the user's limit of locked memory.
        false if config.locks_memory() => false,
        false => {
            let differs = config.has_first_sender() || differs_in_sender(config);
            differs && epoll_has_the_pool(config) && (!config.has_pool() || config.triggers.is_none())
        }
    })
}

fn compared() -> Vec<Config> {
    let is_long = std::env::var_os("TENFOLD_TEST_REQUESTS").is_some();
    let compared = |config: &Config| match is_long {
        true => config.triggers.is_none(),
        false => differs_in_sender(config),
    };
    let layered = representatives_through_tls().into_iter().filter(|_| !is_long);
    pick(compared).into_iter().chain(layered).collect()
}

fn concurrent() -> Vec<Config> {
    engines().into_iter().filter(|config| config.at_once().is_none()).collect()
}

fn loops() -> Vec<Config> {
    engines().into_iter().filter(|config| config.engine.model().driver != Driver::Blocking).collect()
}

fn processes() -> Vec<Config> {
    topologies().into_iter().filter(|config| config.processes() > 1).collect()
}

fn triggers() -> Vec<Config> {
    every_trigger().into_iter().filter(|config| config.has_first_topology()).collect()
}

fn dispatches() -> Vec<Config> {
    pick(|config| config.has_pool() && config.has_defaults())
}

fn every() -> Vec<Config> {
    pick(|_| true)
}

fn every_through_tls() -> Vec<Config> {
    through_tls(pick(Config::has_first_sender))
}

fn every_compared() -> Vec<Config> {
    [every(), every_through_tls()].concat()
}

fn every_topology() -> Vec<Config> {
    pick(Config::differs_in_topology)
}

fn every_concurrent() -> Vec<Config> {
    pick(|config| config.at_once().is_none())
}

fn every_with_processes() -> Vec<Config> {
    pick(|config| config.processes() > 1)
}

fn every_trigger() -> Vec<Config> {
    pick(|config| config.engine.model().triggers && config.has_first_sender() && epoll_has_the_pool(config))
}

/// Pools are the same code in each readiness engine, and `epoll` runs all cases with them.
fn epoll_has_the_pool(config: &Config) -> bool {
    config.dispatch == Dispatch::Inline || config.engine == Engine::Epoll
}

/// Whether it differs from the defaults in its sender at most. The readiness driver, or the library, sends the files of
/// an engine over a library, so one sender is enough there.
fn differs_in_sender(config: &Config) -> bool {
    let own = config.engine.model().driver == Driver::Completion || !config.has_library();
    config.has_first_topology() && config.triggers.is_none() && (own || config.has_first_sender())
}

fn in_topologies_of_libraries(config: &Config) -> bool {
    [Topology::Single, Topology::Threads].contains(&config.topology)
}
