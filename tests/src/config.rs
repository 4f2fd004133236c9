//! All legal configurations, from the table of models.

use std::fmt;
use std::sync::OnceLock;

use tenfold_engine::{Bounds, Dispatch, Engine, MODELS, Plan, Sender, Topology, Triggers, probe};

use crate::seal::certificate_folder;

/// The default number of threads of a pool.
pub const POOL_THREADS: usize = 16;

/// The number of workers in topologies with several.
pub const WORKERS: usize = 2;

/// Engines over a library, which a build may lack.
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

impl Config {
    /// The scheme of the server's URLs.
    pub fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

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
    pub fn all() -> &'static [Config] {
        static ALL: OnceLock<Vec<Config>> = OnceLock::new();
        ALL.get_or_init(Config::every_legal)
    }

    fn every_legal() -> Vec<Config> {
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
        !self.has_pool() || self.has_first_topology() && self.has_first_sender()
    }

    /// Whether it has the first topology of its engine.
    pub fn has_first_topology(&self) -> bool {
        self.topology == self.engine.model().topologies[0]
    }

    /// Whether it has the first sender of its engine.
    pub fn has_first_sender(&self) -> bool {
        self.sender == self.engine.model().senders[0]
    }

    /// Whether it differs from the defaults in its topology or its pool at most.
    pub fn differs_in_topology(&self) -> bool {
        self.has_first_sender() && self.triggers.is_none()
    }

    /// Whether it differs from the defaults in its pool at most.
    pub fn has_defaults(&self) -> bool {
        self.has_first_topology() && self.differs_in_topology()
    }

    /// Whether a pool serves its connections.
    pub fn has_pool(&self) -> bool {
        self.dispatch != Dispatch::Inline
    }

    /// Whether its engine is one of [`LIBRARIES`].
    pub fn has_library(&self) -> bool {
        LIBRARIES.contains(&self.engine)
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

/// Whether all long cases are requested: `TENFOLD_TEST_ALL=1`.
pub fn everything() -> bool {
    std::env::var_os("TENFOLD_TEST_ALL").is_some_and(|value| value == "1")
}
