//! Requests for members' pages and folders: they wait for the accounts process and are answered afterwards.

use tenfold_accounts::Reply as AccountsReply;
use tenfold_accounts::web::{MemberPage, PendingQuery, ReplyAction, RequestAction, counted_address};
use tenfold_engine::offload::QueueFull;
use tenfold_http::{Answer, Connection, OwnedRequest, Reply, Request, ResponseWriter};
use tenfold_site::{Answered, ResponseSummary};

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
                self.page(&page, request, connection, response);
                Some(Answer::Done)
            }
            RequestAction::Query(ask) => Some(self.ask(ask, request.to_owned(), connection.clone())),
        }
    }

    /// Asks the accounts off the loop, when earlier responses have been sent: a session counts until then.
    fn ask(&self, ask: PendingQuery, request: OwnedRequest, connection: Connection) -> Answer {
        let PendingQuery { request: query, sessions, then } = ask;
        // The service is there while it answers.
        let Some(this) = self.this.upgrade() else { return Answer::Close };
        Answer::later(async move {
            let address = counted_address(&connection);
            let coming = this.members.as_ref().map(|members| members.ask(query, sessions, &address));
            let said = match coming {
                Some(Ok(coming)) => coming.await,
                Some(Err(QueueFull)) | None => None,
            };
            let said = said.unwrap_or(AccountsReply::Unavailable);
            let reply: Reply = Box::new(move |response| this.said(then(said), request, connection, response));
            reply
        })
    }

    /// Answers with the reply of the accounts process.
    fn said(
        &self,
        comes: ReplyAction,
        request: OwnedRequest,
        connection: Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Answer {
        self.amend(&connection, response);
        if let ReplyAction::Page(page) = comes {
            request.read(|request| self.page(&page, request, &connection, response));
            return Answer::Done;
        }
        let asked = DeferredRequest { request, connection, began: self.began(), private: true };
        asked.keep_private(response);
        let answered = asked.request.read(|request| self.hosts.respond_to_member(request, response));
        self.answered(answered, asked, response)
    }

    /// Answers a request for a file that, once opened, proved to be for members only.
    pub(super) fn membership(&self, mut asked: DeferredRequest, response: &mut ResponseWriter<'_>) -> Answer {
        let answer = self.members.as_ref().and_then(|members| {
            asked.request.read(|request| {
                let wanted = members.web.begin_for_file(request, &asked.connection);
                self.member(wanted, request, &asked.connection, response)
            })
        });
        answer.unwrap_or_else(|| {
            let outcome = asked.request.read(|request| self.hosts.failed(request, response));
            self.staged(outcome, &mut asked, response);
            Answer::Done
        })
    }

    fn page(
        &self,
        page: &MemberPage,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) {
        let began = self.began();
        let body = page.stage(request, response);
        self.record(ResponseSummary::of(page.status, body), request, connection, response, began);
    }

    /// Stages the site's response, or queues its slow work.
    pub(super) fn answered(
        &self,
        answered: Answered,
        mut asked: DeferredRequest,
        response: &mut ResponseWriter<'_>,
    ) -> Answer {
        match answered {
            Answered::Staged(outcome) => {
                self.staged(outcome, &mut asked, response);
                Answer::Done
            }
            Answered::Work(work) => self.work(work, asked, response),
        }
    }
}
