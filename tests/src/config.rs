//! All legal configurations, from the table of models.

use std::fmt;

use tenfold_engine::{Bounds, Dispatch, Driver, Engine, MODELS, Plan, Sender, Topology, Triggers, probe};

use crate::seal::certificate_folder;

/// The default number of threads of a pool.
pub const POOL_THREADS: usize = 16;

/// The number of workers in topologies with several.
pub const WORKERS: usize = 2;

/// Representative engines for cases about topologies, because the driver implements topologies, not the engine.
pub const EVERY_TOPOLOGY: [Engine; 2] = [Engine::Epoll, Engine::Uring];

/// Representative engines for TLS and long cases: one for each driver.
const EACH_DRIVER: [Engine; 3] = [Engine::Thread, Engine::Epoll, Engine::Uring];

/// On other engines, one of this number of cases runs through TLS.
const TLS_SAMPLE: usize = 3;

/// Engines over a library, which a build may lack. The rest of their code is their driver's, so two topologies are
/// enough, except for a long comparison.
const LIBRARIES: [Engine; 3] = [Engine::Libevent, Engine::Asio, Engine::AsioProactor];

/// The configuration of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// The I/O model.
    pub engine: Engine,
    /// The relation of workers to listening sockets.
    pub topology: Topology,
    /// The mechanism that sends files.
    pub sender: Sender,
    /// The threads that serve a connection.
    pub dispatch: Dispatch,
    /// The triggers, unless they are the default.
    pub triggers: Option<Triggers>,
    /// Whether connections use TLS.
    pub tls: bool,
}

/// The configurations of a case. `TENFOLD_TEST_ALL=1` extends them to all that the case may concern. Cases about a
/// single engine are not extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breadth {
    /// Every topology and every trigger with the first sender, and every sender in the first topology.
    Every,
    /// Every engine with every sender, in its first topology.
    Senders,
    /// Every engine in its first topology, and the engines of [`EVERY_TOPOLOGY`] in each; with the first sender.
    Topologies,
    /// Every engine with every sender, in its first topology. `TENFOLD_TEST_REQUESTS` requests a long comparison in
    /// every topology, without TLS.
    Compared,
    /// Every engine once.
    Engines,
    /// The engines of [`EACH_DRIVER`] once, and all engines with `TENFOLD_TEST_ALL`: cases of several seconds.
    Drivers,
    /// Every engine that may serve an unlimited number of concurrent connections, once.
    Concurrent,
    /// Every engine with a loop, once.
    LoopsOnce,
    /// Every engine in topologies with several processes.
    Processes,
    /// Every engine with triggers, with each pair of triggers, in its first topology.
    Triggers,
    /// Every engine that can have a pool for its connections, with each kind of pool.
    Dispatches,
    /// Only `epoll`, once.
    Epoll,
    /// Only `uring`, once.
    Uring,
}

impl Config {
    /// The first configuration of an engine: first topology, first sender, default triggers.
    pub fn of(engine: Engine) -> Config {
        let model = engine.model();
        Config {
            engine,
            topology: model.topologies[0],
            sender: model.senders[0],
            dispatch: Dispatch::Inline,
            triggers: None,
            tls: false,
        }
    }

    /// Every legal configuration without TLS, in the order of the table.
    pub fn all() -> Vec<Config> {
        let mut all = Vec::new();
        for model in MODELS.iter().filter(|model| there(model.engine)) {
            for &topology in Topology::ALL {
                for &sender in Sender::ALL {
                    let others =
                        Triggers::ALL.into_iter().filter(|triggers| *triggers != Triggers::default());
                    for triggers in [None].into_iter().chain(others.map(Some)) {
                        let inline = Config { topology, sender, triggers, ..Config::of(model.engine) };
                        let dispatched = Dispatch::ALL.iter().map(|&dispatch| Config { dispatch, ..inline });
                        all.extend(dispatched.filter(|config| config.plan().is_ok() && config.is_worth_it()));
                    }
                }
            }
        }
        all
    }

    /// A pool is tested only in the first topology and with the first sender, because it does not depend on them.
    fn is_worth_it(&self) -> bool {
        let model = self.engine.model();
        let first = self.topology == model.topologies[0] && self.sender == model.senders[0];
        self.dispatch == Dispatch::Inline || first
    }

    /// Whether the case with this number runs on it. Through TLS, an engine that does not represent its driver runs a
    /// sample of them; one with the next number runs another sample.
    pub fn samples(&self, case: usize) -> bool {
        let represented = !self.tls || EACH_DRIVER.contains(&self.engine);
        represented || everything() || (case + self.engine as usize).is_multiple_of(TLS_SAMPLE)
    }

    /// The same over TLS.
    pub fn over_tls(self) -> Config {
        Config { tls: true, ..self }
    }

    /// Its plan, if it is legal.
    pub fn plan(&self) -> Result<Plan, String> {
        let workers = Some(self.workers());
        let plan = Plan::new(
            self.engine,
            Some(self.topology),
            workers,
            self.sender,
            self.triggers,
            Bounds::default(),
        );
        plan?.with_dispatch(self.dispatch)
    }

    /// The number of processes that serve.
    pub fn processes(&self) -> usize {
        self.plan().map_or(0, |plan| plan.processes())
    }

    /// The number of workers on its command line.
    pub fn workers(&self) -> usize {
        if self.topology == Topology::Single { 1 } else { WORKERS }
    }

    /// Whether the server serves one connection at a time, so that cases take turns.
    pub fn serial(&self) -> bool {
        self.at_once() == Some(1)
    }

    /// The most concurrent connections, if this is a small number. Other connections wait.
    pub fn at_once(&self) -> Option<usize> {
        match self.engine.model().name {
            "naive" => Some(1),
            "pool" => Some(POOL_THREADS),
            _ => None,
        }
    }

    /// Whether it locks much memory, so that a second server may exceed the user's limit (RLIMIT_MEMLOCK): rings, and
    /// zero-copy sends.
    pub fn locks_memory(&self) -> bool {
        self.engine == Engine::Uring && self.sender == Sender::Zerocopy
    }

    /// Whether a loop submits its sends. Up to 128 KiB of sends are in flight while it continues.
    pub fn submits(&self) -> bool {
        matches!(self.engine, Engine::Uring | Engine::AsioProactor)
    }

    /// Whether each connection has its own process.
    pub fn process_per_connection(&self) -> bool {
        self.engine == Engine::Fork
    }

    /// Its flags.
    pub fn flags(&self) -> Vec<String> {
        let mut flags = vec!["--engine".into(), self.engine.to_string()];
        flags.extend(["--topology".into(), self.topology.to_string()]);
        if self.workers() > 1 {
            flags.extend(["--workers".into(), self.workers().to_string()]);
        }
        let encrypts = self.tls;
        // Other senders are refused.
        let sender = if encrypts { Sender::Auto } else { self.sender };
        flags.extend(["--send".into(), sender.to_string()]);
        if self.dispatch != Dispatch::Inline {
            flags.extend(["--dispatch".into(), self.dispatch.to_string()]);
        }
        if self.sender == Sender::Zerocopy && rustix::process::geteuid().is_root() {
            // Memory of pending sends counts as locked memory of the user, and rings need locked memory.
            let user = if self.engine == Engine::Uring { "bin" } else { "daemon" };
            flags.extend(["--user".into(), user.into()]);
        }
        if let Some(triggers) = self.triggers {
            flags.extend(["--trigger".into(), triggers.to_string()]);
        }
        if self.tls {
            for (flag, name) in [("--tls-certificate", "cert.pem"), ("--tls-key", "key.pem")] {
                flags.extend([flag.into(), certificate_folder().join(name).display().to_string()]);
            }
        }
        flags
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}+{}", self.engine, self.topology, self.sender)?;
        if self.dispatch != Dispatch::Inline {
            write!(f, "+{}", self.dispatch)?;
        }
        if let Some(triggers) = self.triggers {
            write!(f, "+{triggers}")?;
        }
        f.write_str(if self.tls { "+tls" } else { "" })
    }
}

/// Whether this build has the engine; CI builds have all of them (`TENFOLD_LIBRARIES=require`).
fn there(engine: Engine) -> bool {
    !LIBRARIES.contains(&engine) || probe(engine).is_ok()
}

/// Whether cases run in a topology of an engine.
fn tried(engine: Engine, topology: Topology) -> bool {
    !LIBRARIES.contains(&engine) || everything() || [Topology::Single, Topology::Threads].contains(&topology)
}

/// Whether a long comparison of all configurations is requested.
fn compares() -> bool {
    std::env::var_os("TENFOLD_TEST_REQUESTS").is_some()
}

/// Whether all long cases are requested: `TENFOLD_TEST_ALL=1`.
pub fn everything() -> bool {
    std::env::var_os("TENFOLD_TEST_ALL").is_some_and(|value| value == "1")
}

impl Breadth {
    /// Whether a case of this breadth runs on `config`. TLS is combined with engines only, because it reads files itself.
    /// With `TENFOLD_TEST_ALL` it is also combined with topologies and triggers.
    pub fn covers(self, config: &Config) -> bool {
        let model = config.engine.model();
        let first_topology = config.topology == model.topologies[0];
        let first_sender = config.sender == model.senders[0];
        let default_triggers = config.triggers.is_none();
        let excluded = match self {
            Breadth::Concurrent => config.at_once().is_some(),
            Breadth::LoopsOnce => model.driver == Driver::Blocking,
            Breadth::Drivers => !everything() && !EACH_DRIVER.contains(&config.engine),
            Breadth::Processes => config.processes() == 1,
            Breadth::Triggers => !model.triggers,
            Breadth::Dispatches => config.dispatch == Dispatch::Inline,
            Breadth::Epoll => config.engine != Engine::Epoll || config.dispatch != Dispatch::Inline,
            Breadth::Uring => config.engine != Engine::Uring,
            _ => false,
        };
        if excluded {
            return false;
        }
        // TLS does the sending itself, so a sender is as good as another.
        if config.tls && !first_sender {
            return false;
        }
        if everything() {
            let plain = first_sender && !config.tls;
            match self {
                Breadth::Every
                | Breadth::Senders
                | Breadth::Compared
                | Breadth::Concurrent
                | Breadth::Processes => return true,
                Breadth::Topologies => return plain && default_triggers,
                Breadth::Triggers => return plain,
                Breadth::Engines
                | Breadth::Drivers
                | Breadth::LoopsOnce
                | Breadth::Dispatches
                | Breadth::Epoll
                | Breadth::Uring => {}
            }
        }
        if self == Breadth::Compared && compares() {
            return default_triggers && !config.tls;
        }
        if !tried(config.engine, config.topology) {
            return false;
        }
        if config.dispatch != Dispatch::Inline && config.engine != Engine::Epoll {
            // `epoll` has the same driver and runs all cases.
            let smoke = [Breadth::Compared, Breadth::Concurrent, Breadth::Dispatches].contains(&self);
            return smoke && default_triggers && !config.tls;
        }
        if config.locks_memory() && self == Breadth::Every {
            // Many concurrent rings exceed the user's limit of locked memory.
            return false;
        }
        // The readiness driver, or the library, sends the files.
        let own_sender =
            first_sender || !LIBRARIES.contains(&config.engine) || model.driver == Driver::Completion;
        match self {
            Breadth::Every | Breadth::Senders | Breadth::Compared if config.tls => {
                first_topology && first_sender && default_triggers
            }
            Breadth::Every if LIBRARIES.contains(&config.engine) => default_triggers && first_sender,
            Breadth::Every if config.dispatch != Dispatch::Inline => {
                default_triggers && (first_sender || first_topology)
            }
            Breadth::Every => first_sender || first_topology && default_triggers,
            Breadth::Senders | Breadth::Compared => first_topology && default_triggers && own_sender,
            Breadth::Topologies | Breadth::Processes => {
                let topology = first_topology || EVERY_TOPOLOGY.contains(&config.engine);
                topology && first_sender && default_triggers && !config.tls
            }
            Breadth::Engines | Breadth::Drivers | Breadth::LoopsOnce => {
                first_topology && first_sender && default_triggers
            }
            Breadth::Concurrent | Breadth::Epoll | Breadth::Uring | Breadth::Dispatches => {
                first_topology && first_sender && default_triggers && !config.tls
            }
            Breadth::Triggers => first_topology && first_sender && !config.tls,
        }
    }
}
