//! What is to run: a model with a topology, a sender and its triggers, as a combination that is legal.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::table::{Driver, Engine, MODELS};
use crate::timer::{TimerKind, TimerUpdate};

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$variant_doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }

        impl $name {
            /// Every choice, in the order in which they are shown.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $($name::$variant => $text),+ })
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<$name, String> {
                match text {
                    $($text => Ok($name::$variant),)+
                    _ => Err(format!(concat!("there is no ", $what, " {:?}; there are {}"), text, [$($text),+].join(", "))),
                }
            }
        }
    };
}

pub(crate) use choice;

choice! {
    /// How workers stand to listening sockets.
    Topology, "topology" {
        /// One worker on one socket.
        Single = "single",
        /// Several worker threads on one socket.
        Threads = "threads",
        /// Several worker processes, a socket each (`SO_REUSEPORT`, `man 7 socket`).
        ReuseportProcesses = "reuseport-processes",
        /// Several worker threads, a socket each.
        ReuseportThreads = "reuseport-threads",
        /// One thread accepts, and hands connections to worker threads through bounded queues.
        Handoff = "handoff",
    }
}

choice! {
    /// How a file gets to a socket.
    Sender, "sender" {
        /// Whole responses from memory up to a measured size, `sendfile` beyond.
        Auto = "auto",
        /// Read into a buffer, then send the buffer.
        Copy = "copy",
        /// Map the file, then write from the mapping.
        Mmap = "mmap",
        /// `man 2 sendfile`.
        Sendfile = "sendfile",
        /// Through a pipe: `man 2 splice`.
        Splice = "splice",
        /// Map the file, then have its pages sent without copying: MSG_ZEROCOPY, on a ring IORING_OP_SEND_ZC.
        Zerocopy = "zerocopy",
    }
}

choice! {
    /// How the work of a connection is divided between a worker's loop and a pool of threads.
    Dispatch, "dispatch" {
        /// The loop does everything.
        Inline = "inline",
        /// The loop waits; a thread of the pool reads, processes and writes, one at a time for a connection.
        Reactor = "reactor",
        /// The loop reads and writes; a thread of the pool processes.
        Proactor = "proactor",
    }
}

choice! {
    /// The system call that libevent waits in.
    Method, "libevent method" {
        /// `man 7 epoll`
        Epoll = "epoll",
        /// `man 2 poll`
        Poll = "poll",
        /// `man 2 select`
        Select = "select",
    }
}

choice! {
    /// When `epoll` reports a descriptor (`man 7 epoll`).
    Trigger, "trigger" {
        /// As long as it is ready.
        Level = "lt",
        /// When it becomes ready.
        Edge = "et",
    }
}

choice! {
    /// How many connections are accepted when the listener is reported.
    Accept, "way to accept" {
        /// All that wait, up to a bound.
        All = "all",
        /// One.
        One = "one",
    }
}

/// The triggers of the listener and of connections, as in `lt+et`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Triggers {
    /// Of the listening sockets.
    pub listener: Trigger,
    /// Of accepted connections.
    pub connections: Trigger,
}

impl Triggers {
    /// All four combinations, the default first.
    pub const ALL: [Triggers; 4] = [
        Triggers { listener: Trigger::Level, connections: Trigger::Edge },
        Triggers { listener: Trigger::Level, connections: Trigger::Level },
        Triggers { listener: Trigger::Edge, connections: Trigger::Level },
        Triggers { listener: Trigger::Edge, connections: Trigger::Edge },
    ];
}

impl Default for Triggers {
    fn default() -> Triggers {
        Triggers::ALL[0]
    }
}

impl fmt::Display for Triggers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.listener, self.connections)
    }
}

impl FromStr for Triggers {
    type Err = String;

    fn from_str(text: &str) -> Result<Triggers, String> {
        let found = Triggers::ALL.into_iter().find(|triggers| triggers.to_string() == text);
        found.ok_or_else(|| {
            let all: Vec<_> = Triggers::ALL.iter().map(Triggers::to_string).collect();
            format!("there is no trigger {text:?}; there are {} (listener+connections)", all.join(", "))
        })
    }
}

/// What a worker, or several, will run. Made by [`Plan::new`], so that it is legal.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The I/O model.
    pub engine: Engine,
    /// How workers stand to listening sockets.
    pub topology: Topology,
    /// How many workers: 1 for [`Topology::Single`].
    pub workers: usize,
    /// How files are sent.
    pub sender: Sender,
    /// The triggers of `epoll`.
    pub triggers: Triggers,
    /// Who does the work of a connection.
    pub dispatch: Dispatch,
    /// The method that libevent is forced to use.
    pub method: Option<Method>,
    /// How deadlines are kept, by drivers that keep any: blocking calls have theirs in the socket.
    pub timer: TimerKind,
    /// When they are touched.
    pub timer_update: TimerUpdate,
    /// How connections are accepted, by a loop that accepts.
    pub accept: Accept,
    /// Whether what is sent at once fills whole segments (`TCP_CORK`, `man 7 tcp`): held back while an
    /// answer is sent, and let go behind it.
    pub cork: bool,
    /// Whether threads that serve are denied what only other models and the start need: the process has a filter
    /// whose signals are handled ([`tenfold_sys::seccomp`]).
    pub confined: bool,
    /// Bounds on connections.
    pub bounds: Bounds,
}

/// Bounds that an engine keeps. Each is exact.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Connections at once, per worker. Past it new ones are accepted and closed, and counted.
    pub connections: usize,
    /// How long a connection whose output is shut down is drained. Default 2 s.
    pub linger_time: Duration,
    /// Bytes that are drained from it. Default 256 KB.
    pub linger_bytes: u64,
    /// Bytes received and sent on one connection before others have their turn. Default 1 MB.
    pub turn_bytes: usize,
    /// Bytes of a file that the senders `mmap` and `zerocopy` map at once for a connection. Default 16 MB.
    pub mapped_bytes: u64,
    /// Pipes of the sender `splice`, for all workers of a process. Each connection has one while bytes wait in
    /// it; those that get none copy. Default 256.
    pub pipes: usize,
    /// Threads of the engine `pool`, or of each worker's pool under [`Dispatch::Reactor`] and
    /// [`Dispatch::Proactor`]. Default 16.
    pub pool_threads: usize,
    /// What waits for one of them: accepted connections, connections that are ready, or requests. Default
    /// 1024. Past it a connection is closed and counted; a request is answered with 503.
    pub pool_queue: usize,
    /// Accepted connections that wait for each worker of the topology `handoff`. Default 1024.
    pub handoff_queue: usize,
    /// How long the engine `busy` sleeps after a turn in which nothing was done. Default 1 ms.
    pub busy_sleep: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            connections: 10_000,
            linger_time: Duration::from_secs(2),
            linger_bytes: 256 * 1024,
            turn_bytes: 1024 * 1024,
            mapped_bytes: 16 * 1024 * 1024,
            pipes: 256,
            pool_threads: 16,
            pool_queue: 1024,
            handoff_queue: 1024,
            busy_sleep: Duration::from_millis(1),
        }
    }
}

impl Plan {
    /// A plan for `engine` with the defaults of `workers` workers.
    ///
    /// # Errors
    /// In words, where the combination makes no sense, with the ones that do.
    pub fn new(
        engine: Engine,
        topology: Option<Topology>,
        workers: Option<usize>,
        sender: Sender,
        triggers: Option<Triggers>,
        bounds: Bounds,
    ) -> Result<Plan, String> {
        let model = engine.model();
        let legal = join(model.topologies);
        let topology = match topology {
            Some(topology) if model.topologies.contains(&topology) => topology,
            Some(topology) => {
                return Err(format!(
                    "engine {engine} does not run in topology {topology}; it runs in {legal}"
                ));
            }
            None if workers.unwrap_or(1) > 1 && model.topologies.contains(&Topology::ReuseportProcesses) => {
                Topology::ReuseportProcesses
            }
            None => Topology::Single,
        };
        let workers = match (topology, workers) {
            (_, Some(0)) => return Err("workers is 0; at least 1 is needed".into()),
            (Topology::Single, Some(count)) if count > 1 && model.topologies.len() == 1 => {
                return Err(format!("engine {engine} has one worker, not {count}"));
            }
            (Topology::Single, Some(count)) if count > 1 => {
                return Err(format!(
                    "topology single has one worker, not {count}; for more choose one of {legal}"
                ));
            }
            (Topology::Single, _) => 1,
            (_, Some(count)) if count > Plan::MOST_WORKERS => {
                return Err(format!("workers is {count}; the most is {}", Plan::MOST_WORKERS));
            }
            (_, Some(count)) => count,
            (_, None) => std::thread::available_parallelism().map_or(1, usize::from).min(Plan::MOST_WORKERS),
        };
        if !model.senders.contains(&sender) {
            return Err(format!("engine {engine} has no sender {sender}; it has {}", join(model.senders)));
        }
        if triggers.is_some() && !model.triggers {
            let able: Vec<_> = MODELS.iter().filter(|model| model.triggers).map(|model| model.name).collect();
            return Err(format!("engine {engine} has no trigger to choose; {} has", able.join(", ")));
        }
        let triggers = triggers.unwrap_or_default();
        Ok(Plan {
            engine,
            topology,
            workers,
            sender,
            triggers,
            dispatch: Dispatch::Inline,
            method: None,
            timer: TimerKind::Wheel,
            timer_update: TimerUpdate::Lazy,
            accept: Accept::All,
            cork: false,
            confined: false,
            bounds,
        })
    }

    /// The same plan with the work of connections divided like this.
    ///
    /// # Errors
    /// In words, where the engine has nothing to divide, with the engines that have.
    pub fn with_dispatch(self, dispatch: Dispatch) -> Result<Plan, String> {
        if self.engine.model().dispatches.contains(&dispatch) {
            return Ok(Plan { dispatch, ..self });
        }
        let able = MODELS.iter().filter(|model| model.dispatches.contains(&dispatch));
        let able: Vec<_> = able.map(|model| model.name).collect();
        let why = match self.engine.model().driver {
            Driver::Blocking => "it has no loop",
            Driver::Readiness | Driver::Completion => "what it hands over comes back done",
        };
        let (engine, able) = (self.engine, able.join(", "));
        Err(format!("engine {engine} does not run with dispatch {dispatch}: {why}; {able} do"))
    }

    /// The same plan with libevent forced to use `method`; `triggers` are those that were asked for.
    ///
    /// # Errors
    /// In words: the engine is another, or the method knows no edges, but edges were asked for.
    pub fn with_method(self, method: Method, triggers: Option<Triggers>) -> Result<Plan, String> {
        const LEVELS: Triggers = Triggers { listener: Trigger::Level, connections: Trigger::Level };
        if self.engine != Engine::Libevent {
            return Err(format!("libevent-method is for engine libevent, not {}", self.engine));
        }
        match (method, triggers) {
            (Method::Epoll, _) => Ok(Plan { method: Some(method), ..self }),
            (_, None | Some(LEVELS)) => Ok(Plan { method: Some(method), triggers: LEVELS, ..self }),
            (_, Some(triggers)) => Err(format!(
                "trigger {triggers} does not go with libevent-method {method}, which knows only lt+lt"
            )),
        }
    }

    /// The greatest number of workers.
    pub const MOST_WORKERS: usize = 256;

    /// How many processes serve: one, or one per worker.
    pub fn processes(&self) -> usize {
        if self.topology == Topology::ReuseportProcesses { self.workers } else { 1 }
    }

    /// How many listening sockets each address has.
    pub fn sockets_per_address(&self) -> usize {
        match self.topology {
            Topology::ReuseportProcesses | Topology::ReuseportThreads => self.workers,
            Topology::Single | Topology::Threads | Topology::Handoff => 1,
        }
    }

    /// How many threads there are over all processes whose work is worth counting apart: the workers, and
    /// with [`Topology::Handoff`] the thread that accepts, which comes first.
    pub fn counted_threads(&self) -> usize {
        self.workers + usize::from(self.topology == Topology::Handoff)
    }

    /// Whether a worker is many threads or processes, which come and go with connections.
    pub fn is_many(&self) -> bool {
        matches!(self.engine, Engine::Fork | Engine::Thread | Engine::Pool)
    }

    /// Whether its workers choose how many connections they accept at a time.
    pub fn accepts_in_batches(&self) -> bool {
        self.engine.accepts_in_batches() && self.topology != Topology::Handoff
    }

    /// Whether accepted sockets block.
    pub fn blocking(&self) -> bool {
        self.engine.model().driver == Driver::Blocking
    }
}

fn join<T: fmt::Display>(all: &[T]) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}
