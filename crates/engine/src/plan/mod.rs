//! Plans: a model with a topology, a sender and its triggers. A [`Plan`] is data; the table of models decides which
//! plans are legal.

pub(crate) mod choice;
pub(crate) mod mechanism;

use std::time::Duration;

use tenfold_sys::seccomp::Call;

use self::choice::{Accept, Dispatch, Engine, Method, Sender, TimerKind, Topology, Triggers};
use self::mechanism::Driver;

/// The configuration of one or several workers. [`Plan::new`] makes only legal ones.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The I/O model.
    pub engine: Engine,
    /// The driver of its connections.
    pub driver: Driver,
    /// The relation of workers to listening sockets.
    pub topology: Topology,
    /// The number of workers: 1 for [`Topology::Single`].
    pub workers: usize,
    /// The sender of files.
    pub sender: Sender,
    /// The triggers of `epoll`.
    pub triggers: Triggers,
    /// The threads that do the work of a connection.
    pub dispatch: Dispatch,
    /// The method that libevent is forced to use.
    pub method: Option<Method>,
    /// The timers of drivers with a loop; blocking calls have their deadline in the socket.
    pub timer: TimerKind,
    /// The number of connections that a loop accepts at a time.
    pub accept: Accept,
    /// Whether a response fills whole segments (`TCP_CORK`, `man 7 tcp`): partial ones are held back until its end.
    pub cork: bool,
    /// Whether threads that serve are denied the calls that only other models and the start need: the process has a
    /// filter whose signals are handled ([`tenfold_sys::seccomp`]).
    pub confined: bool,
    /// The calls that those threads are denied; [`crate::run`] fills them in.
    pub(crate) denied: Vec<Call>,
    /// Bounds on connections.
    pub bounds: Bounds,
}

/// Bounds that an engine keeps. Each is exact.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The most connections of a worker. Beyond it, a new connection evicts an idle one, or is closed and counted.
    pub connections: usize,
    /// The longest time for which bytes of a connection are discarded after its output is shut down. Default 30 s.
    pub linger_time: Duration,
    /// The longest wait for such bytes. Default 5 s.
    pub linger_wait: Duration,
    /// The bytes received and sent on one connection before other connections have their turn. Default 1 MiB.
    pub turn_bytes: usize,
    /// Bytes of a file that the senders `mmap` and `zerocopy` map at once for a connection. Default 16 MiB.
    pub mapped_bytes: u64,
    /// Pipes of the sender `splice`, for all workers of a process. A connection has a pipe while bytes wait in it; a
    /// connection without a pipe copies. Default 256.
    pub pipes: usize,
    /// Threads of the engine `pool`, or of each worker's pool under [`Dispatch::Reactor`] and
    /// [`Dispatch::Proactor`]. Default 16.
    pub pool_threads: usize,
    /// The queue of these threads: accepted connections, ready connections, or requests. Default 1024. If it is full, a
    /// connection is closed and counted, and a request gets 503.
    pub pool_queue: usize,
    /// Accepted connections that wait for each worker of the topology `handoff`. Default 1024.
    pub handoff_queue: usize,
    /// The sleep of the engine `busy` after a tick without work. Default 1 ms.
    pub busy_sleep: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            connections: 10_000,
            linger_time: Duration::from_secs(30),
            linger_wait: Duration::from_secs(5),
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
    /// The greatest number of workers.
    pub const MOST_WORKERS: usize = 256;

    /// Whether workers wait in `select(2)`, whose sets end at [`tenfold_sys::select::FD_SETSIZE`]. libevent extends the
    /// sets, but if the library was compiled with checks of their bounds, as in Debian, it aborts the process there.
    pub fn waits_in_select(&self) -> bool {
        self.engine == Engine::Select || self.method == Some(Method::Select)
    }

    /// The number of processes that serve: one, or one per worker.
    pub fn processes(&self) -> usize {
        if self.topology == Topology::ReuseportProcesses { self.workers } else { 1 }
    }

    /// The number of listening sockets of each address.
    pub fn sockets_per_address(&self) -> usize {
        match self.topology {
            Topology::ReuseportProcesses | Topology::ReuseportThreads => self.workers,
            Topology::Single | Topology::Threads | Topology::Handoff => 1,
        }
    }

    /// The number of threads over all processes whose work is counted separately: the workers, and
    /// with [`Topology::Handoff`] the thread that accepts, which comes first.
    pub fn counted_threads(&self) -> usize {
        self.workers + usize::from(self.topology == Topology::Handoff)
    }

    /// Whether accepted sockets block.
    pub fn blocking(&self) -> bool {
        self.driver == Driver::Blocking
    }
}
