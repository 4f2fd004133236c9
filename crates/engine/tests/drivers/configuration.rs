//! The tested configurations: models from the table, with their triggers, topologies and senders, plain and through TLS,
//! and a ring so small that all its resources run out.

use std::fmt;

use tenfold_engine::{
    Bounds, Dispatch, Driver, Engine, MODELS, Method, Model, Sender, Topology, Trigger, Triggers, probe,
};

#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    pub(crate) engine: Engine,
    pub(crate) topology: Topology,
    pub(crate) triggers: Option<Triggers>,
    pub(crate) sender: Sender,
    pub(crate) dispatch: Dispatch,
    /// The mechanism that libevent is forced to use.
    pub(crate) method: Option<Method>,
    /// Whether connections use TLS.
    pub(crate) tls: bool,
    /// Whether rings have few places and few buffers.
    pub(crate) scarce: bool,
}

impl Configuration {
    /// Every configuration, from the table of models.
    pub(crate) fn all() -> Vec<Configuration> {
        let mut all = Vec::new();
        // A library may be missing where the crate is built; CI builds with all of them.
        let there = |engine| !LIBRARIES.contains(&engine) || probe(engine).is_ok();
        for model in MODELS.iter().filter(|model| there(model.engine)) {
            // Only the supervisor starts several processes.
            let here = |topology: &&Topology| **topology != Topology::ReuseportProcesses;
            for &topology in model.topologies.iter().filter(here) {
                let triggers = if model.triggers { Triggers::ALL.map(Some).to_vec() } else { vec![None] };
                for triggers in
                    triggers.into_iter().filter(|triggers| tried(model.engine, topology, *triggers))
                {
                    let plain = Configuration::plain(model.engine, topology, triggers);
                    if topology == Topology::Single {
                        all.extend(plain.variations());
                    }
                    all.push(plain);
                }
            }
        }
        all
    }

    /// The default configuration of each engine that runs here, some of them through TLS. Prints the other engines.
    pub(crate) fn defaults() -> Vec<Configuration> {
        let default = |model: &Model| {
            if let Err((_, why)) = probe(model.engine) {
                println!("not tested: {}: {why}", model.engine);
                return None;
            }
            let triggers = model.triggers.then(Triggers::default);
            let plain = Configuration::plain(model.engine, model.topologies[0], triggers);
            Some(Configuration { tls: THROUGH_TLS.contains(&model.engine), ..plain })
        };
        MODELS.iter().filter_map(default).collect()
    }

    /// The configuration with every other setting at its default.
    fn plain(engine: Engine, topology: Topology, triggers: Option<Triggers>) -> Configuration {
        Configuration {
            engine,
            topology,
            triggers,
            sender: Sender::Auto,
            dispatch: Dispatch::Inline,
            method: None,
            tls: false,
            scarce: false,
        }
    }

    /// The variations with one worker: TLS, other senders, a ring whose resources run out.
    fn variations(&self) -> Vec<Configuration> {
        let mut all = vec![Configuration { tls: true, ..self.clone() }];
        if [Engine::Naive, Engine::Epoll, Engine::Uring].contains(&self.engine) && self.is_default() {
            let others = [Sender::Copy, Sender::Mmap, Sender::Splice, Sender::Zerocopy];
            all.extend(others.map(|sender| Configuration { sender, ..self.clone() }));
        }
        if self.engine == Engine::AsioProactor {
            let others = [Sender::Copy, Sender::Mmap, Sender::Splice];
            all.extend(others.map(|sender| Configuration { sender, ..self.clone() }));
        }
        // These mechanisms report an error queue in another way, level-triggered, or never.
        let level = Some(Triggers { listener: Trigger::Level, connections: Trigger::Level });
        if [Engine::Poll, Engine::Select].contains(&self.engine) || self.triggers == level {
            all.push(Configuration { sender: Sender::Zerocopy, ..self.clone() });
        }
        all.extend(self.dispatched());
        if self.engine == Engine::Libevent && self.triggers == Some(LEVELS) {
            let forced = [Method::Poll, Method::Select].map(Some);
            all.extend(forced.map(|method| Configuration { method, ..self.clone() }));
        }
        if self.engine == Engine::Uring {
            all.push(Configuration { scarce: true, ..self.clone() });
            all.push(Configuration { scarce: true, sender: Sender::Copy, ..self.clone() });
            all.push(Configuration { scarce: true, sender: Sender::Zerocopy, ..self.clone() });
            all.push(Configuration { scarce: true, tls: true, ..self.clone() });
        }
        all
    }

    /// The same configurations with a pool: `epoll` with each trigger and through TLS, others with their default
    /// triggers.
    fn dispatched(&self) -> Vec<Configuration> {
        let pooled = self.engine.model().dispatches.iter().filter(|dispatch| **dispatch != Dispatch::Inline);
        let mut all = Vec::new();
        for &dispatch in pooled.filter(|_| self.engine == Engine::Epoll || self.is_default()) {
            all.push(Configuration { dispatch, ..self.clone() });
            if self.engine == Engine::Epoll && self.is_default() {
                all.push(Configuration { dispatch, tls: true, ..self.clone() });
            }
        }
        all
    }

    /// Whether the triggers are the default, or the model has none.
    pub(crate) fn is_default(&self) -> bool {
        self.triggers.unwrap_or_default() == Triggers::default()
    }

    /// The number of connections that the server can serve concurrently.
    pub(crate) fn most_at_once(&self) -> u64 {
        match self.engine {
            Engine::Naive => 1,
            Engine::Pool => Bounds::default().pool_threads as u64,
            _ if self.driver() == Driver::Blocking => 60,
            _ => 300,
        }
    }

    /// Whether the server serves each new connection immediately, for any number of connections.
    pub(crate) fn greets_at_once(&self) -> bool {
        ![Engine::Naive, Engine::Pool].contains(&self.engine)
    }

    /// Whether the model notices that a peer has disconnected while the answer is being computed.
    pub(crate) fn hears_of_loss(&self) -> bool {
        let deaf = [Engine::Busy, Engine::Select, Engine::Libevent, Engine::Asio];
        self.driver() != Driver::Blocking && !deaf.contains(&self.engine)
    }

    /// Whether the server sleeps when it has no work.
    pub(crate) fn sleeps(&self) -> bool {
        self.engine != Engine::Busy
    }

    pub(crate) fn driver(&self) -> Driver {
        self.engine.model().driver
    }

    /// Whether the server serves several connections concurrently.
    pub(crate) fn at_once(&self) -> bool {
        self.engine != Engine::Naive
    }

    /// Whether connections share one loop, so that one can keep the others waiting.
    pub(crate) fn one_loop(&self) -> bool {
        self.driver() != Driver::Blocking
            && self.topology == Topology::Single
            && self.dispatch == Dispatch::Inline
    }

    /// Whether the server sends files by `sendfile(2)`.
    pub(crate) fn sends_files(&self) -> bool {
        !self.tls && [Sender::Auto, Sender::Sendfile].contains(&self.sender)
    }
}

/// Engines that a build can be without.
const LIBRARIES: [Engine; 3] = [Engine::Libevent, Engine::Asio, Engine::AsioProactor];

/// The engines of [`Configuration::defaults`] whose connections use TLS: each driver has engines with and without it.
const THROUGH_TLS: [Engine; 4] = [Engine::Thread, Engine::Select, Engine::Asio, Engine::AsioProactor];

const LEVELS: Triggers = Triggers { listener: Trigger::Level, connections: Trigger::Level };

/// Whether a combination is tested. With `threads`, only the listener's trigger varies. Other topologies with several
/// workers are tested with one engine of each driver.
fn tried(engine: Engine, topology: Topology, triggers: Option<Triggers>) -> bool {
    match topology {
        Topology::Single => true,
        Topology::Threads if engine == Engine::Libevent => {
            triggers.unwrap_or_default() == Triggers::default()
        }
        Topology::Threads => triggers.is_none_or(|triggers| triggers.connections == Trigger::Edge),
        _ => {
            let default = triggers.unwrap_or_default() == Triggers::default();
            default && [Engine::Epoll, Engine::Uring].contains(&engine)
        }
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.engine, self.topology)?;
        if let Some(triggers) = self.triggers {
            write!(f, "-{triggers}")?;
        }
        if let Some(method) = self.method {
            write!(f, "-by-{method}")?;
        }
        if self.dispatch != Dispatch::Inline {
            write!(f, "-{}", self.dispatch)?;
        }
        if self.sender != Sender::Auto {
            write!(f, "-{}", self.sender)?;
        }
        f.write_str(if self.scarce { "-scarce" } else { "" })?;
        f.write_str(if self.tls { "-tls" } else { "" })
    }
}

/// Every configuration.
pub(crate) fn any(_: &Configuration) -> bool {
    true
}

/// Selects configurations that serve several connections concurrently.
pub(crate) fn at_once(configuration: &Configuration) -> bool {
    configuration.at_once()
}

/// Selects configurations in which one loop serves every connection.
pub(crate) fn one_loop(configuration: &Configuration) -> bool {
    configuration.one_loop()
}
