//! The choices of a plan, with their names on the command line.

use std::fmt;
use std::str::FromStr;

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident, $what:literal { $($(#[$variant_doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }

        impl $name {
            /// Every choice, in the order in which they are shown.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The name on the command line.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
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

choice! {
    /// An I/O model, by its name on the command line.
    Engine, "engine" {
        /// One blocking process: accept, serve until closed, accept the next.
        Naive = "naive",
        /// A process per connection.
        Fork = "fork",
        /// A thread per connection.
        Thread = "thread",
        /// A fixed pool of threads.
        Pool = "pool",
        /// The call of each connection in every tick.
        Busy = "busy",
        /// Readiness by `select`.
        Select = "select",
        /// Readiness by `poll`.
        Poll = "poll",
        /// Readiness by `epoll`.
        Epoll = "epoll",
        /// Readiness by libevent.
        Libevent = "libevent",
        /// Readiness by Asio's reactor.
        Asio = "asio",
        /// Completion by Asio's proactor.
        AsioProactor = "asio-proactor",
        /// Completion by `io_uring`.
        Uring = "uring",
    }
}

choice! {
    /// The relation of workers to listening sockets.
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
    /// The mechanism that sends files.
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
    /// The division of a connection's work between a worker's loop and a pool of threads.
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
    /// The moment at which `epoll` reports a descriptor (`man 7 epoll`).
    Trigger, "trigger" {
        /// As long as it is ready.
        Level = "lt",
        /// Once, as it becomes ready.
        Edge = "et",
    }
}

choice! {
    /// The number of connections accepted for one report of the listener.
    Accept, "accept mode" {
        /// All waiting connections, up to a bound.
        All = "all",
        /// One.
        One = "one",
    }
}

choice! {
    /// The data structure of timers.
    TimerKind, "timer" {
        /// A list in the order of deadlines.
        List = "list",
        /// A hashed wheel: one ring of buckets.
        Wheel = "wheel",
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
