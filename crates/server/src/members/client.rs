//! A worker's queries to the accounts, and its waits for the answers.

mod answers;
pub(crate) mod filter;

use std::borrow::Cow;
use std::sync::Arc;

use tenfold_accounts::web::Web;
use tenfold_accounts::{Query, Reply};
use tenfold_engine::Plan;
use tenfold_engine::offload::{OffloadResult, QueueFull, promise};
use tenfold_http::Request;
use tenfold_site::{Shown, SitePath};

use super::channel::AccountsClient;
use crate::admission::lane::WorkLane;
use answers::Answers;
use filter::{Starts, WorkerFilter};

/// The threads of a worker that wait for quick answers; for a blocking model, the connections that may wait.
const WIDTH: usize = 4;
const WIDTH_IN_PLACE: usize = 64;
/// The questions of a worker that may wait for such a thread.
const QUEUE: usize = 256;

/// A worker's part of the members.
pub(crate) struct WorkerMembers {
    pub(crate) web: Arc<Web>,
    client: Arc<AccountsClient>,
    filter: Arc<WorkerFilter>,
    /// For quick answers.
    quick: WorkLane,
    /// For answers that wait for a hash, so that the others do not.
    slow: Slow,
}

/// Waits for a hash. The accounts process bounds their number for the whole server.
enum Slow {
    /// A connection of a blocking model simply waits.
    InPlace,
    /// A loop has.
    Aside(Answers),
}

impl WorkerMembers {
    /// Waits a moment for the filter of session cookies, so that the first connection finds it.
    pub(crate) fn new(web: Arc<Web>, client: AccountsClient, starts: Starts, plan: &Plan) -> WorkerMembers {
        let (width, slow) = match plan.blocking() {
            true => (WIDTH_IN_PLACE, Slow::InPlace),
            false => (WIDTH, Slow::Aside(Answers::default())),
        };
        let filter = WorkerFilter::new(starts);
        filter.learn(&client);
        WorkerMembers {
            web,
            client: Arc::new(client),
            filter: Arc::new(filter),
            quick: WorkLane::new(plan, width, QUEUE),
            slow,
        }
    }

    /// Asks the accounts, outside the event loop if there is one; `sessions` are the cookies of the asking session, and
    /// `address` is that of the client.
    ///
    /// # Errors
    /// [`QueueFull`] if the queue is full, or the part of the address.
    pub(crate) fn ask(
        &self,
        request: Query,
        sessions: Vec<String>,
        address: &str,
    ) -> Result<OffloadResult<Reply>, QueueFull> {
        let accepted = if sessions.is_empty() { Some(true) } else { self.filter.accepts(&sessions) };
        if accepted == Some(false) {
            let (promise, coming) = promise();
            promise.keep(Reply::Nobody);
            return Ok(coming);
        }
        match &self.slow {
            _ if !request.hashes() => {
                let (client, filter) = (self.client.clone(), self.filter.clone());
                self.quick.run(address, move || {
                    // The cookies are checked now if the filter was unknown before.
                    match accepted.is_none() && filter.learn(&client).accepts(&sessions) == Some(false) {
                        true => Reply::Nobody,
                        false => client.ask(&request),
                    }
                })
            }
            Slow::InPlace => {
                let (promise, coming) = promise();
                promise.keep(self.client.ask(&request));
                Ok(coming)
            }
            Slow::Aside(answers) => answers.ask(&self.client, &request),
        }
    }

    /// Returns the normalised path of a request if it is protected or a members' page. The site refuses invalid paths.
    pub(crate) fn path<'h>(&self, request: &Request<'h>) -> Option<Cow<'h, str>> {
        let path = meant(request.target.path)?;
        self.web.concerns(&path).then_some(path)
    }
}

/// Returns the path as the site normalises it, with hidden names; `None` if it is invalid.
fn meant(spelled: &str) -> Option<Cow<'_, str>> {
    // Without these characters a path is already normal.
    let plain = !spelled.contains('%') && !spelled.contains("//") && !spelled.contains("/.");
    match plain {
        true => Some(Cow::Borrowed(spelled.trim_matches('/'))),
        false => {
            let path = SitePath::parse_showing(spelled, &Shown::everything()).ok()?;
            Some(Cow::Owned(path.relative().to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h43_every_spelling_means_what_the_site_opens() {
        for spelled in [
            "/members/a",
            "/./members/a",
            "/members/./a",
            "/members//a/",
            "//members/a",
            "/%6dembers/a",
            "/.//members/%61/.",
        ] {
            assert_eq!(meant(spelled).as_deref(), Some("members/a"), "{spelled}");
            let opened = SitePath::parse(spelled).expect("the site opens it");
            assert_eq!(opened.relative(), "members/a", "{spelled}");
        }
        assert_eq!(meant("/members/.hidden/a").as_deref(), Some("members/.hidden/a"));
        assert_eq!(meant("/members/x~").as_deref(), Some("members/x~"));
        assert_eq!(meant("/a/../members"), None);
    }
}
