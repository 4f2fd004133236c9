//! A coding that has yet to be made, and what can be answered without it.

use std::sync::Arc;

use tenfold_http::condition::{self, Verdict};
use tenfold_http::response::ResponseHead;
use tenfold_http::{Head, Method, Out};
use tenfold_sys::file::Facts;

use crate::Outcome;
use crate::representation::description::Description;
use crate::representation::variant::{Opened, Resource};

/// A coding of a file that has to be made: everything is known of it but its bytes.
#[derive(Debug)]
pub(crate) struct Unmade {
    pub(super) description: Description,
    /// Those of the file.
    pub(super) facts: Facts,
    pub(super) settled: bool,
}

impl Unmade {
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.settled
    }

    /// Answers where no content is needed: what the peer has already, what it does not want, and a HEAD,
    /// which goes without a length (RFC 9110 §9.3.2).
    pub(crate) fn respond(&self, request: &Head<'_>, out: &mut Out) -> Option<Outcome> {
        let verdict = match request.selective {
            true => condition::evaluate(request, self.description.validators()),
            false => Verdict::Proceed,
        };
        match verdict {
            Verdict::NotModified => Some(self.description.not_modified(request, out)),
            Verdict::PreconditionFailed => Some(self.description.failed(request, out)),
            Verdict::Proceed if request.method != Method::Head => None,
            Verdict::Proceed => {
                let mut head = ResponseHead::answering(request, 200, out);
                head.content_type(self.description.media_type());
                self.description.write_version(&mut head);
                head.end();
                Some(Outcome::of(200, 0))
            }
        }
    }

    /// It is made of these bytes.
    pub(crate) fn with(self, bytes: Arc<[u8]>) -> Resource {
        let facts = Facts { size: bytes.len() as u64, ..self.facts };
        Resource::describe(200, self.description, facts, self.settled, Opened::Made(bytes))
    }
}
