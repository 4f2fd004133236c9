//! A worker's queries to the accounts process.

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

/// The threads of a worker that wait for quick replies; with a blocking model, the connections that may wait.
const WIDTH: usize = 4;
const WIDTH_IN_PLACE: usize = 64;
/// The queries of a worker that may wait for such a thread.
const QUEUE: usize = 256;

/// A worker's part of the members.
pub(crate) struct WorkerMembers {
    pub(crate) web: Arc<Web>,
    client: Arc<AccountsClient>,
    filter: Arc<WorkerFilter>,
    /// Waits for quick replies.
    quick: WorkLane,
    /// Waits for replies with a hash, so that other replies are not delayed; `None` with a blocking model, which waits in
    /// the thread of the connection. The accounts process bounds the hashes of the whole server.
    slow: Option<Answers>,
}

impl WorkerMembers {
    /// Also asks for the filter of session cookies, so that the first connection finds it.
    pub(crate) fn new(web: Arc<Web>, client: AccountsClient, starts: Starts, plan: &Plan) -> WorkerMembers {
        let (width, slow) = match plan.blocking() {
            true => (WIDTH_IN_PLACE, None),
            false => (WIDTH, Some(Answers::default())),
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

    /// Sends a query, and waits for the reply outside the event loop; `sessions` are the session cookies of the request,
    /// and `address` is the address of the client. It fails if the queue, or the share of the address, is full.
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
            _ if request.hashing_client().is_none() => {
                let (client, filter) = (self.client.clone(), self.filter.clone());
                self.quick.run(address, move || {
                    // The cookies are checked now if the filter was unknown before.
                    match accepted.is_none() && filter.learn(&client).accepts(&sessions) == Some(false) {
                        true => Reply::Nobody,
                        false => client.ask(&request),
                    }
                })
            }
            None => {
                let (promise, coming) = promise();
                promise.keep(self.client.ask(&request));
                Ok(coming)
            }
            Some(answers) => answers.ask(&self.client, &request),
        }
    }

    /// The normalised path of a request, if it is protected or a members' page. The site refuses invalid paths.
    pub(crate) fn path<'h>(&self, request: &Request<'h>) -> Option<Cow<'h, str>> {
        let path = meant(request.target.path)?;
        self.web.concerns(&path).then_some(path)
    }
}

/// The path as the site normalises it, with hidden names; `None` if it is invalid.
fn meant(spelled: &str) -> Option<Cow<'_, str>> {
    // Without these characters, a path is already normal.
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
    fn h43_every_spelling_of_a_path_has_the_protection_of_the_opened_file() {
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
