//! Members in the browser: their paths, forms and pages.
//!
//! Nothing here blocks. [`Web::begin`] and [`Web::submit`] return the next step of a request: to serve a file, to receive
//! the body, to send a query to the accounts ([`PendingQuery`]), or to send a page. [`protect`] decides which paths are
//! protected. [`visitor`] reads cookies and the client's address. [`origin`] and the token of a form keep other sites
//! out. [`forms`] handles forms, and [`pages`] shows pages.

#[cfg(test)]
mod any;
mod context;
mod forms;
mod origin;
mod page;
mod pages;
pub mod protect;
mod view;
mod visitor;

use std::sync::Arc;

use tenfold_http::{Connection, Method, Request};

use crate::ask::{Query, Reply};
pub use context::{PendingQuery, ReplyAction, RequestAction, Web, WebSettings};
pub use page::{MemberPage, PLACE};
pub use view::template_names;
use visitor::RequestClient;
pub use visitor::counted_address;

/// The greatest size of a form in bytes.
const LONGEST_FORM: u64 = 16 * 1024;

impl Web {
    /// Whether a decoded path without outer slashes is for members or about them.
    pub fn concerns(&self, path: &str) -> bool {
        place(path).is_some() || self.settings.protect.iter().any(|folder| folder.holds(path))
    }

    /// The next step of a request for the normalised `path`.
    pub fn begin(
        self: &Arc<Web>,
        path: &str,
        request: &Request<'_>,
        connection: &Connection,
    ) -> RequestAction {
        let visitor = RequestClient::read(request, connection);
        let reads = matches!(request.method, Method::Get | Method::Head);
        match place(path) {
            Some(form) if request.method == Method::Post && forms::is_one(form) => {
                RequestAction::Body(LONGEST_FORM)
            }
            Some(page) if reads => self.show(page, request, visitor),
            Some(page) => RequestAction::Page(MemberPage::method_not_allowed(page, forms::is_one(page))),
            None if self.settings.protect.iter().any(|folder| folder.holds(path)) => {
                self.admit(request, visitor)
            }
            None => RequestAction::Nothing,
        }
    }

    /// The next step of a form with the fields in `body`.
    pub fn submit(
        self: &Arc<Web>,
        path: &str,
        request: &Request<'_>,
        body: &[u8],
        connection: &Connection,
    ) -> RequestAction {
        let visitor = RequestClient::read(request, connection);
        match place(path) {
            Some(form) => self.take(form, request, body, visitor),
            None => RequestAction::Nothing,
        }
    }

    /// The next step of a request with a protected file but an unprotected path.
    pub fn begin_for_file(self: &Arc<Web>, request: &Request<'_>, connection: &Connection) -> RequestAction {
        self.admit(request, RequestClient::read(request, connection))
    }

    /// Asks the accounts whether the visitor is a member.
    fn admit(self: &Arc<Web>, request: &Request<'_>, visitor: RequestClient) -> RequestAction {
        let refusal = self.refusal(request);
        let Some(session) = visitor.session_digests() else { return RequestAction::Page(refusal) };
        let web = self.clone();
        RequestAction::Query(PendingQuery {
            request: Query::Check { session },
            sessions: visitor.sessions,
            then: Box::new(move |reply| match reply {
                Reply::Member { .. } => ReplyAction::Serve,
                Reply::Nobody => ReplyAction::Page(refusal),
                other => ReplyAction::Page(web.trouble(&other)),
            }),
        })
    }

    /// The response to anonymous requests for protected paths: the login for a page, 401 otherwise.
    fn refusal(&self, request: &Request<'_>) -> MemberPage {
        match visitor::wants_page(request) {
            true => MemberPage::to_login(request),
            false => MemberPage::unauthorized(),
        }
    }
}

/// The name of a page of members: `login` of `account/login`; `None` for `account` itself.
fn place(path: &str) -> Option<&str> {
    let rest = path.strip_prefix(PLACE)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
}
