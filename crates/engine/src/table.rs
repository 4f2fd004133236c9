//! The table of I/O models. Help, validation, `tenfold engines`, the tests and the laboratory read it;
//! a model that is not in it does not exist.

mod calls;

use std::fmt;
use std::str::FromStr;

use tenfold_sys::seccomp::Call;

use self::calls::{ACCEPT, BY_METHOD, CLOSE, EPOLL, RECEIVE, SEND, noted, step};
pub use self::calls::{Step, Steps};
use crate::plan::{Dispatch, Sender, Topology};

/// An I/O model, by the name it has on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// One blocking process: accept, serve until closed, accept the next.
    Naive,
    /// A process per connection.
    Fork,
    /// A thread per connection.
    Thread,
    /// A fixed pool of threads.
    Pool,
    /// Every connection's call, in turn.
    Busy,
    /// Readiness by `select`.
    Select,
    /// Readiness by `poll`.
    Poll,
    /// Readiness by `epoll`.
    Epoll,
    /// Readiness by libevent.
    Libevent,
    /// Readiness by Asio's reactor.
    Asio,
    /// Completion by Asio's proactor.
    AsioProactor,
    /// Completion by `io_uring`.
    Uring,
}

/// Which of the three drivers runs a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Driver {
    /// Calls that wait.
    Blocking,
    /// Calls that are tried, and a selector that says when to try again.
    Readiness,
    /// Operations that are handed over, and completions that come back.
    Completion,
}

/// What is known of a model before it runs.
#[derive(Debug)]
pub struct Model {
    /// The model.
    pub engine: Engine,
    /// Its name in flags, variables and files.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// How it drives connections.
    pub driver: Driver,
    /// The system calls of a connection's life. The sandbox allows them, and what [`Model::setup`] and the sender
    /// add; the prose of `tenfold engines` is printed from them ([`Steps`]).
    pub calls: &'static [Step],
    /// Those before the first connection.
    pub setup: &'static [Call],
    /// What it needs of the kernel beyond sockets; probed before it runs.
    pub needs: &'static [Facility],
    /// The topologies it runs in, the default first.
    pub topologies: &'static [Topology],
    /// The senders it has.
    pub senders: &'static [Sender],
    /// Whether `--trigger` means something to it.
    pub triggers: bool,
    /// How the work of a connection is divided between a loop and a pool, the default first; nothing to
    /// divide where there is no loop, or where it does nothing but hand over.
    pub dispatches: &'static [Dispatch],
    /// Under [`Dispatch::Reactor`], who registers a connection anew when a thread of the pool is done with it.
    pub rearms: Option<Rearms>,
    /// How many connections it serves at once, in words.
    pub at_once: &'static str,
    /// The file that implements it.
    pub file: &'static str,
}

/// Who tells the mechanism that a connection waits again, when a thread of the pool has served it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rearms {
    /// The thread itself: the mechanism may be used by several.
    Direct,
    /// The loop, which is woken and finds it in its mailbox.
    Mailbox,
}

impl fmt::Display for Rearms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rearms::Direct => "directly",
            Rearms::Mailbox => "by mailbox",
        })
    }
}

/// A facility of the kernel, or a library of the build, that can be missing or forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Facility {
    /// `epoll_create1(2)`, which a kernel can be built, or a sandbox told, to do without.
    Epoll,
    /// `io_uring_setup(2)` with single issuer and deferred task work (Linux 6.1).
    Ring,
    /// Multishot accept (Linux 5.19).
    MultishotAccept,
    /// Multishot receive (Linux 6.0).
    MultishotReceive,
    /// A ring of provided buffers (Linux 5.19).
    BufferRing,
    /// libevent 2.1, which this program can be built without.
    Libevent,
    /// Asio or Boost.Asio, which it can be built without, too.
    Asio,
}

impl Facility {
    /// What it is called in a message.
    pub fn name(self) -> &'static str {
        match self {
            Facility::Epoll => "epoll (CONFIG_EPOLL)",
            Facility::Ring => {
                "io_uring with IORING_SETUP_SINGLE_ISSUER and IORING_SETUP_DEFER_TASKRUN (Linux 6.1)"
            }
            Facility::MultishotAccept => "IORING_ACCEPT_MULTISHOT (Linux 5.19)",
            Facility::MultishotReceive => "IORING_RECV_MULTISHOT (Linux 6.0)",
            Facility::BufferRing => "IORING_REGISTER_PBUF_RING (Linux 5.19)",
            Facility::Libevent => "libevent 2.1",
            Facility::Asio => "Asio",
        }
    }
}

/// The topologies of models whose workers serve many connections each, the default first.
const LOOPS: &[Topology] = &[
    Topology::Single,
    Topology::Threads,
    Topology::ReuseportProcesses,
    Topology::ReuseportThreads,
    Topology::Handoff,
];
const DISPATCHES: &[Dispatch] = &[Dispatch::Inline, Dispatch::Reactor, Dispatch::Proactor];
const INLINE: &[Dispatch] = &[Dispatch::Inline];
const SENDERS: &[Sender] = Sender::ALL;
/// Nobody tells a proactor of Asio when the kernel is done with what it did not copy.
const COPYING: &[Sender] = &[Sender::Auto, Sender::Copy, Sender::Mmap, Sender::Sendfile, Sender::Splice];

/// Every model, in the order in which they are shown.
pub static MODELS: &[Model] = &[
    Model {
        engine: Engine::Naive,
        name: "naive",
        summary: "one blocking process: accept, serve until closed, accept the next",
        driver: Driver::Blocking,
        calls: &[ACCEPT, RECEIVE, SEND, CLOSE],
        setup: &[],
        needs: &[],
        topologies: &[Topology::Single],
        senders: SENDERS,
        triggers: false,
        dispatches: INLINE,
        rearms: None,
        at_once: "one",
        file: "crates/engine/src/models/naive.rs",
    },
    Model {
        engine: Engine::Fork,
        name: "fork",
        summary: "a process per connection, which ends with its connection",
        driver: Driver::Blocking,
        calls: &[
            ACCEPT,
            step(&[Call::CLONE]),
            RECEIVE,
            SEND,
            CLOSE,
            step(&[Call::EXIT_GROUP]),
            step(&[Call::WAIT4]),
        ],
        setup: &[],
        needs: &[],
        topologies: &[Topology::Single],
        senders: SENDERS,
        triggers: false,
        dispatches: INLINE,
        rearms: None,
        at_once: "as many as max-connections allows, a process each",
        file: "crates/engine/src/models/fork.rs",
    },
    Model {
        engine: Engine::Thread,
        name: "thread",
        summary: "a thread per connection, which ends with its connection",
        driver: Driver::Blocking,
        calls: &[ACCEPT, step(&[Call::CLONE]), RECEIVE, SEND, CLOSE, step(&[Call::EXIT])],
        setup: &[],
        needs: &[],
        topologies: &[Topology::Single],
        senders: SENDERS,
        triggers: false,
        dispatches: INLINE,
        rearms: None,
        at_once: "as many as max-connections allows, a thread each",
        file: "crates/engine/src/models/thread.rs",
    },
    Model {
        engine: Engine::Pool,
        name: "pool",
        summary: "a fixed pool of threads that take accepted connections from a bounded queue",
        driver: Driver::Blocking,
        calls: &[ACCEPT, step(&[Call::FUTEX]), RECEIVE, SEND, CLOSE],
        setup: &[],
        needs: &[],
        topologies: &[Topology::Single],
        senders: SENDERS,
        triggers: false,
        dispatches: INLINE,
        rearms: None,
        at_once: "as many as the pool has threads; the queue waits",
        file: "crates/engine/src/models/pool.rs",
    },
    Model {
        engine: Engine::Busy,
        name: "busy",
        summary: "every connection's call is tried in turn, with a sleep when nothing was done",
        driver: Driver::Readiness,
        calls: &[
            ACCEPT,
            noted(&[Call::RECVFROM, Call::SENDTO], "on each in every turn"),
            step(&[Call::CLOCK_NANOSLEEP]),
            CLOSE,
        ],
        setup: &[],
        needs: &[],
        topologies: LOOPS,
        senders: SENDERS,
        triggers: false,
        dispatches: DISPATCHES,
        rearms: Some(Rearms::Mailbox),
        at_once: "as many as max-connections allows",
        file: "crates/engine/src/models/busy.rs",
    },
    Model {
        engine: Engine::Select,
        name: "select",
        summary: "readiness: non-blocking calls, and select says when to try again",
        driver: Driver::Readiness,
        calls: &[step(&[Call::PSELECT6]), ACCEPT, RECEIVE, SEND, CLOSE],
        setup: &[],
        needs: &[],
        topologies: LOOPS,
        senders: SENDERS,
        triggers: false,
        dispatches: DISPATCHES,
        rearms: Some(Rearms::Mailbox),
        at_once: "those whose descriptors are below 1024",
        file: "crates/engine/src/models/select.rs",
    },
    Model {
        engine: Engine::Poll,
        name: "poll",
        summary: "readiness: non-blocking calls, and poll says when to try again",
        driver: Driver::Readiness,
        calls: &[step(&[Call::POLL]), ACCEPT, RECEIVE, SEND, CLOSE],
        setup: &[],
        needs: &[],
        topologies: LOOPS,
        senders: SENDERS,
        triggers: false,
        dispatches: DISPATCHES,
        rearms: Some(Rearms::Mailbox),
        at_once: "as many as max-connections allows",
        file: "crates/engine/src/models/poll.rs",
    },
    Model {
        engine: Engine::Epoll,
        name: "epoll",
        summary: "readiness: non-blocking calls, and epoll says when to try again",
        driver: Driver::Readiness,
        calls: &[step(EPOLL), ACCEPT, RECEIVE, SEND, noted(&[Call::EPOLL_CTL], "once a connection"), CLOSE],
        setup: &[Call::EPOLL_CREATE1],
        needs: &[Facility::Epoll],
        topologies: LOOPS,
        senders: SENDERS,
        triggers: true,
        dispatches: DISPATCHES,
        rearms: Some(Rearms::Direct),
        at_once: "as many as max-connections allows",
        file: "crates/engine/src/models/epoll.rs",
    },
    Model {
        engine: Engine::Libevent,
        name: "libevent",
        summary: "readiness: non-blocking calls, and libevent says when to try again",
        driver: Driver::Readiness,
        calls: &[
            noted(BY_METHOD, "(libevent-method)"),
            ACCEPT,
            RECEIVE,
            SEND,
            noted(&[Call::EPOLL_CTL], "twice a connection"),
            CLOSE,
        ],
        setup: &[Call::EPOLL_CREATE1, Call::PIPE2],
        needs: &[Facility::Libevent],
        topologies: LOOPS,
        senders: SENDERS,
        triggers: true,
        dispatches: DISPATCHES,
        rearms: Some(Rearms::Mailbox),
        at_once: "as many as max-connections allows",
        file: "crates/engine/src/models/libevent.rs",
    },
    Model {
        engine: Engine::Asio,
        name: "asio",
        summary: "readiness: non-blocking calls, and Asio's reactor (async_wait) says when to try again",
        driver: Driver::Readiness,
        calls: &[step(EPOLL), ACCEPT, RECEIVE, SEND, noted(&[Call::EPOLL_CTL], "for each wait"), CLOSE],
        setup: &[Call::EPOLL_CREATE1, Call::TIMERFD_CREATE, Call::TIMERFD_SETTIME],
        needs: &[Facility::Asio],
        topologies: LOOPS,
        senders: SENDERS,
        triggers: false,
        dispatches: DISPATCHES,
        rearms: Some(Rearms::Direct),
        at_once: "as many as max-connections allows",
        file: "crates/engine/src/models/asio.rs",
    },
    Model {
        engine: Engine::AsioProactor,
        name: "asio-proactor",
        summary: "completion: operations (async_read_some, async_write_some) are begun with Asio and come back done",
        driver: Driver::Completion,
        calls: &[
            step(EPOLL),
            step(&[Call::ACCEPT]),
            step(&[Call::GETPEERNAME]),
            noted(&[Call::RECVFROM], "also in vain"),
            noted(&[Call::SENDTO], "also in vain"),
            noted(&[Call::SENDFILE], "for large files"),
            noted(&[Call::EPOLL_CTL], "twice a connection"),
            CLOSE,
        ],
        setup: &[Call::EPOLL_CREATE1, Call::TIMERFD_CREATE, Call::TIMERFD_SETTIME],
        needs: &[Facility::Asio],
        topologies: LOOPS,
        senders: COPYING,
        triggers: false,
        dispatches: INLINE,
        rearms: None,
        at_once: "as many as max-connections allows; each keeps the 4 KB of its next read",
        file: "crates/engine/src/models/asio_proactor.rs",
    },
    Model {
        engine: Engine::Uring,
        name: "uring",
        summary: "completion: operations are handed to the kernel in batches and come back done",
        driver: Driver::Completion,
        calls: &[
            noted(&[Call::IO_URING_ENTER], "(multishot accept and recv, send, close)"),
            step(&[Call::GETPEERNAME]),
            noted(&[Call::SENDFILE], "for large files"),
        ],
        setup: &[Call::IO_URING_SETUP, Call::IO_URING_REGISTER],
        needs: &[Facility::Ring, Facility::MultishotAccept, Facility::MultishotReceive, Facility::BufferRing],
        topologies: LOOPS,
        senders: SENDERS,
        triggers: false,
        dispatches: INLINE,
        rearms: None,
        at_once: "as many as max-connections allows",
        file: "crates/engine/src/models/uring.rs",
    },
];

impl Model {
    /// Every call of a connection's life and of the start.
    pub fn all_calls(&self) -> impl Iterator<Item = Call> {
        self.calls.iter().flat_map(|step| step.calls).chain(self.setup).copied()
    }
}

impl Engine {
    /// The model's line of the table.
    pub fn model(self) -> &'static Model {
        MODELS.iter().find(|model| model.engine == self).expect("every engine has its line in the table")
    }

    /// Whether it can choose how many connections it accepts at a time: not where each accept brings one, be it a
    /// call that waits or an operation.
    pub fn accepts_in_batches(self) -> bool {
        self.model().driver != Driver::Blocking && self != Engine::AsioProactor
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.model().name)
    }
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(name: &str) -> Result<Engine, String> {
        let found = MODELS.iter().find(|model| model.name == name).map(|model| model.engine);
        found.ok_or_else(|| {
            let names: Vec<_> = MODELS.iter().map(|model| model.name).collect();
            format!("there is no engine {name:?}; there are {}", names.join(", "))
        })
    }
}
