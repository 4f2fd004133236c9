//! The injected failures, all of which the manual pages list.

use tenfold_engine::{Driver, Engine, Sender};
use tenfold_tests::strace::CallFailure;

/// Faults that are injected together.
pub(super) type Point = &'static [CallFailure];

const fn fault(calls: &'static str, error: &'static str, when: &'static str) -> CallFailure {
    CallFailure { calls, error, when }
}

/// A point for each error of each call: `points!["read": EINTR "1..3", EIO "1"; "write": EIO "1"]`. Faults that are
/// injected together follow.
macro_rules! points {
    ($($calls:literal: $($error:ident $when:literal),+;)+ $(together: $($point:expr),+ $(,)?)?) => {
        &[$($(&[fault($calls, stringify!($error), $when)],)+)+ $($($point),+)?]
    };
}

/// The faults of an engine: all of its calls.
pub(super) fn of_engine(engine: Engine) -> Vec<Point> {
    let by_calls = engine != Engine::Uring;
    let calls = if by_calls { [ACCEPTING, SPEAKING].concat() } else { Vec::new() };
    // A busy loop needs no wakeup.
    let waits = engine.model().driver != Driver::Blocking && engine != Engine::Busy;
    let events = if waits { EVENTS } else { &[] };
    [calls.as_slice(), FILES, events, own(engine)].concat()
}

/// For engines that accept with a call; Asio's proactor uses `accept`. `1+` lasts as long as the point.
const ACCEPTING: &[Point] = points![
    "accept4,accept": EMFILE "1+", ENFILE "1..2", ENOBUFS "1..2", ENOMEM "1..2", EPERM "1", ENOSPC "1",
        EIO "1", ECONNABORTED "1..3", EINTR "1..5", EPIPE "1";
];

/// For engines that receive and send with calls.
const SPEAKING: &[Point] = points![
    "recvfrom": EINTR "1..3", EAGAIN "1", ECONNRESET "1", ENOMEM "1", EIO "1";
    "write,writev,sendmsg": EINTR "1..3", EAGAIN "1", EPIPE "1", ECONNRESET "1", ENOBUFS "1", ENOMEM "1";
];

/// For every engine: files, and the environment of a connection.
const FILES: &[Point] = points![
    "sendfile": EINTR "1..3", EAGAIN "1", EIO "1", ENOMEM "1", EPIPE "1";
    "openat2": EMFILE "1..2", ENFILE "1..2", EINTR "1", ENOMEM "1..2", EIO "1";
    "pread64": EINTR "1", EIO "1";
    "shutdown": ENOTCONN "1", ENOBUFS "1";
    // For files, and for the connection.
    "close": EINTR "1..8", EIO "1..8";
];

/// For loops that an eventfd wakes: for a new log file, or for a result.
const EVENTS: &[Point] = points![
    "read": EINTR "1", EAGAIN "1..2";
];

/// For one engine: its wait, and the resources of a connection.
fn own(engine: Engine) -> &'static [Point] {
    match engine {
        Engine::Fork => FORK,
        Engine::Thread => THREAD,
        Engine::Busy => BUSY,
        Engine::Select => SELECT,
        Engine::Poll => POLL,
        Engine::Epoll | Engine::Libevent | Engine::Asio => EPOLL,
        Engine::AsioProactor => ASIO_PROACTOR,
        Engine::Uring => URING,
        _ => &[],
    }
}

const FORK: &[Point] = points![
    "clone,?clone3,?fork,?vfork": EAGAIN "1", ENOMEM "1";
    "wait4": EINTR "1";
];
const THREAD: &[Point] = points![
    "clone,?clone3": EAGAIN "1", ENOMEM "1";
];
const BUSY: &[Point] = points![
    "?nanosleep,clock_nanosleep": EINTR "1..3";
];
const SELECT: &[Point] = points![
    "?select,pselect6": EINTR "1..5", ENOMEM "1+";
    // A file's descriptor cannot be moved to a higher number (F_DUPFD).
    "fcntl": EMFILE "1..2", EINVAL "1";
];
pub(super) const POLL: &[Point] = points![
    "?poll,ppoll": EINTR "1..5", ENOMEM "1+", EAGAIN "1";
];
/// For `epoll`, and for libraries that use it.
const EPOLL: &[Point] = points![
    "?epoll_wait,epoll_pwait": EINTR "1..5";
    "epoll_ctl": ENOMEM "1", ENOSPC "1";
    together:
    // The listener was unregistered after a failed accept, and its registration fails at first.
    &[fault("accept4", "ENFILE", "1"), fault("epoll_ctl", "ENOSPC", "2..3")],
];
const ASIO_PROACTOR: &[Point] = points![
    "?epoll_wait,epoll_pwait": EINTR "1..5";
    "epoll_ctl": ENOMEM "1", ENOSPC "1";
    "getpeername": ENOTCONN "1", ENOBUFS "1";
];
const URING: &[Point] = points![
    "io_uring_enter": EINTR "1..5", EAGAIN "1..2", EAGAIN "1+", ENOMEM "1..2", EBUSY "1..3";
    "getpeername": ENOTCONN "1", ENOBUFS "1", ENOMEM "1";
];

/// For corked connections: setting and releasing the cork.
pub(super) const CORK: &[Point] = points![
    "setsockopt": ENOMEM "1", ENOBUFS "2", EINTR "1..3", ENOBUFS "1+";
];

/// For a sender on an engine: the calls that only it makes. A ring sends and reads without calls.
pub(super) fn of_sender(engine: Engine, sender: Sender) -> Vec<Point> {
    let by_calls = engine.model().driver != Driver::Completion;
    let sends = |points: &'static [Point]| if by_calls { points } else { &[] };
    match sender {
        Sender::Copy => sends(COPY).to_vec(),
        Sender::Mmap => [MAPPING, sends(MMAP)].concat(),
        Sender::Splice => SPLICE.to_vec(),
        Sender::Zerocopy => [MAPPING, sends(ZEROCOPY)].concat(),
        Sender::Auto | Sender::Sendfile => Vec::new(),
    }
}

const COPY: &[Point] = points![
    "pread64": EINTR "1..3", EIO "2", ENOMEM "1";
];
/// For senders that map files. A failed unmap loses only its addresses.
const MAPPING: &[Point] = points![
    "mmap": ENOMEM "1..3", ENODEV "1..3", EAGAIN "1..3";
    "munmap": ENOMEM "1..3";
    // Also for the sent file, whose length is then unknown.
    "fstat": EIO "1..6", ENOMEM "3..5";
];
const MMAP: &[Point] = points![
    "writev,sendmsg": EINTR "1..3", EAGAIN "1", EFAULT "1", ENOBUFS "1", ENOMEM "2", EPIPE "2", ECONNRESET "1";
];
const SPLICE: &[Point] = points![
    "splice": EINTR "1..3", EAGAIN "2", ENOMEM "1", EIO "1", EPIPE "2", ECONNRESET "2";
    together:
    // The content of a pipe is lost with it, and a new pipe is unavailable, or only a small one.
    &[fault("splice", "EPIPE", "2"), fault("pipe2", "EMFILE", "1..3")],
    &[fault("splice", "EPIPE", "2"), fault("pipe2", "ENFILE", "1")],
    &[fault("splice", "EPIPE", "2"), fault("fcntl", "EPERM", "1..9")],
];
const ZEROCOPY: &[Point] = points![
    "sendto,sendmsg": ENOBUFS "1..3", EAGAIN "2", EINTR "1..3", ENOMEM "2", EFAULT "2", EPIPE "2";
    "recvmsg": EINTR "1..2", ENOMEM "1", ENOBUFS "1";
];

/// For writers of the access log, on every engine: a disk that is full or broken, a quota, a signal.
pub(super) const LOGGING: &[Point] = points![
    "write": EINTR "1..3", ENOSPC "1", EDQUOT "1", EIO "1";
];

/// For the supervisor, which waits, answers status requests, and replaces workers.
pub(super) const SUPERVISING: &[Point] = points![
    "?poll,ppoll": EINTR "1..3", ENOMEM "1+";
    "accept4": EMFILE "1+", ECONNABORTED "1";
    "read": EINTR "1";
    "wait4": EINTR "1";
    "clone,?clone3,?fork,?vfork": EAGAIN "1";
];
