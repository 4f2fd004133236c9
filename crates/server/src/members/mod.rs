//! Members, as the server has them: one process with the accounts, and a door to it in every worker.
//!
//! It is a process of its own on every engine and topology. Connections to the database, the queue of hashes and the
//! counts of attempts are the whole server's, whichever way the workers are made; threads begin after the last fork;
//! hashing is niced without slowing a worker; and what a driver of a database does wrong takes no connection of a
//! visitor along. [`door`] is the way between the two, [`process`] what serves there.

pub(crate) mod door;
pub(crate) mod place;
pub(crate) mod process;

use std::borrow::Cow;
use std::sync::Arc;

use tenfold_accounts::web::Web;
use tenfold_engine::Plan;
use tenfold_engine::offload::Lane;
use tenfold_http::Head;
use tenfold_site::SitePath;

use door::Door;

/// Threads of a worker that wait for the accounts; and where a blocking model waits in place, how many of its
/// connections.
const WIDTH: usize = 4;
const WIDTH_IN_PLACE: usize = 64;
/// Questions of a worker that wait for one of them.
const QUEUE: usize = 256;

/// What a worker has of the members.
pub(crate) struct Members {
    pub(crate) web: Arc<Web>,
    pub(crate) door: Arc<Door>,
    /// For what is known soon.
    quick: Lane,
    /// For what waits for a hash, so that the others do not.
    slow: Lane,
}

impl Members {
    pub(crate) fn new(web: Arc<Web>, door: Door, plan: &Plan) -> Members {
        let width = if plan.blocking() { WIDTH_IN_PLACE } else { WIDTH };
        let lane = || Lane::new(plan, width, QUEUE);
        Members { web, door: Arc::new(door), quick: lane(), slow: lane() }
    }

    /// Where a question waits for its answer.
    pub(crate) fn lane(&self, hashes: bool) -> &Lane {
        if hashes { &self.slow } else { &self.quick }
    }

    /// What the path of a request means, where it is for members or about them. One that means nothing is the
    /// site's to refuse.
    pub(crate) fn path<'h>(&self, head: &Head<'h>) -> Option<Cow<'h, str>> {
        let spelled = head.target.path;
        // Without these bytes a path is what it means; the site serves no dots, wherever they lead.
        let plain = !spelled.bytes().any(|byte| byte == b'%') && !spelled.contains("//");
        let path = match plain {
            true => Cow::Borrowed(spelled.trim_matches('/')),
            false => Cow::Owned(SitePath::parse(spelled).ok()?.relative().to_owned()),
        };
        self.web.concerns(&path).then_some(path)
    }
}
