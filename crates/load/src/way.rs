//! How connections do I/O: what is asked for, and what it comes to on this kernel.

use std::fmt;

use serde::{Deserialize, Serialize};
use tenfold_sys::uring::Ring;

use crate::error::Wrong;
use crate::plan::Plan;
use crate::url::Place;

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

/// What runs a plan.
///
/// # Errors
/// [`Wrong::Failed`], when `io_uring` is asked for and this kernel does not have what it takes.
pub(crate) fn choose(plan: &Plan) -> Result<Chosen, Wrong> {
    let of = |means, why: &str| Ok(Chosen { means, why: why.to_owned() });
    let missing = || Ring::connects().map_err(|(step, error)| format!("{step}: {error}")).err();
    match plan.way {
        Way::Epoll => of(Means::Epoll, "as asked for"),
        Way::Uring => match missing() {
            None => of(Means::Uring, "as asked for"),
            Some(what) => Err(Wrong::Failed(format!(
                "--io uring needs io_uring with sockets in slots and their options (Linux 6.7): {what}; use --io epoll"
            ))),
        },
        Way::Auto if plan.per_connection() > 1 => of(Means::Epoll, "connections stay"),
        Way::Auto => match unserved(plan).map(str::to_owned).or_else(missing) {
            None => of(Means::Uring, "each request has a connection of its own"),
            Some(why) => of(Means::Epoll, &why),
        },
    }
}

/// What of a plan `io_uring` does not serve here.
pub(crate) fn unserved(plan: &Plan) -> Option<&'static str> {
    if plan.urls.iter().any(|url| matches!(url.place, Place::Unix(_))) {
        return Some("io_uring does not serve Unix sockets here");
    }
    if plan.slow_readers + plan.slow_writers > 0 {
        return Some("io_uring does not serve slow connections here");
    }
    (plan.sources.count() > 0).then_some("io_uring does not serve --source here")
}
