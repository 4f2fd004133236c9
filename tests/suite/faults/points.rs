//! The injected failures, all of which the manual pages list.

use tenfold_engine::{Driver, Engine, Sender};
use tenfold_tests::strace::CallFailure;

/// Faults that are injected together.
pub(super) type Point = &'static [CallFailure];

const fn fault(calls: &'static str, error: &'static str, when: &'static str) -> CallFailure {
    CallFailure { calls, error, when }
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
const ACCEPTING: &[Point] = &[
    &[fault("accept4,accept", "EMFILE", "1+")],
    &[fault("accept4,accept", "ENFILE", "1..2")],
    &[fault("accept4,accept", "ENOBUFS", "1..2")],
    &[fault("accept4,accept", "ENOMEM", "1..2")],
    &[fault("accept4,accept", "EPERM", "1")],
    &[fault("accept4,accept", "ENOSPC", "1")],
    &[fault("accept4,accept", "EIO", "1")],
    &[fault("accept4,accept", "ECONNABORTED", "1..3")],
    &[fault("accept4,accept", "EINTR", "1..5")],
    &[fault("accept4,accept", "EPIPE", "1")],
];

/// For engines that receive and send with calls.
const SPEAKING: &[Point] = &[
    &[fault("recvfrom", "EINTR", "1..3")],
    &[fault("recvfrom", "EAGAIN", "1")],
    &[fault("recvfrom", "ECONNRESET", "1")],
    &[fault("recvfrom", "ENOMEM", "1")],
    &[fault("recvfrom", "EIO", "1")],
    &[fault("write,writev,sendmsg", "EINTR", "1..3")],
    &[fault("write,writev,sendmsg", "EAGAIN", "1")],
    &[fault("write,writev,sendmsg", "EPIPE", "1")],
    &[fault("write,writev,sendmsg", "ECONNRESET", "1")],
    &[fault("write,writev,sendmsg", "ENOBUFS", "1")],
    &[fault("write,writev,sendmsg", "ENOMEM", "1")],
];

/// For every engine: files, and the environment of a connection.
const FILES: &[Point] = &[
    &[fault("sendfile", "EINTR", "1..3")],
    &[fault("sendfile", "EAGAIN", "1")],
    &[fault("sendfile", "EIO", "1")],
    &[fault("sendfile", "ENOMEM", "1")],
    &[fault("sendfile", "EPIPE", "1")],
    &[fault("openat2", "EMFILE", "1..2")],
    &[fault("openat2", "ENFILE", "1..2")],
    &[fault("openat2", "EINTR", "1")],
    &[fault("openat2", "ENOMEM", "1..2")],
    &[fault("openat2", "EIO", "1")],
    &[fault("pread64", "EINTR", "1")],
    &[fault("pread64", "EIO", "1")],
    &[fault("shutdown", "ENOTCONN", "1")],
    &[fault("shutdown", "ENOBUFS", "1")],
    // For files, and for the connection.
    &[fault("close", "EINTR", "1..8")],
    &[fault("close", "EIO", "1..8")],
];

/// For loops that an eventfd wakes: for a new log file, or for a result.
const EVENTS: &[Point] = &[&[fault("read", "EINTR", "1")], &[fault("read", "EAGAIN", "1..2")]];

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

const FORK: &[Point] = &[
    &[fault("clone,?clone3,?fork,?vfork", "EAGAIN", "1")],
    &[fault("clone,?clone3,?fork,?vfork", "ENOMEM", "1")],
    &[fault("wait4", "EINTR", "1")],
];
const THREAD: &[Point] =
    &[&[fault("clone,?clone3", "EAGAIN", "1")], &[fault("clone,?clone3", "ENOMEM", "1")]];
const BUSY: &[Point] = &[&[fault("?nanosleep,clock_nanosleep", "EINTR", "1..3")]];
const SELECT: &[Point] = &[
    &[fault("?select,pselect6", "EINTR", "1..5")],
    &[fault("?select,pselect6", "ENOMEM", "1+")],
    // A file's descriptor cannot be moved to a higher number (F_DUPFD).
    &[fault("fcntl", "EMFILE", "1..2")],
    &[fault("fcntl", "EINVAL", "1")],
];
pub(super) const POLL: &[Point] = &[
    &[fault("?poll,ppoll", "EINTR", "1..5")],
    &[fault("?poll,ppoll", "ENOMEM", "1+")],
    &[fault("?poll,ppoll", "EAGAIN", "1")],
];
/// For `epoll`, and for libraries that use it.
const EPOLL: &[Point] = &[
    &[fault("?epoll_wait,epoll_pwait", "EINTR", "1..5")],
    &[fault("epoll_ctl", "ENOMEM", "1")],
    &[fault("epoll_ctl", "ENOSPC", "1")],
    // The listener was unregistered after a failed accept, and its registration fails at first.
    &[fault("accept4", "ENFILE", "1"), fault("epoll_ctl", "ENOSPC", "2..3")],
];
const ASIO_PROACTOR: &[Point] = &[
    &[fault("?epoll_wait,epoll_pwait", "EINTR", "1..5")],
    &[fault("epoll_ctl", "ENOMEM", "1")],
    &[fault("epoll_ctl", "ENOSPC", "1")],
    &[fault("getpeername", "ENOTCONN", "1")],
    &[fault("getpeername", "ENOBUFS", "1")],
];
const URING: &[Point] = &[
    &[fault("io_uring_enter", "EINTR", "1..5")],
    &[fault("io_uring_enter", "EAGAIN", "1..2")],
    &[fault("io_uring_enter", "EAGAIN", "1+")],
    &[fault("io_uring_enter", "ENOMEM", "1..2")],
    &[fault("io_uring_enter", "EBUSY", "1..3")],
    &[fault("getpeername", "ENOTCONN", "1")],
    &[fault("getpeername", "ENOBUFS", "1")],
    &[fault("getpeername", "ENOMEM", "1")],
];

/// For corked connections: setting and releasing the cork.
pub(super) const CORK: &[Point] = &[
    &[fault("setsockopt", "ENOMEM", "1")],
    &[fault("setsockopt", "ENOBUFS", "2")],
    &[fault("setsockopt", "EINTR", "1..3")],
    &[fault("setsockopt", "ENOBUFS", "1+")],
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

const COPY: &[Point] = &[
    &[fault("pread64", "EINTR", "1..3")],
    &[fault("pread64", "EIO", "2")],
    &[fault("pread64", "ENOMEM", "1")],
];
/// For senders that map files. A failed unmap loses only its addresses.
const MAPPING: &[Point] = &[
    &[fault("mmap", "ENOMEM", "1..3")],
    &[fault("mmap", "ENODEV", "1..3")],
    &[fault("mmap", "EAGAIN", "1..3")],
    &[fault("munmap", "ENOMEM", "1..3")],
    // Also for the sent file, whose length is then unknown.
    &[fault("fstat", "EIO", "1..6")],
    &[fault("fstat", "ENOMEM", "3..5")],
];
const MMAP: &[Point] = &[
    &[fault("writev,sendmsg", "EINTR", "1..3")],
    &[fault("writev,sendmsg", "EAGAIN", "1")],
    &[fault("writev,sendmsg", "EFAULT", "1")],
    &[fault("writev,sendmsg", "ENOBUFS", "1")],
    &[fault("writev,sendmsg", "ENOMEM", "2")],
    &[fault("writev,sendmsg", "EPIPE", "2")],
    &[fault("writev,sendmsg", "ECONNRESET", "1")],
];
const SPLICE: &[Point] = &[
    &[fault("splice", "EINTR", "1..3")],
    &[fault("splice", "EAGAIN", "2")],
    &[fault("splice", "ENOMEM", "1")],
    &[fault("splice", "EIO", "1")],
    &[fault("splice", "EPIPE", "2")],
    &[fault("splice", "ECONNRESET", "2")],
    // The content of a pipe is lost with it, and a new pipe is unavailable, or only a small one.
    &[fault("splice", "EPIPE", "2"), fault("pipe2", "EMFILE", "1..3")],
    &[fault("splice", "EPIPE", "2"), fault("pipe2", "ENFILE", "1")],
    &[fault("splice", "EPIPE", "2"), fault("fcntl", "EPERM", "1..9")],
];
const ZEROCOPY: &[Point] = &[
    &[fault("sendto,sendmsg", "ENOBUFS", "1..3")],
    &[fault("sendto,sendmsg", "EAGAIN", "2")],
    &[fault("sendto,sendmsg", "EINTR", "1..3")],
    &[fault("sendto,sendmsg", "ENOMEM", "2")],
    &[fault("sendto,sendmsg", "EFAULT", "2")],
    &[fault("sendto,sendmsg", "EPIPE", "2")],
    &[fault("recvmsg", "EINTR", "1..2")],
    &[fault("recvmsg", "ENOMEM", "1")],
    &[fault("recvmsg", "ENOBUFS", "1")],
];

/// For writers of the access log, on every engine: a disk that is full or broken, a quota, a signal.
pub(super) const LOGGING: &[Point] = &[
    &[fault("write", "EINTR", "1..3")],
    &[fault("write", "ENOSPC", "1")],
    &[fault("write", "EDQUOT", "1")],
    &[fault("write", "EIO", "1")],
];

/// For the supervisor, which waits, answers status requests, and replaces workers.
pub(super) const SUPERVISING: &[Point] = &[
    &[fault("?poll,ppoll", "EINTR", "1..3")],
    &[fault("?poll,ppoll", "ENOMEM", "1+")],
    &[fault("accept4", "EMFILE", "1+")],
    &[fault("accept4", "ECONNABORTED", "1")],
    &[fault("read", "EINTR", "1")],
    &[fault("wait4", "EINTR", "1")],
    &[fault("clone,?clone3,?fork,?vfork", "EAGAIN", "1")],
];
