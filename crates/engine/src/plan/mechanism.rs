//! The foundations of I/O models: drivers of this crate, and facilities of the kernel or of libraries.

/// The driver of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Driver {
    /// Calls that block.
    Blocking,
    /// Nonblocking calls, and a selector that reports when to try them again.
    Readiness,
    /// Submitted operations and their completions.
    Completion,
}

impl Driver {
    /// The way to wait, in a word.
    pub fn name(self) -> &'static str {
        match self {
            Driver::Blocking => "blocking",
            Driver::Readiness => "readiness",
            Driver::Completion => "completion",
        }
    }
}

/// A facility of the kernel, or a library of the build, that can be missing or forbidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Facility {
    /// `epoll_create1(2)`, which a kernel can lack or a sandbox can forbid.
    Epoll,
    /// `io_uring_setup(2)` with single issuer and deferred task work (Linux 6.1).
    Ring,
    /// Multishot accept (Linux 5.19).
    MultishotAccept,
    /// Multishot receive (Linux 6.0).
    MultishotReceive,
    /// A ring of provided buffers (Linux 5.19).
    BufferRing,
    /// libevent 2.1, an optional part of the build.
    Libevent,
    /// Asio or Boost.Asio, an optional part of the build.
    Asio,
}

impl Facility {
    /// The name in messages.
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
