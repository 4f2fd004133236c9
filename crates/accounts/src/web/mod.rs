//! Members in the browser: which paths are theirs, the forms, the pages.
//!
//! Nothing here waits. [`Web::begin`] and [`Web::submit`] say what a request needs: nothing, its body, an answer of
//! the accounts ([`Ask`]), or none of it, because the page is known. [`protect`] decides what is protected,
//! [`visitor`] reads cookies and the client's address, [`origin`] and the token of a form keep other sites out, [`forms`]
//! carries out the forms, [`pages`] shows the pages, both with the settings and templates of [`context`].

#[cfg(test)]
mod any;
mod context;
mod forms;
mod origin;
mod page;
mod pages;
pub mod protect;
pub mod trust;
mod view;
mod visitor;

use std::sync::Arc;

use tenfold_http::{Connection, Method, Request};

use crate::ask::{Query, Reply};
pub use context::{Ask, Outcome, Settings, Wanted, Web};
pub use page::{PLACE, Page};
use visitor::Visitor;
pub use visitor::counted_address;

/// Bytes of a form at most.
const LONGEST_FORM: u64 = 16 * 1024;

impl Web {
    /// Whether a path, decoded and without a slash at either end, is for members or about them.
    pub fn concerns(&self, path: &str) -> bool {
        place(path).is_some() || self.settings.protect.iter().any(|folder| folder.holds(path))
    }

    /// What `head` needs, whose path means `path`.
    pub fn begin(self: &Arc<Web>, path: &str, head: &Request<'_>, connection: &Connection) -> Wanted {
        let visitor = Visitor::read(head, connection, &self.settings.trusted);
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
    pub fn submit(
        self: &Arc<Web>,
        path: &str,
        head: &Request<'_>,
        body: &[u8],
        connection: &Connection,
    ) -> Wanted {
        let visitor = Visitor::read(head, connection, &self.settings.trusted);
        match place(path) {
            Some(form) => self.take(form, head, body, visitor),
            None => Wanted::Nothing,
        }
    }

    /// What `head` needs, whose file is for members though its path is not.
    pub fn begin_for_file(self: &Arc<Web>, head: &Request<'_>, connection: &Connection) -> Wanted {
        self.admit(head, Visitor::read(head, connection, &self.settings.trusted))
    }

    /// Asks whether the visitor is a member.
    fn admit(self: &Arc<Web>, head: &Request<'_>, visitor: Visitor) -> Wanted {
        let refusal = self.refusal(head);
        let Some(session) = visitor.session_digest() else { return Wanted::Page(refusal) };
        let web = self.clone();
        Wanted::Ask(Ask {
            request: Query::Check { session },
            session: visitor.session,
            then: Box::new(move |reply| match reply {
                Reply::Member { .. } => Outcome::Serve,
                Reply::Nobody => Outcome::Page(refusal),
                other => Outcome::Page(web.trouble(&other)),
            }),
        })
    }

    /// What who is no member gets in place of what is protected: the login for a page, 401 for the rest.
    fn refusal(&self, head: &Request<'_>) -> Page {
        match visitor::wants_page(head) {
            true => Page::to_login(head),
            false => Page::unauthorized(),
        }
    }
}

/// What a path asks of the pages of members: `login` of `account/login`; nothing of `account` itself.
fn place(path: &str) -> Option<&str> {
    let rest = path.strip_prefix(PLACE)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
}
