//! How connections do I/O: the choices of a plan, and the choice made for this kernel.

use std::fmt;

use serde::{Deserialize, Serialize};
use tenfold_sys::uring::Ring;

use crate::error::LoadError;
use crate::plan::LoadPlan;
use crate::plan::url::ServerAddress;

/// The I/O that a plan asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ChosenIo {
    /// The I/O of the run.
    pub means: IoBackend,
    /// The reason; empty in reports of versions without a choice.
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

const NO_TLS: &str = "io_uring here does not support https";

/// Chooses the I/O of a plan.
///
/// # Errors
/// [`LoadError::Failed`] if `io_uring` is asked for and this kernel lacks a part of it that the plan needs.
pub(crate) fn choose(plan: &LoadPlan) -> Result<ChosenIo, LoadError> {
    let of = |means, why: &str| Ok(ChosenIo { means, why: why.to_owned() });
    let missing = || Ring::connects().map_err(|(step, error)| format!("{step}: {error}")).err();
    match plan.io {
        IoChoice::Epoll => of(IoBackend::Epoll, "as requested"),
        IoChoice::Uring => match missing() {
            None => of(IoBackend::Uring, "as requested"),
            Some(what) => Err(LoadError::Failed(format!(
                "--io uring needs sockets and their options in io_uring (Linux 6.7): {what}; use --io epoll"
            ))),
        },
        IoChoice::Auto if plan.has_tls() => of(IoBackend::Epoll, NO_TLS),
        IoChoice::Auto if plan.per_connection() > 1 => of(IoBackend::Epoll, "connections persist"),
        IoChoice::Auto => match unsupported(plan).map(str::to_owned).or_else(missing) {
            None => of(IoBackend::Uring, "each request has a connection of its own"),
            Some(why) => of(IoBackend::Epoll, &why),
        },
    }
}

/// The reason why `io_uring` cannot serve a plan here, if there is one.
pub(crate) fn unsupported(plan: &LoadPlan) -> Option<&'static str> {
    if plan.urls.iter().any(|url| matches!(url.server, ServerAddress::Unix(_))) {
        return Some("io_uring here does not support Unix sockets");
    }
    if plan.has_tls() {
        return Some(NO_TLS);
    }
    if plan.slow_readers + plan.slow_writers > 0 {
        return Some("io_uring here does not support slow connections");
    }
    (plan.sources.count() > 0).then_some("io_uring here does not support --source")
}
