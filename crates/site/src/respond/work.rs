//! Responses that need work on another thread, such as verifying a password or compressing a file.

use tenfold_http::{HeaderLines, Request, ResponseWriter};

use crate::representation::status_text;
use crate::representation::summary::ResponseSummary;
use crate::rules::realm::Attempts;
use crate::site::Site;

/// The result of a request.
pub enum Answered {
    /// The response is staged.
    Staged(ResponseSummary),
    /// Nothing is staged: another thread must do this work first.
    Work(Work),
}

// Several layers return it for every request, in registers.
const _: () = assert!(size_of::<Answered>() <= 16);

/// Work that a response needs.
pub struct Work(Box<WorkParts>);

struct WorkParts {
    need: Need,
    run: Box<dyn FnOnce(BoxedAttempts) -> FinishWork + Send>,
    attempts: BoxedAttempts,
    /// The response if the queue of work is full; None: 503.
    otherwise: Option<Otherwise>,
}

/// The kind of work that a response needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Work on any thread.
    Thread,
    /// Verifies a password on a thread, and counts attempts: [`Work::counted_by`].
    Password,
    /// The client's session must be looked up; [`crate::Hosts::respond_to_member`] answers members. The work
    /// itself answers 403.
    Membership,
}

type BoxedAttempts = Option<Box<dyn Attempts + Send>>;

/// A response that does without the work.
pub struct Otherwise(Box<Answering<ResponseSummary>>);

/// Makes a response from the result of work, or asks for more work.
pub struct FinishWork(Box<Answering<Answered>>);

/// Answers a request to a site.
type Answering<T> = dyn FnOnce(&Site, &Request<'_>, &mut ResponseWriter<'_>) -> T + Send;

impl Work {
    /// Returns work that runs `work` on another thread, and `finish` on the connection's thread.
    pub(crate) fn new<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
        finish: impl FnOnce(T, &Site, &Request<'_>, &mut ResponseWriter<'_>) -> Answered + Send + 'static,
    ) -> Work {
        Work::needing(Need::Thread, |_| work(), finish)
    }

    fn needing<T: Send + 'static>(
        need: Need,
        work: impl FnOnce(BoxedAttempts) -> T + Send + 'static,
        finish: impl FnOnce(T, &Site, &Request<'_>, &mut ResponseWriter<'_>) -> Answered + Send + 'static,
    ) -> Work {
        let run = Box::new(move |attempts: BoxedAttempts| {
            let done = work(attempts);
            FinishWork(Box::new(move |site, request, response| finish(done, site, request, response)))
        });
        Work(Box::new(WorkParts { need, run, attempts: None, otherwise: None }))
    }

    /// Returns work that verifies a password. Attempts are counted if [`Work::counted_by`] is called.
    pub(crate) fn verifying<T: Send + 'static>(
        verify: impl FnOnce(Option<&dyn Attempts>) -> T + Send + 'static,
        finish: impl FnOnce(T, &Site, &Request<'_>, &mut ResponseWriter<'_>) -> Answered + Send + 'static,
    ) -> Work {
        let verify = |attempts: BoxedAttempts| match attempts {
            Some(attempts) => verify(Some(&*attempts)),
            None => verify(None),
        };
        Work::needing(Need::Password, verify, finish)
    }

    /// Returns work that checks whether the client is a member.
    pub(crate) fn membership() -> Work {
        Work::needing(
            Need::Membership,
            |_| (),
            |(), _, request, response| status_text::plain(request, 403, response).into(),
        )
    }

    /// Counts attempts at passwords in `attempts`.
    #[must_use]
    pub fn counted_by(mut self, attempts: impl Attempts + Send + 'static) -> Work {
        self.0.attempts = Some(Box::new(attempts));
        self
    }

    /// The kind of work.
    pub fn need(&self) -> Need {
        self.0.need
    }

    /// Sets the response for a full queue of work.
    pub(crate) fn or_else(
        mut self,
        answer: impl FnOnce(&Site, &Request<'_>, &mut ResponseWriter<'_>) -> ResponseSummary + Send + 'static,
    ) -> Work {
        self.0.otherwise = Some(Otherwise(Box::new(answer)));
        self
    }

    /// Adds these fields to the head of the response.
    fn adding(self, fields: HeaderLines) -> Work {
        let WorkParts { need, run, attempts, otherwise } = *self.0;
        let own = fields.clone();
        let run = Box::new(move |attempts: BoxedAttempts| {
            let FinishWork(answer) = run(attempts);
            let answer: Box<Answering<Answered>> = Box::new(move |site, request, response| {
                response.add_fields(&fields);
                answer(site, request, response).adding(response.take_fields())
            });
            FinishWork(answer)
        });
        let otherwise = otherwise.map(|Otherwise(answer)| {
            let answer: Box<Answering<ResponseSummary>> = Box::new(move |site, request, response| {
                response.add_fields(&own);
                answer(site, request, response)
            });
            Otherwise(answer)
        });
        Work(Box::new(WorkParts { need, run, attempts, otherwise }))
    }

    /// Returns a function that does the work, which may take long, and the argument of [`crate::Hosts::busy`]
    /// for a full queue.
    pub fn split(self) -> (impl FnOnce() -> FinishWork + Send, Option<Otherwise>) {
        let WorkParts { run, attempts, otherwise, .. } = *self.0;
        (move || run(attempts), otherwise)
    }
}

impl Answered {
    /// Adds these fields to the head, if it is not written yet.
    pub(crate) fn adding(self, fields: HeaderLines) -> Answered {
        match self {
            Answered::Work(work) if !fields.is_empty() => Answered::Work(work.adding(fields)),
            answered => answered,
        }
    }
}

impl Otherwise {
    pub(crate) fn answer(
        self,
        site: &Site,
        request: &Request<'_>,
        response: &mut ResponseWriter<'_>,
    ) -> ResponseSummary {
        (self.0)(site, request, response)
    }
}

impl FinishWork {
    pub(crate) fn answer(
        self,
        site: &Site,
        request: &Request<'_>,
        response: &mut ResponseWriter<'_>,
    ) -> Answered {
        (self.0)(site, request, response)
    }
}

impl From<ResponseSummary> for Answered {
    fn from(outcome: ResponseSummary) -> Answered {
        Answered::Staged(outcome)
    }
}
