//! Members in the way of a request: what is theirs waits for the accounts and is answered then.

use tenfold_accounts::Reply as Said;
use tenfold_accounts::web::{Ask, Outcome as Comes, Page, Wanted};
use tenfold_http::{Answer, Head, KeptHead, Out, Peer, Reply};
use tenfold_site::{Answered, ResponseSummary};

use super::state::{Asked, Shared};
use crate::members::client::Members;

impl Shared {
    /// What is answered where the path is for members or about them. `path` is what it means.
    pub(super) fn member(
        &self,
        members: &Members,
        wanted: Wanted,
        head: &Head<'_>,
        peer: &Peer,
        out: &mut Out,
    ) -> Option<Answer> {
        match wanted {
            Wanted::Nothing => None,
            Wanted::Body(max) => Some(Answer::NeedBody { max }),
            Wanted::Page(page) => {
                self.page(&page, head, peer, out);
                Some(Answer::Done)
            }
            Wanted::Ask(ask) => Some(self.ask(members, ask, head.keep(), *peer, out)),
        }
    }

    /// Asks the accounts off the loop.
    fn ask(&self, members: &Members, ask: Ask, head: KeptHead, peer: Peer, out: &mut Out) -> Answer {
        let Ask { request, session, then } = ask;
        let coming = members.ask(request, session);
        let (Ok(coming), Some(this)) = (coming, self.this.upgrade()) else {
            return self.said(then(Said::Unavailable), head, peer, out);
        };
        Answer::later(async move {
            let said = coming.await.unwrap_or(Said::Unavailable);
            let reply: Reply = Box::new(move |out| this.said(then(said), head, peer, out));
            reply
        })
    }

    /// Answers with what the accounts said.
    fn said(&self, comes: Comes, mut head: KeptHead, peer: Peer, out: &mut Out) -> Answer {
        if let Comes::Page(page) = comes {
            head.read(|head| self.page(&page, head, &peer, out));
            return Answer::Done;
        }
        let began = self.began();
        let answered = head.read(|head| self.hosts.respond_to_member(head, out));
        self.answered(answered, Asked { head, peer, began, private: true }, out)
    }

    /// Answers a request whose file turned out to be for members.
    pub(super) fn membership(&self, mut asked: Asked, out: &mut Out) -> Answer {
        let answer = self.members.as_ref().and_then(|members| {
            asked.head.read(|head| {
                let wanted = members.web.begin_for_file(head, &asked.peer);
                self.member(members, wanted, head, &asked.peer, out)
            })
        });
        answer.unwrap_or_else(|| {
            let outcome = asked.head.read(|head| self.hosts.failed(head, out));
            self.staged(outcome, &mut asked, out);
            Answer::Done
        })
    }

    fn page(&self, page: &Page, head: &Head<'_>, peer: &Peer, out: &mut Out) {
        let began = self.began();
        let body = page.stage(head, out);
        self.record(ResponseSummary::of(page.status, body), head, peer, out, began);
    }

    /// Stages what the site answers, or has it worked for.
    fn answered(&self, answered: Answered, mut asked: Asked, out: &mut Out) -> Answer {
        match answered {
            Answered::Staged(outcome) => {
                self.staged(outcome, &mut asked, out);
                Answer::Done
            }
            Answered::Work(work) => self.work(work, asked, out),
        }
    }
}
