//! The settings and templates that every page needs, and the answers to a request.

use std::path::PathBuf;
use std::time::Duration;

use tenfold_http::FieldName;

use super::page::{PLACE, Page};
use super::protect::Folder;
use super::trust::TrustedProxy;
use super::view::{Templates, View};
use crate::accounts::Registration;
use crate::ask::{Query, Reply};

/// The settings of the pages.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Folders that are for members.
    pub protect: Vec<Folder>,
    /// The visitors that can register.
    pub registration: Registration,
    /// Characters that a password has at least.
    pub least_password: usize,
    /// How long the cookie of a session is kept.
    pub absolute: Duration,
    /// Trusted proxies.
    pub trusted: Vec<TrustedProxy>,
    /// A folder with templates that are used in place of the built-in ones.
    pub templates: Option<PathBuf>,
}

/// The pages of the members.
#[derive(Debug)]
pub struct Web {
    pub(super) settings: Settings,
    pub(super) templates: Templates,
}

/// The next step of a request.
pub enum Wanted {
    /// It is none of the members' business.
    Nothing,
    /// Its body, of at most so many bytes: then [`Web::submit`].
    Body(u64),
    /// This page.
    Page(Page),
    /// An answer of the accounts.
    Ask(Ask),
}

/// A question to the accounts, and what follows the answer.
pub struct Ask {
    /// The question.
    pub request: Query,
    /// The cookie of the session in which it is asked: [`Reply::Nobody`] is the answer if the cookie was invented.
    pub session: Option<String>,
    /// Makes of the answer what is to be done.
    pub then: Box<dyn FnOnce(Reply) -> Outcome + Send>,
}

/// The consequence of the accounts' reply.
pub enum Outcome {
    /// The visitor is a member: the site answers, and nobody else may keep the answer.
    Serve,
    /// This page.
    Page(Page),
}

impl Web {
    /// Loads the built-in templates, or those of the folder that the settings name.
    ///
    /// # Errors
    /// One line: a template cannot be read, or is none.
    pub fn new(settings: Settings) -> Result<Web, String> {
        let templates = Templates::load(settings.templates.as_deref())?;
        Ok(Web { settings, templates })
    }

    /// The page to show after a login that names none.
    pub(super) fn home(&self) -> String {
        match self.settings.protect.first() {
            Some(folder) => folder.url(),
            None => format!("/{PLACE}/"),
        }
    }

    /// The template `name` filled.
    pub(super) fn render(&self, status: u16, name: &str, view: &View) -> Page {
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
            Ok(body) => Page::html(status, body),
            // A template that somebody wrote; it was filled once when it was read.
            Err(why) => {
                Page::html(500, format!("<!DOCTYPE html><title>500</title><pre>{}</pre>", escaped(&why)))
            }
        }
    }

    /// The page to show when the accounts have no answer.
    pub(super) fn trouble(&self, reply: &Reply) -> Page {
        let (status, seconds, heading, text) = match reply {
            Reply::Throttled { after } => {
                (429, *after, "Too many attempts", format!("Please try again in {after} seconds."))
            }
            _ => (
                503,
                5,
                "Not now",
                "Members cannot be looked up at the moment. Please try again soon.".into(),
            ),
        };
        let view = View::message(heading, text);
        self.render(status, "message", &view).with(FieldName::RETRY_AFTER, seconds.to_string())
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
