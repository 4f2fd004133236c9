//! Answers that need something done which would hold up everybody else: a password to be hashed, a file to be
//! compressed.

use tenfold_http::response::Lines;
use tenfold_http::{Head, Out};

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
    run: Box<dyn FnOnce() -> Finish + Send>,
    /// What is answered where there is too much to do already; 503 without it.
    otherwise: Option<Otherwise>,
}

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
        let run = Box::new(move || {
            let done = work();
            Finish(Box::new(move |site, head, out| finish(done, site, head, out)))
        });
        Work(Box::new(Parts { run, otherwise: None }))
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
        let Parts { run, otherwise } = *self.0;
        let own = fields.clone();
        let run = Box::new(move || {
            let Finish(finish) = run();
            Finish(Box::new(move |site: &Site, head: &Head<'_>, out: &mut Out| {
                out.add_fields(&fields);
                finish(site, head, out).adding(out.take_fields())
            }))
        });
        let otherwise = otherwise.map(|Otherwise(answer)| {
            let answer: Box<Answering<Outcome>> = Box::new(move |site, head, out| {
                out.add_fields(&own);
                answer(site, head, out)
            });
            Otherwise(answer)
        });
        Work(Box::new(Parts { run, otherwise }))
    }

    /// What does it, which may take long, and what [`crate::Hosts::busy`] needs where nobody can.
    pub fn split(self) -> (impl FnOnce() -> Finish + Send, Option<Otherwise>) {
        (self.0.run, self.0.otherwise)
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
