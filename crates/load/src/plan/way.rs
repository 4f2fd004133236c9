//! How connections do I/O: the choices, and the choice that was made.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How connections are to do I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// `uring` where each request has a connection of its own and the kernel has what that takes, else `epoll`.
    #[default]
    Auto,
    /// Calls are tried, and epoll says when to try again.
    Epoll,
    /// Operations are handed to `io_uring`, and come back done.
    Uring,
}

impl Way {
    /// Every one, by its name.
    pub const ALL: [(&'static str, Way); 3] =
        [("auto", Way::Auto), ("epoll", Way::Epoll), ("uring", Way::Uring)];
}

/// How connections do I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Means {
    /// As [`Way::Epoll`].
    #[default]
    Epoll,
    /// As [`Way::Uring`].
    Uring,
}

/// What was chosen, and why.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Chosen {
    /// What runs.
    pub means: Means,
    /// Why; empty in the reports of versions that had no choice.
    pub why: String,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.means {
            Means::Epoll => "I/O by epoll",
            Means::Uring => "I/O by io_uring",
        })?;
        if self.why.is_empty() { Ok(()) } else { write!(f, ": {}", self.why) }
    }
}
