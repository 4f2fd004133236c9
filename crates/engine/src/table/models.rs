//! The table of I/O models. Help, validation, `tenfold engines`, the sandbox, the tests and the laboratory read it; a
//! model that is not in it does not exist.

use tenfold_sys::seccomp::Call;

use super::calls::{ACCEPT, BY_METHOD, CLOSE, EPOLL, RECEIVE, SEND, noted, step};
use super::model::{Model, Rearms};
use crate::models::{
    asio, asio_proactor, busy, epoll, fork, libevent, naive, poll, pool, select, thread, uring,
};
use crate::plan::Plan;
use crate::plan::choice::{Dispatch, Engine, Sender, Topology};
use crate::plan::mechanism::{Driver, Facility};
use crate::protocol::Protocol;
use crate::worker::intake::Intake;

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
/// Asio's proactor cannot report the release of zero-copy memory.
const COPYING: &[Sender] = &[Sender::Auto, Sender::Copy, Sender::Mmap, Sender::Sendfile, Sender::Splice];

/// The defaults of models whose calls wait.
const BLOCKING: Model = Model {
    engine: Engine::Naive,
    name: "",
    summary: "",
    take_it_when: "",
    driver: Driver::Blocking,
    calls: &[],
    setup: &[],
    needs: &[],
    topologies: &[Topology::Single],
    senders: SENDERS,
    triggers: false,
    dispatches: INLINE,
    rearms: None,
    connections: "as many as max-connections allows",
    locked_bytes: 0,
    probe: || Ok(()),
    file: "",
};
/// The defaults of models that wait for readiness.
const READINESS: Model = Model {
    driver: Driver::Readiness,
    topologies: LOOPS,
    dispatches: DISPATCHES,
    rearms: Some(Rearms::Mailbox),
    ..BLOCKING
};
/// The defaults of models that hand operations over.
const COMPLETION: Model = Model { driver: Driver::Completion, topologies: LOOPS, ..BLOCKING };

/// Makes the table from its rows. `run` is generic over the protocol, so it cannot be a field of a static.
macro_rules! models {
    ($($engine:ident { run: $run:path, $($field:ident: $value:expr,)+ ..$defaults:ident })+) => {
        /// Every model, in the order in which they are shown.
        pub static MODELS: &[Model] = &[$(Model {
            engine: Engine::$engine,
            name: Engine::$engine.name(),
            $($field: $value,)+
            ..$defaults
        }),+];

        /// Runs the model of `plan` until the server leaves.
        pub(crate) fn run_model<P: Protocol>(
            plan: &Plan,
            intake: &Intake<'_>,
            protocol: &P,
        ) -> Result<(), String> {
            match plan.engine {
                $(Engine::$engine => $run(plan, intake, protocol)),+
            }
        }
    };
}

models! {
    Naive {
        run: naive::run,
        summary: "one blocking process: accept, serve until closed, accept the next",
        take_it_when: "a lesson needs the simplest server",
        calls: &[ACCEPT, RECEIVE, SEND, CLOSE],
        connections: "one",
        file: "crates/engine/src/models/naive.rs",
        ..BLOCKING
    }
    Fork {
        run: fork::run,
        summary: "a process per connection, which ends with its connection",
        take_it_when: "few long connections need a process each",
        calls: &[
            ACCEPT,
            step(&[Call::CLONE]),
            step(&[Call::DUP3]),
            RECEIVE,
            SEND,
            CLOSE,
            step(&[Call::EXIT_GROUP]),
            step(&[Call::WAIT4]),
        ],
        connections: "as many as max-connections allows, a process each",
        file: "crates/engine/src/models/fork.rs",
        ..BLOCKING
    }
    Thread {
        run: thread::run,
        summary: "a thread per connection, which ends with its connection",
        take_it_when: "a few hundred connections last long",
        calls: &[ACCEPT, step(&[Call::CLONE]), RECEIVE, SEND, CLOSE, step(&[Call::EXIT])],
        connections: "as many as max-connections allows, a thread each",
        file: "crates/engine/src/models/thread.rs",
        ..BLOCKING
    }
    Pool {
        run: pool::run,
        summary: "a fixed pool of threads that take accepted connections from a bounded queue",
        take_it_when: "connections are short, and threads must be few",
        calls: &[ACCEPT, step(&[Call::FUTEX]), RECEIVE, SEND, CLOSE],
        connections: "as many as the pool has threads; the queue waits",
        file: "crates/engine/src/models/pool.rs",
        ..BLOCKING
    }
    Busy {
        run: busy::run,
        summary: "every connection's call is tried in turn, with a sleep when nothing was done",
        take_it_when: "a comparison needs a loop that only tries calls",
        calls: &[
            ACCEPT,
            noted(&[Call::RECVFROM, Call::WRITE], "on each in every turn"),
            step(&[Call::CLOCK_NANOSLEEP]),
            CLOSE,
        ],
        file: "crates/engine/src/models/busy.rs",
        ..READINESS
    }
    Select {
        run: select::run,
        summary: "readiness: non-blocking calls, retried when select reports",
        take_it_when: "connections are few, and most of them are busy",
        calls: &[step(&[Call::PSELECT6]), ACCEPT, RECEIVE, SEND, CLOSE],
        connections: "those whose descriptors are below 1024",
        file: "crates/engine/src/models/select.rs",
        ..READINESS
    }
    Poll {
        run: poll::run,
        summary: "readiness: non-blocking calls, retried when poll reports",
        take_it_when: "there is neither epoll nor io_uring",
        calls: &[step(&[Call::POLL]), ACCEPT, RECEIVE, SEND, CLOSE],
        file: "crates/engine/src/models/poll.rs",
        ..READINESS
    }
    Epoll {
        run: epoll::run,
        probe: epoll::probe,
        summary: "readiness: non-blocking calls, retried when epoll reports",
        take_it_when: "in doubt, or most of many connections are idle",
        calls: &[step(EPOLL), ACCEPT, RECEIVE, SEND, noted(&[Call::EPOLL_CTL], "once a connection"), CLOSE],
        setup: &[Call::EPOLL_CREATE1],
        needs: &[Facility::Epoll],
        triggers: true,
        rearms: Some(Rearms::Direct),
        file: "crates/engine/src/models/epoll.rs",
        ..READINESS
    }
    Libevent {
        run: libevent::run,
        probe: libevent::probe,
        summary: "readiness: non-blocking calls, retried when libevent reports",
        take_it_when: "libevent must choose the way to wait",
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
        triggers: true,
        file: "crates/engine/src/models/libevent.rs",
        ..READINESS
    }
    Asio {
        run: asio::run,
        probe: asio::probe,
        summary: "readiness: non-blocking calls, retried when Asio's reactor (async_wait) reports",
        take_it_when: "a program on Asio's reactor is compared",
        calls: &[step(EPOLL), ACCEPT, RECEIVE, SEND, noted(&[Call::EPOLL_CTL], "for each wait"), CLOSE],
        setup: &[Call::EPOLL_CREATE1, Call::TIMERFD_CREATE, Call::TIMERFD_SETTIME],
        needs: &[Facility::Asio],
        rearms: Some(Rearms::Direct),
        file: "crates/engine/src/models/asio.rs",
        ..READINESS
    }
    AsioProactor {
        run: asio_proactor::run,
        probe: asio::probe,
        summary: "completion: operations of Asio (async_read_some, async_write_some)",
        take_it_when: "a program on Asio's operations is compared",
        calls: &[
            step(EPOLL),
            step(&[Call::ACCEPT]),
            step(&[Call::GETPEERNAME]),
            noted(&[Call::RECVFROM], "also without a result"),
            noted(&[Call::SENDTO], "also without a result"),
            noted(&[Call::SENDFILE], "for large files"),
            noted(&[Call::EPOLL_CTL], "twice a connection"),
            CLOSE,
        ],
        setup: &[Call::EPOLL_CREATE1, Call::TIMERFD_CREATE, Call::TIMERFD_SETTIME],
        needs: &[Facility::Asio],
        senders: COPYING,
        connections: "as many as max-connections allows; each keeps the 4 KiB of its next read",
        file: "crates/engine/src/models/asio_proactor.rs",
        ..COMPLETION
    }
    Uring {
        run: uring::run,
        probe: uring::probe,
        summary: "completion: operations that the kernel takes in batches and completes",
        take_it_when: "connections are short, and files are small",
        calls: &[
            noted(&[Call::IO_URING_ENTER], "(multishot accept and recv, send, close)"),
            step(&[Call::GETPEERNAME]),
            noted(&[Call::SENDFILE], "for large files"),
        ],
        setup: &[Call::IO_URING_SETUP, Call::IO_URING_REGISTER],
        needs: &[Facility::Ring, Facility::MultishotAccept, Facility::MultishotReceive, Facility::BufferRing],
        file: "crates/engine/src/models/uring.rs",
        locked_bytes: uring::LOCKED_BYTES,
        ..COMPLETION
    }
}

impl Engine {
    /// The model's line of the table.
    pub fn model(self) -> &'static Model {
        MODELS.iter().find(|model| model.engine == self).expect("every engine has its line in the table")
    }

    /// Whether the number of connections per accept can be chosen: not if each accept brings one connection.
    pub fn accepts_in_batches(self) -> bool {
        self.model().driver != Driver::Blocking && self != Engine::AsioProactor
    }
}
