//! Members in the browser: which paths are theirs, the forms, the pages.
//!
//! Nothing here waits. [`Web::begin`] and [`Web::submit`] say what a request needs: nothing, its body, an answer of
//! the accounts ([`Ask`]), or none of it, because the page is known. [`protect`] decides what is protected,
//! [`visitor`] reads cookies and who asks, [`origin`] and the token of a form keep other sites out, [`forms`] are the
//! orders that forms give, [`pages`] what is shown.

#[cfg(test)]
mod any;
mod forms;
mod origin;
mod page;
mod pages;
pub mod protect;
pub mod trust;
mod visitor;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tenfold_http::{Head, Method, Peer};

use crate::accounts::Registration;
use crate::ask::{Reply, Request};
pub use page::Page;
use pages::Templates;
use protect::Folder;
use trust::TrustedProxy;
use visitor::Visitor;
pub use visitor::counted_address;

/// The folder of the pages, beneath the root of the site.
pub const PLACE: &str = "account";

/// Bytes of a form at most.
const LONGEST_FORM: u64 = 16 * 1024;

/// What the pages need to know.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Folders that are for members.
    pub protect: Vec<Folder>,
    /// Who can register.
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
    settings: Settings,
    templates: Templates,
}

/// What a request needs.
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
    pub request: Request,
    /// The cookie of the session in which it is asked: [`Reply::Nobody`] is the answer if the cookie was invented.
    pub session: Option<String>,
    /// Makes of the answer what is to be done.
    pub then: Box<dyn FnOnce(Reply) -> Outcome + Send>,
}

/// What the accounts' answer comes to.
pub enum Outcome {
    /// The visitor is a member: the site answers, and nobody else may keep the answer.
    Serve,
    /// This page.
    Page(Page),
}

impl Web {
    /// With the templates that are built in, or those of the folder that the settings name.
    ///
    /// # Errors
    /// One line: a template can not be read, or is none.
    pub fn new(settings: Settings) -> Result<Web, String> {
        let templates = Templates::load(settings.templates.as_deref())?;
        Ok(Web { settings, templates })
    }

    /// Whether a path, decoded and without a slash at either end, is for members or about them.
    pub fn concerns(&self, path: &str) -> bool {
        place(path).is_some() || self.settings.protect.iter().any(|folder| folder.holds(path))
    }

    /// What `head` needs, whose path means `path`.
    pub fn begin(self: &Arc<Web>, path: &str, head: &Head<'_>, peer: &Peer) -> Wanted {
        let visitor = Visitor::read(head, peer, &self.settings.trusted);
        let reads = matches!(head.method, Method::Get | Method::Head);
        match place(path) {
            Some(form) if head.method == Method::Post && forms::is_one(form) => Wanted::Body(LONGEST_FORM),
            Some(page) if reads => self.show(page, head, visitor),
            Some(page) => Wanted::Page(Page::method_not_allowed(page, forms::is_one(page))),
            None if self.settings.protect.iter().any(|folder| folder.holds(path)) => {
                self.admit(head, visitor)
            }
            None => Wanted::Nothing,
        }
    }

    /// What a form needs, whose fields are `body`.
    pub fn submit(self: &Arc<Web>, path: &str, head: &Head<'_>, body: &[u8], peer: &Peer) -> Wanted {
        let visitor = Visitor::read(head, peer, &self.settings.trusted);
        match place(path) {
            Some(form) => self.take(form, head, body, visitor),
            None => Wanted::Nothing,
        }
    }

    /// What `head` needs, whose file is for members though its path is not.
    pub fn begin_for_file(self: &Arc<Web>, head: &Head<'_>, peer: &Peer) -> Wanted {
        self.admit(head, Visitor::read(head, peer, &self.settings.trusted))
    }

    /// Asks whether the visitor is a member.
    fn admit(self: &Arc<Web>, head: &Head<'_>, visitor: Visitor) -> Wanted {
        let refusal = self.refusal(head);
        let Some(session) = visitor.session_digest() else { return Wanted::Page(refusal) };
        let web = self.clone();
        Wanted::Ask(Ask {
            request: Request::Check { session },
            session: visitor.session,
            then: Box::new(move |reply| match reply {
                Reply::Member { .. } => Outcome::Serve,
                Reply::Nobody => Outcome::Page(refusal),
                other => Outcome::Page(web.trouble(&other)),
            }),
        })
    }

    /// What who is no member gets in place of what is protected: the login for a page, 401 for the rest.
    fn refusal(&self, head: &Head<'_>) -> Page {
        match visitor::wants_page(head) {
            true => Page::to_login(head),
            false => Page::unauthorized(),
        }
    }

    /// Where one goes who has logged in and came from nowhere.
    fn home(&self) -> String {
        match self.settings.protect.first() {
            Some(folder) => folder.url(),
            None => format!("/{PLACE}/"),
        }
    }
}

/// What a path asks of the pages of members: `login` of `account/login`; nothing of `account` itself.
fn place(path: &str) -> Option<&str> {
    let rest = path.strip_prefix(PLACE)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
}
