//! An encoding that is not made yet, and the responses that do not need its bytes.

use std::fs::File;
use std::sync::Arc;

use tenfold_http::semantics::condition::{self, ConditionResult};
use tenfold_http::{Method, OpenFile, Request, ResponseWriter};
use tenfold_sys::file::{self, FileStat};

use crate::cache::encoded::{EncodedCache, FileVersion};
use crate::representation::compress::encode;
use crate::representation::description::Description;
use crate::representation::summary::ResponseSummary;

/// The bytes of a file, for work outside the loop.
pub(crate) enum EncodingSource {
    Memory(Arc<[u8]>),
    File(Arc<OpenFile>),
}

/// An encoding that is not made yet: everything except its bytes.
#[derive(Debug)]
pub(crate) struct Unmade {
    pub(crate) description: Description,
    pub(crate) facts: FileStat,
    pub(crate) settled: bool,
}

impl Unmade {
    /// Answers if the response needs no content: 304, 412, or a HEAD, whose `Content-Length` is unknown and
    /// omitted (RFC 9110 §9.3.2).
    pub(crate) fn respond(
        &self,
        request: &Request<'_>,
        response: &mut ResponseWriter<'_>,
    ) -> Option<ResponseSummary> {
        let verdict = match request.selective {
            true => condition::evaluate(request, self.description.validators()),
            false => ConditionResult::Proceed,
        };
        match verdict {
            ConditionResult::NotModified => Some(self.description.not_modified(response)),
            ConditionResult::PreconditionFailed => Some(self.description.failed(request, response)),
            ConditionResult::Proceed if request.method != Method::Head => None,
            ConditionResult::Proceed => {
                let mut head = response.head(200);
                head.content_type(self.description.media_type());
                self.description.write_version(&mut head);
                head.end();
                Some(ResponseSummary::of(200, 0))
            }
        }
    }

    /// Finds or makes the bytes; None if the file has changed or cannot be read.
    pub(crate) fn make(&self, source: &EncodingSource, cache: &EncodedCache) -> Option<Arc<[u8]>> {
        let coding = self.description.coding;
        // Only a settled file is distinguishable from its later versions.
        let version = self.settled.then(|| FileVersion::new(&self.facts, coding));
        cache.find_or_make(version, || match source {
            EncodingSource::Memory(bytes) => Some(encode(bytes, coding).ok()?.into()),
            EncodingSource::File(file) => Some(encode(&read(&file.file, &self.facts)?, coding).ok()?.into()),
        })
    }
}

/// Reads a whole open file; `None` if the file cannot be read or no longer matches `facts`.
fn read(file: &File, facts: &FileStat) -> Option<Vec<u8>> {
    let bytes = file::read_whole(file, usize::try_from(facts.size).ok()?).ok()??;
    (file::facts(file).ok()? == *facts).then_some(bytes)
}
