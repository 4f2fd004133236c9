//! The choice of how the connections of a plan do I/O on this kernel.

use tenfold_sys::uring::Ring;

use crate::error::Wrong;
use crate::plan::Plan;
use crate::plan::url::Place;
use crate::plan::way::{Chosen, Means, Way};

/// Chooses the I/O of a plan.
///
/// # Errors
/// [`Wrong::Failed`] if `io_uring` is asked for and this kernel lacks a part of it that the plan needs.
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

/// The reason why `io_uring` cannot serve a plan here, if there is one.
pub(crate) fn unserved(plan: &Plan) -> Option<&'static str> {
    if plan.urls.iter().any(|url| matches!(url.place, Place::Unix(_))) {
        return Some("io_uring does not serve Unix sockets here");
    }
    if plan.slow_readers + plan.slow_writers > 0 {
        return Some("io_uring does not serve slow connections here");
    }
    (plan.sources.count() > 0).then_some("io_uring does not serve --source here")
}
