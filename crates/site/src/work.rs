//! Answers that need something done which would hold up everybody else: a password to be hashed, a file to be
//! compressed.

use tenfold_http::{Head, Out};

use crate::{Outcome, Site};

/// What became of a request.
pub enum Answered {
    /// The response is staged.
    Staged(Outcome),
    /// Nothing is staged: this has to be done first, on another thread.
    Work(Work),
}

/// Work of which an answer is made.
pub struct Work(Box<dyn FnOnce() -> Finish + Send>);

/// Makes an answer of work that was done: stages it, or asks for more.
pub struct Finish(Box<dyn FnOnce(&Site, &Head<'_>, &mut Out) -> Answered + Send>);

impl Work {
    /// `work`, and what makes an answer of it on the connection's own thread.
    pub(crate) fn new<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
        finish: impl FnOnce(T, &Site, &Head<'_>, &mut Out) -> Answered + Send + 'static,
    ) -> Work {
        Work(Box::new(move || {
            let done = work();
            Finish(Box::new(move |site, head, out| finish(done, site, head, out)))
        }))
    }

    /// Does it. It may take long.
    pub fn run(self) -> Finish {
        (self.0)()
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
