//! Requests for members' pages and folders: they wait for the accounts process and are answered afterwards.

use tenfold_accounts::Reply as AccountsReply;
use tenfold_accounts::web::{MemberPage, PendingQuery, ReplyAction, RequestAction, counted_address};
use tenfold_engine::offload::QueueFull;
use tenfold_http::{Answer, Connection, OwnedRequest, Request, Response, ResponseWriter};
use tenfold_site::ResponseSummary;

use super::{DeferredRequest, SharedService};

impl SharedService {
    /// Takes the step `wanted` of a request; `None` if the request does not concern members.
    pub(super) fn member(
        &self,
        wanted: RequestAction,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Option<Answer> {
        match wanted {
            RequestAction::Nothing => None,
            RequestAction::Body(max) => Some(Answer::NeedBody { max }),
            RequestAction::Page(page) => {
                let began = self.began();
                let outcome = write(&page, request, response);
                self.record(outcome, request, connection, response, began);
                Some(Answer::Done)
            }
            RequestAction::Query(ask) => {
                let (request, connection) = (request.to_owned(), connection.clone());
                let Some(this) = self.this.upgrade() else { return Some(Answer::Close) };
                Some(Answer::later(async move { this.respond_to_reply(ask, request, connection).await }))
            }
        }
    }

    /// Asks the accounts process, when earlier responses have been sent: a session counts until then. Responds with
    /// its reply.
    async fn respond_to_reply(
        &self,
        ask: PendingQuery,
        request: OwnedRequest,
        connection: Connection,
    ) -> Response {
        let PendingQuery { request: query, sessions, then } = ask;
        let coming = self.members.as_ref().map(|members| {
            let address = counted_address(&connection);
            members.ask(query, sessions, &address)
        });
        let reply = match coming {
            Some(Ok(coming)) => coming.await,
            Some(Err(QueueFull)) | None => None,
        };
        let action = then(reply.unwrap_or(AccountsReply::Unavailable));
        let is_member = matches!(action, ReplyAction::Serve);
        let asked = DeferredRequest { request, connection, began: self.began(), private: is_member };
        let staged = self.stage(&asked, |request, response| match action {
            ReplyAction::Page(page) => write(&page, request, response).into(),
            ReplyAction::Serve => self.hosts.respond_to_member(request, response),
        });
        match staged {
            Ok(response) => response,
            Err(work) => Box::pin(self.respond_after(work, asked)).await,
        }
    }

    /// Responds to a request for a file that, once opened, proved to be for members only.
    pub(super) async fn respond_to_membership(&self, asked: DeferredRequest) -> Response {
        let wanted = self.members.as_ref().map(|members| {
            asked.request.read(|request| members.web.begin_for_file(request, &asked.connection))
        });
        if let Some(RequestAction::Query(ask)) = wanted {
            return self.respond_to_reply(ask, asked.request, asked.connection).await;
        }
        let staged = self.stage(&asked, |request, response| match wanted {
            Some(RequestAction::Page(page)) => write(&page, request, response).into(),
            _ => self.hosts.failed(request, response).into(),
        });
        // Neither a page nor an error needs work.
        staged.unwrap_or_default()
    }
}

/// Writes a page, and returns its summary.
fn write(page: &MemberPage, request: &Request<'_>, response: &mut ResponseWriter<'_>) -> ResponseSummary {
    ResponseSummary::of(page.status, page.stage(request, response))
}
