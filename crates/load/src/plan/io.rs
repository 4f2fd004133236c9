//! The I/O of connections: the choices of a plan, and the choice for this kernel.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The I/O that a plan asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum IoChoice {
    /// `uring` if each request has its own connection without TLS and the kernel supports it, otherwise `epoll`.
    #[default]
    Auto,
    /// System calls are tried first; epoll reports when to retry.
    Epoll,
    /// Operations are submitted to `io_uring`, which reports their completion.
    Uring,
}

impl IoChoice {
    /// Every choice and its name.
    pub const ALL: [(&'static str, IoChoice); 3] =
        [("auto", IoChoice::Auto), ("epoll", IoChoice::Epoll), ("uring", IoChoice::Uring)];
}

/// The I/O of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IoBackend {
    /// See [`IoChoice::Epoll`].
    #[default]
    Epoll,
    /// See [`IoChoice::Uring`].
    Uring,
}

/// The choice and its reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenIo {
    /// The I/O of the run.
    pub means: IoBackend,
    /// The reason.
    pub why: String,
}

impl fmt::Display for ChosenIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.means {
            IoBackend::Epoll => "I/O by epoll",
            IoBackend::Uring => "I/O by io_uring",
        })?;
        if self.why.is_empty() { Ok(()) } else { write!(f, ": {}", self.why) }
    }
}
