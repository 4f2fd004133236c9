//! How connections do I/O: the choices, and the choice that was made.

use std::fmt;

use serde::{Deserialize, Serialize};
use tenfold_sys::uring::Ring;

use crate::error::LoadError;
use crate::plan::LoadPlan;
use crate::plan::url::ServerAddress;

/// How connections are to do I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoChoice {
    /// `uring` where each request has a connection of its own and the kernel has what that takes, else `epoll`.
    #[default]
    Auto,
    /// Calls are tried, and epoll says when to try again.
    Epoll,
    /// Operations are handed to `io_uring`, and come back done.
    Uring,
}

impl IoChoice {
    /// Every one, by its name.
    pub const ALL: [(&'static str, IoChoice); 3] =
        [("auto", IoChoice::Auto), ("epoll", IoChoice::Epoll), ("uring", IoChoice::Uring)];
}

/// How connections do I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IoBackend {
    /// As [`IoChoice::Epoll`].
    #[default]
    Epoll,
    /// As [`IoChoice::Uring`].
    Uring,
}

/// What was chosen, and why.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ChosenIo {
    /// What runs.
    pub means: IoBackend,
    /// Why; empty in the reports of versions that had no choice.
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

/// Chooses the I/O of a plan.
///
/// # Errors
/// [`LoadError::Failed`] if `io_uring` is asked for and this kernel lacks a part of it that the plan needs.
pub(crate) fn choose(plan: &LoadPlan) -> Result<ChosenIo, LoadError> {
    let of = |means, why: &str| Ok(ChosenIo { means, why: why.to_owned() });
    let missing = || Ring::connects().map_err(|(step, error)| format!("{step}: {error}")).err();
    match plan.way {
        IoChoice::Epoll => of(IoBackend::Epoll, "as asked for"),
        IoChoice::Uring => match missing() {
            None => of(IoBackend::Uring, "as asked for"),
            Some(what) => Err(LoadError::Failed(format!(
                "--io uring needs io_uring with sockets in slots and their options (Linux 6.7): {what}; use --io epoll"
            ))),
        },
        IoChoice::Auto if plan.per_connection() > 1 => of(IoBackend::Epoll, "connections stay"),
        IoChoice::Auto => match unserved(plan).map(str::to_owned).or_else(missing) {
            None => of(IoBackend::Uring, "each request has a connection of its own"),
            Some(why) => of(IoBackend::Epoll, &why),
        },
    }
}

/// The reason why `io_uring` cannot serve a plan here, if there is one.
pub(crate) fn unserved(plan: &LoadPlan) -> Option<&'static str> {
    if plan.urls.iter().any(|url| matches!(url.server, ServerAddress::Unix(_))) {
        return Some("io_uring does not serve Unix sockets here");
    }
    if plan.slow_readers + plan.slow_writers > 0 {
        return Some("io_uring does not serve slow connections here");
    }
    (plan.sources.count() > 0).then_some("io_uring does not serve --source here")
}
