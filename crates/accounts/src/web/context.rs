//! The settings and templates of all pages, and the results of a request.

use std::time::Duration;

use tenfold_http::FieldName;

use super::page::{MemberPage, PLACE};
use super::protect::ProtectedFolder;
use super::view::{Templates, View};
use crate::accounts::Registration;
use crate::ask::{Query, Reply};

/// The settings of the pages.
#[derive(Clone, Debug, Default)]
pub struct WebSettings {
    /// The protected folders.
    pub protect: Vec<ProtectedFolder>,
    /// The visitors that can register.
    pub registration: Registration,
    /// The least number of characters of a password.
    pub least_password: usize,
    /// The lifetime of a session's cookie.
    pub absolute: Duration,
}

/// The pages of the members.
#[derive(Debug)]
pub struct Web {
    pub(super) settings: WebSettings,
    pub(super) templates: Templates,
}

/// The next step of a request.
pub enum RequestAction {
    /// The request does not concern members.
    Nothing,
    /// Receive its body, of at most so many bytes, then call [`Web::submit`].
    Body(u64),
    /// Send this page.
    Page(MemberPage),
    /// Send a query to the accounts.
    Query(PendingQuery),
}

/// A query to the accounts, with the handler of its reply.
pub struct PendingQuery {
    /// The query.
    pub request: Query,
    /// The session cookies of the request. If all of them are forged, the reply is [`Reply::Nobody`].
    pub sessions: Vec<String>,
    /// Turns the reply into the next step.
    pub then: Box<dyn FnOnce(Reply) -> ReplyAction + Send>,
}

/// The next step after a reply of the accounts.
pub enum ReplyAction {
    /// The visitor is a member: the site responds, and shared caches must not store the response.
    Serve,
    /// Send this page.
    Page(MemberPage),
}

impl Web {
    /// Loads the templates. `custom` returns the text that replaces the built-in template of a name.
    pub fn new(
        settings: WebSettings,
        custom: impl Fn(&str) -> Result<Option<String>, String>,
    ) -> Result<Web, String> {
        let templates = Templates::load(custom)?;
        Ok(Web { settings, templates })
    }

    /// Renders each page once. A custom template can take much memory and time: call this in a process with bounds.
    pub fn check(&self) -> Result<(), String> {
        self.templates.check()
    }

    /// The page after a login without `next=`.
    pub(super) fn home(&self) -> String {
        match self.settings.protect.first() {
            Some(folder) => folder.url(),
            None => format!("/{PLACE}/"),
        }
    }

    /// Renders the template `name`.
    pub(super) fn render(&self, status: u16, name: &str, view: &View) -> MemberPage {
        let view = View {
            place: format!("/{PLACE}/"),
            registration: match self.settings.registration {
                Registration::Open => "open",
                Registration::Invitation => "invitation",
                Registration::Closed => "closed",
            },
            least_password: self.settings.least_password,
            home: self.home(),
            ..view.clone()
        };
        match self.templates.render(&format!("{name}.html"), &view) {
            Ok(body) => MemberPage::html(status, body),
            // Only a custom template can fail after its check.
            Err(why) => MemberPage::text(500, why),
        }
    }

    /// The page for an unusable reply.
    pub(super) fn trouble(&self, reply: &Reply) -> MemberPage {
        let (status, seconds, heading, text) = match reply {
            Reply::Throttled { after } => {
                (429, *after, "Too many attempts", format!("Please try again in {after} seconds."))
            }
            _ => (503, 5, "Not now", "The members' database is unavailable. Please try again soon.".into()),
        };
        let view = View::message(heading, text);
        self.render(status, "message", &view).with(FieldName::RETRY_AFTER, seconds.to_string())
    }
}
