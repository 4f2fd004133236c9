//! Every configuration that is legal, from the table of models.

use std::fmt;

use tenfold_engine::{Bounds, Dispatch, Driver, Engine, MODELS, Plan, Sender, Topology, Triggers, probe};

/// Threads of a pool where nothing is said.
pub const POOL_THREADS: usize = 16;

/// Workers in the topologies that have several.
pub const WORKERS: usize = 2;

/// Engines that stand for their driver where a case is about topologies: what a topology does is the
/// driver's code, not the engine's.
pub const EVERY_TOPOLOGY: [Engine; 2] = [Engine::Epoll, Engine::Uring];

/// Engines over a library. A build can be without it; all else of them is their driver's, so that two topologies
/// are enough but for a long comparison.
const LIBRARIES: [Engine; 3] = [Engine::Libevent, Engine::Asio, Engine::AsioProactor];

/// What one server of the suite runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// The I/O model.
    pub engine: Engine,
    /// How workers stand to listening sockets.
    pub topology: Topology,
    /// How files are sent.
    pub sender: Sender,
    /// Who does the work of a connection.
    pub dispatch: Dispatch,
    /// The triggers, where they are not the default.
    pub triggers: Option<Triggers>,
    /// Whether the test layer stands between the protocol and the socket.
    pub layer: bool,
}

/// On how many configurations a case is worth its time. `TENFOLD_TEST_ALL=1` runs a case on all that it can be about;
/// what is stated of an engine as it is by itself stays with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breadth {
    /// Every topology and every trigger with the first sender, and every sender in the first topology.
    Every,
    /// Every engine with every sender, in its first topology.
    Senders,
    /// Every engine in its first topology, and the engines of [`EVERY_TOPOLOGY`] in each; with the first
    /// sender.
    Topologies,
    /// Every engine with every sender, in its first topology; in every topology where
    /// `TENFOLD_TEST_REQUESTS` asks for a long comparison, and then without the layer.
    Compared,
    /// Every engine once.
    Engines,
    /// Every engine that serves as many connections at once as it is allowed to, once.
    Concurrent,
    /// Every engine in topologies with several processes.
    Processes,
    /// Engines with triggers with each pair of them, in their first topology.
    Triggers,
    /// Engines that can have a pool for their connections, with each kind of it.
    Dispatches,
    /// `epoll` once, for what only it does.
    Epoll,
    /// `uring` once, for what only it does.
    Uring,
}

impl Config {
    /// The first of an engine: first topology, first sender, default triggers.
    pub fn of(engine: Engine) -> Config {
        let model = engine.model();
        Config {
            engine,
            topology: model.topologies[0],
            sender: model.senders[0],
            dispatch: Dispatch::Inline,
            triggers: None,
            layer: false,
        }
    }

    /// Every legal configuration without the layer, in the order of the table.
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

    /// What a pool does to a connection has nothing to do with topologies and senders.
    fn is_worth_it(&self) -> bool {
        let model = self.engine.model();
        let first = self.topology == model.topologies[0] && self.sender == model.senders[0];
        self.dispatch == Dispatch::Inline || first
    }

    /// The same with the layer.
    pub fn layered(self) -> Config {
        Config { layer: true, ..self }
    }

    /// The plan of it, where it is legal.
    ///
    /// # Errors
    /// Why it is not.
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

    /// How many processes serve.
    pub fn processes(&self) -> usize {
        self.plan().map_or(0, |plan| plan.processes())
    }

    /// How many workers it is started with.
    pub fn workers(&self) -> usize {
        if self.topology == Topology::Single { 1 } else { WORKERS }
    }

    /// Whether it serves one connection at a time, so that cases have to wait for each other.
    pub fn serial(&self) -> bool {
        self.at_once() == Some(1)
    }

    /// How many connections it serves at once, where that is few: others wait until one of them ends.
    pub fn at_once(&self) -> Option<usize> {
        match self.engine.model().name {
            "naive" => Some(1),
            "pool" => Some(POOL_THREADS),
            _ => None,
        }
    }

    /// Whether it locks so much memory, of which its user has little (RLIMIT_MEMLOCK), that a second one beside it
    /// may not start: rings, and what the kernel holds for a send.
    pub fn locks_memory(&self) -> bool {
        self.engine == Engine::Uring && self.sender == Sender::Zerocopy
    }

    /// Whether a process serves each connection and ends with it.
    pub fn process_per_connection(&self) -> bool {
        self.engine == Engine::Fork
    }

    /// The flags that ask for it.
    pub fn flags(&self) -> Vec<String> {
        let mut flags = vec!["--engine".into(), self.engine.to_string()];
        flags.extend(["--topology".into(), self.topology.to_string()]);
        if self.workers() > 1 {
            flags.extend(["--workers".into(), self.workers().to_string()]);
        }
        flags.extend(["--send".into(), self.sender.to_string()]);
        if self.dispatch != Dispatch::Inline {
            flags.extend(["--dispatch".into(), self.dispatch.to_string()]);
        }
        if self.sender == Sender::Zerocopy && rustix::process::geteuid().is_root() {
            // What is held counts as locked memory of the user, of which rings have to be had, too.
            let user = if self.engine == Engine::Uring { "bin" } else { "daemon" };
            flags.extend(["--user".into(), user.into()]);
        }
        if let Some(triggers) = self.triggers {
            flags.extend(["--trigger".into(), triggers.to_string()]);
        }
        if self.layer {
            flags.extend(["--layer".into(), "framed".into()]);
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
        f.write_str(if self.layer { "+layer" } else { "" })
    }
}

/// Whether this build has the engine; CI builds with all of them (`TENFOLD_LIBRARIES=require`).
fn there(engine: Engine) -> bool {
    !LIBRARIES.contains(&engine) || probe(engine).is_ok()
}

/// Whether a case is worth its time in this topology of this engine.
fn tried(engine: Engine, topology: Topology) -> bool {
    !LIBRARIES.contains(&engine) || everything() || [Topology::Single, Topology::Threads].contains(&topology)
}

/// Whether a long comparison is asked for: of every configuration, whatever else is worth its time there.
fn compares() -> bool {
    std::env::var_os("TENFOLD_TEST_REQUESTS").is_some()
}

/// Whether everything is to be tested, however long it takes: `TENFOLD_TEST_ALL=1`.
pub fn everything() -> bool {
    std::env::var_os("TENFOLD_TEST_ALL").is_some_and(|value| value == "1")
}

impl Breadth {
    /// Whether a case of this breadth runs on `config`. The layer is crossed with engines only, because it reads files
    /// itself; where everything is to be tested, also with senders, topologies and triggers.
    pub fn covers(self, config: &Config) -> bool {
        let model = config.engine.model();
        let first_topology = config.topology == model.topologies[0];
        let first_sender = config.sender == model.senders[0];
        let default_triggers = config.triggers.is_none();
        let excluded = match self {
            Breadth::Concurrent => config.at_once().is_some(),
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
        if everything() {
            let plain = first_sender && !config.layer;
            match self {
                Breadth::Every
                | Breadth::Senders
                | Breadth::Compared
                | Breadth::Concurrent
                | Breadth::Processes => return true,
                Breadth::Topologies => return plain && default_triggers,
                Breadth::Triggers => return plain,
                Breadth::Engines | Breadth::Dispatches | Breadth::Epoll | Breadth::Uring => {}
            }
        }
        if self == Breadth::Compared && compares() {
            return default_triggers && !config.layer;
        }
        if !tried(config.engine, config.topology) {
            return false;
        }
        if config.dispatch != Dispatch::Inline && config.engine != Engine::Epoll {
            // The driver is the same, and `epoll` goes through everything.
            let smoke = [Breadth::Compared, Breadth::Concurrent, Breadth::Dispatches].contains(&self);
            return smoke && default_triggers && !config.layer;
        }
        if config.locks_memory() && self == Breadth::Every {
            // Many rings at once, and what they hold, are more locked memory than a user has.
            return false;
        }
        // Who does the sending is the readiness driver, or the library.
        let own_sender =
            first_sender || !LIBRARIES.contains(&config.engine) || model.driver == Driver::Completion;
        match self {
            Breadth::Every | Breadth::Senders | Breadth::Compared if config.layer => {
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
                topology && first_sender && default_triggers && !config.layer
            }
            Breadth::Engines => first_topology && first_sender && default_triggers,
            Breadth::Concurrent | Breadth::Epoll | Breadth::Uring | Breadth::Dispatches => {
                first_topology && first_sender && default_triggers && !config.layer
            }
            Breadth::Triggers => first_topology && first_sender && !config.layer,
        }
    }
}
