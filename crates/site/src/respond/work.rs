//! Answers that need something done which would hold up everybody else: a password to be hashed, a file to be
//! compressed.

use tenfold_http::response::Lines;
use tenfold_http::{Head, Out};

use crate::respond::message;
use crate::{Outcome, Site};

/// What became of a request.
pub enum Answered {
    /// The response is staged.
    Staged(Outcome),
    /// Nothing is staged: this has to be done first, on another thread.
    Work(Work),
}

// It is handed through several layers for every request: in registers.
const _: () = assert!(size_of::<Answered>() <= 16);

/// Work of which an answer is made.
pub struct Work(Box<Parts>);

struct Parts {
    need: Need,
    run: Box<dyn FnOnce(Counted) -> Finish + Send>,
    attempts: Counted,
    /// What is answered where there is too much to do already; 503 without it.
    otherwise: Option<Otherwise>,
}

/// What has to be done for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Something that takes a thread, and nothing else.
    Thread,
    /// A password is verified on a thread. Attempts are to be counted: [`Work::counted_by`].
    Password,
    /// Whether the client is a member has to be found out: a member is answered by
    /// [`crate::Hosts::respond_to_member`]. The work itself answers 403.
    Membership,
}

/// A user of a realm, as a client names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name, cut to a bounded length.
    pub name: String,
    /// A digest of the credentials, if the same ones have been right before.
    pub known: Option<String>,
}

/// Counts attempts at passwords.
pub trait Attempts {
    /// Admits an attempt at this user's password.
    ///
    /// # Errors
    /// The seconds after which another one is admitted.
    fn admit(&self, user: &User) -> Result<(), u64>;

    /// The attempt that was admitted had the right password.
    fn succeeded(&self);
}

type Counted = Option<Box<dyn Attempts + Send>>;

/// Answers without the work.
pub struct Otherwise(Box<Answering<Outcome>>);

/// Makes an answer of work that was done: stages it, or asks for more.
pub struct Finish(Box<Answering<Answered>>);

/// Answers a request to a site.
type Answering<T> = dyn FnOnce(&Site, &Head<'_>, &mut Out) -> T + Send;

impl Work {
    /// `work`, and what makes an answer of it on the connection's own thread.
    pub(crate) fn new<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
        finish: impl FnOnce(T, &Site, &Head<'_>, &mut Out) -> Answered + Send + 'static,
    ) -> Work {
        Work::needing(Need::Thread, |_| work(), finish)
    }

    fn needing<T: Send + 'static>(
        need: Need,
        work: impl FnOnce(Counted) -> T + Send + 'static,
        finish: impl FnOnce(T, &Site, &Head<'_>, &mut Out) -> Answered + Send + 'static,
    ) -> Work {
        let run = Box::new(move |attempts: Counted| {
            let done = work(attempts);
            Finish(Box::new(move |site, head, out| finish(done, site, head, out)))
        });
        Work(Box::new(Parts { need, run, attempts: None, otherwise: None }))
    }

    /// Verifies a password, for a client whose attempts are counted where something counts them.
    pub(crate) fn verifying<T: Send + 'static>(
        verify: impl FnOnce(Option<&dyn Attempts>) -> T + Send + 'static,
        finish: impl FnOnce(T, &Site, &Head<'_>, &mut Out) -> Answered + Send + 'static,
    ) -> Work {
        let verify = |attempts: Counted| match attempts {
            Some(attempts) => verify(Some(&*attempts)),
            None => verify(None),
        };
        Work::needing(Need::Password, verify, finish)
    }

    /// Finds out whether the client is a member.
    pub(crate) fn membership() -> Work {
        Work::needing(Need::Membership, |_| (), |(), _, head, out| message::plain(head, 403, out).into())
    }

    /// The same, where attempts at passwords are counted by this.
    #[must_use]
    pub fn counted_by(mut self, attempts: impl Attempts + Send + 'static) -> Work {
        self.0.attempts = Some(Box::new(attempts));
        self
    }

    /// What has to be done for it.
    pub fn need(&self) -> Need {
        self.0.need
    }

    /// The same, and what is answered where there is too much to do already.
    pub(crate) fn or_else(
        mut self,
        answer: impl FnOnce(&Site, &Head<'_>, &mut Out) -> Outcome + Send + 'static,
    ) -> Work {
        self.0.otherwise = Some(Otherwise(Box::new(answer)));
        self
    }

    /// The same, where the head of the answer gets these fields.
    fn adding(self, fields: Lines) -> Work {
        let Parts { need, run, attempts, otherwise } = *self.0;
        let own = fields.clone();
        let run = Box::new(move |attempts: Counted| {
            let Finish(answer) = run(attempts);
            let answer: Box<Answering<Answered>> = Box::new(move |site, head, out| {
                out.add_fields(&fields);
                answer(site, head, out).adding(out.take_fields())
            });
            Finish(answer)
        });
        let otherwise = otherwise.map(|Otherwise(answer)| {
            let answer: Box<Answering<Outcome>> = Box::new(move |site, head, out| {
                out.add_fields(&own);
                answer(site, head, out)
            });
            Otherwise(answer)
        });
        Work(Box::new(Parts { need, run, attempts, otherwise }))
    }

    /// What does it, which may take long, and what [`crate::Hosts::busy`] needs where nobody can.
    pub fn split(self) -> (impl FnOnce() -> Finish + Send, Option<Otherwise>) {
        let Parts { run, attempts, otherwise, .. } = *self.0;
        (move || run(attempts), otherwise)
    }
}

impl Answered {
    /// The same, where these fields are for its head, which is not written yet.
    pub(crate) fn adding(self, fields: Lines) -> Answered {
        match self {
            Answered::Work(work) if !fields.is_empty() => Answered::Work(work.adding(fields)),
            answered => answered,
        }
    }
}

impl Otherwise {
    pub(crate) fn answer(self, site: &Site, head: &Head<'_>, out: &mut Out) -> Outcome {
        (self.0)(site, head, out)
    }
}

impl Finish {
    pub(crate) fn answer(self, site: &Site, head: &Head<'_>, out: &mut Out) -> Answered {
        (self.0)(site, head, out)
    }
}

impl From<Outcome> for Answered {
    fn from(outcome: Outcome) -> Answered {
        Answered::Staged(outcome)
    }
}
