//! One encoding of a file, and the part of it that a request selects.

use std::ops::Range;
use std::sync::Arc;

use tenfold_http::semantics::condition::{self, ConditionResult, Validators};
use tenfold_http::semantics::multipart::{Multipart, MultipartPiece};
use tenfold_http::semantics::negotiate::ContentCoding;
use tenfold_http::semantics::range::{self, Ranges};
use tenfold_http::{Method, OpenFile, Part, Request, ResponseWriter, Template, clock};
use tenfold_sys::file::FileStat;

use crate::cache::unsent;
use crate::files::open::Opened;
use crate::representation::description::{Description, RepresentationForm};
use crate::representation::summary::ResponseSummary;
use crate::representation::tags::Untagged;
use crate::representation::unmade::{EncodingSource, Unmade};
use crate::rules::access::{Access, Guard};
use crate::rules::settings::Settings;

/// The largest body that is copied after its head, so that both are sent from one buffer; a larger body is
/// shared. At this size the copy costs about as much as a second vector for the kernel, and sixteen bodies
/// fill a connection's stage.
pub(crate) const JOINED_UP_TO: usize = 4096;

/// Seconds after which a file's times distinguish its versions. Two changes within one tick of the kernel's
/// clock (at most 10 ms) have the same times; the rest is a margin.
const SETTLED_AFTER: i64 = 2;

/// One encoding of one version of a file, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    status: u16,
    /// The whole response, including a joined body.
    template: Template,
    content: BodyContent,
    description: Description,
    facts: FileStat,
    settled: bool,
}

/// The location of the body's bytes.
#[derive(Clone, Debug)]
enum BodyContent {
    /// In the template, after the head.
    Joined,
    /// In memory, apart from the head.
    Shared(Arc<[u8]>),
    /// In the file.
    File(Arc<OpenFile>),
}

impl Variant {
    /// Returns the file called `name` as the body of responses with this status. The extension decides the
    /// media type.
    pub(crate) fn new(
        status: u16,
        name: &str,
        facts: FileStat,
        opened: Opened,
        form: RepresentationForm<'_>,
    ) -> Variant {
        let now = i64::try_from(clock::unix_seconds()).unwrap_or(i64::MAX);
        let settled = facts.changed.seconds.saturating_add(SETTLED_AFTER) <= now;
        Variant::describe(status, Description::of(name, &facts, form), facts, settled, opened)
    }

    fn describe(
        status: u16,
        description: Description,
        facts: FileStat,
        settled: bool,
        opened: Opened,
    ) -> Variant {
        let (joined, content) = match opened {
            Opened::Read(bytes) if bytes.len() <= JOINED_UP_TO => (bytes, BodyContent::Joined),
            Opened::Made(bytes) if bytes.len() <= JOINED_UP_TO => (bytes.to_vec(), BodyContent::Joined),
            Opened::Read(bytes) => (Vec::new(), BodyContent::Shared(bytes.into())),
            Opened::Made(bytes) => (Vec::new(), BodyContent::Shared(bytes)),
            Opened::File(file) => (Vec::new(), BodyContent::File(Arc::new(file))),
        };
        let template = description.template(status, &joined, facts.size);
        Variant { status, template, content, description, facts, settled }
    }

    /// Answers with the file, a part of the file, or 304.
    #[inline]
    pub(crate) fn respond(
        &mut self,
        request: &Request<'_>,
        settings: &Settings,
        response: &mut ResponseWriter<'_>,
    ) -> ResponseSummary {
        if request.selective
            && let Some(outcome) = self.select(request, settings, response)
        {
            return outcome;
        }
        self.whole(request, response)
    }

    /// Answers with the whole file, and ignores the request's conditions and ranges.
    #[inline]
    pub(crate) fn whole(
        &mut self,
        request: &Request<'_>,
        response: &mut ResponseWriter<'_>,
    ) -> ResponseSummary {
        if request.method == Method::Head {
            response.template(&mut self.template, false);
            return ResponseSummary::of(self.status, 0);
        }
        response.template(&mut self.template, true);
        self.put_rest(response);
        ResponseSummary::of(self.status, self.facts.size)
    }

    /// Answers the last request of a connection. Without `whole`, only the head is sent. Returns the length
    /// of the body.
    pub(crate) fn last(&mut self, whole: bool, response: &mut ResponseWriter<'_>) -> u64 {
        response.template(&mut self.template, whole);
        if !whole {
            return 0;
        }
        self.put_rest(response);
        self.facts.size
    }

    /// Whether a response depends on more than the file: on the client, or on an earlier interim response.
    #[inline]
    pub(crate) fn is_guarded(&self, access: &Access) -> bool {
        self.description.guarded && !(access.member && self.description.is_for_members_only())
    }

    /// Returns the credentials that the file requires.
    pub(crate) fn guard(&self) -> &Guard {
        &self.description.guard
    }

    /// Adds the body after its head, unless the template includes it.
    #[inline]
    fn put_rest(&self, response: &mut ResponseWriter<'_>) {
        match &self.content {
            BodyContent::Joined => {}
            BodyContent::Shared(bytes) => push_shared(bytes, 0..bytes.len(), response),
            BodyContent::File(file) => response.push(Part::File(Arc::clone(file), 0..self.facts.size)),
        }
    }

    /// Whether a response may hold the content in memory: it may not if too much other content is unsent.
    #[inline]
    pub(crate) fn is_admitted(&self) -> bool {
        match &self.content {
            BodyContent::Shared(bytes) if bytes.len() >= unsent::LONG => {
                unsent::files().admits(&address(bytes), bytes.len())
            }
            _ => true,
        }
    }

    /// Answers by the conditions and the range of a request; None if they select the whole file.
    fn select(
        &self,
        request: &Request<'_>,
        settings: &Settings,
        response: &mut ResponseWriter<'_>,
    ) -> Option<ResponseSummary> {
        let validators = self.description.validators();
        match condition::evaluate(request, validators) {
            ConditionResult::Proceed => {}
            ConditionResult::NotModified => return Some(self.description.not_modified(response)),
            ConditionResult::PreconditionFailed => return Some(self.description.failed(request, response)),
        }
        // All encodings have the same date, so the date does not identify the client's encoding.
        let modified = validators.modified.filter(|_| !self.description.negotiated);
        let part_of = Validators { modified, ..validators };
        let ranged = request.method == Method::Get && condition::range_applies(request, part_of);
        let value = request.only("range").filter(|_| ranged)?;
        match range::select(value, self.facts.size, settings.max_ranges) {
            Ranges::Whole => None,
            Ranges::One(range) => Some(self.part(range, response)),
            // `Content-Encoding` would apply to the multipart body as a whole.
            Ranges::Many(_) if self.is_coded() => None,
            Ranges::Many(ranges) => Some(self.parts(&ranges, response)),
            Ranges::Unsatisfiable => Some(
                self.description
                    .refuse(request, 416, response, |head| head.unsatisfied_range(self.facts.size)),
            ),
        }
    }

    /// Answers 406: the client accepts no encoding of the file.
    pub(crate) fn not_acceptable(
        &self,
        request: &Request<'_>,
        response: &mut ResponseWriter<'_>,
    ) -> ResponseSummary {
        self.description.refuse(request, 406, response, |_| {})
    }

    fn part(&self, range: Range<u64>, response: &mut ResponseWriter<'_>) -> ResponseSummary {
        let length = range.end - range.start;
        let mut head = response.head(206);
        head.content_type(self.description.media_type());
        head.content_length(length);
        head.content_range(&range, self.facts.size);
        self.description.write_version(&mut head);
        head.end();
        self.put(&range, response);
        ResponseSummary::of(206, length)
    }

    fn parts(&self, ranges: &[Range<u64>], response: &mut ResponseWriter<'_>) -> ResponseSummary {
        let description = &self.description;
        let etag = description.etag.as_bytes();
        let multipart = Multipart::new(description.media_type(), ranges, self.facts.size, etag);
        let length = multipart.content_length();
        let mut head = response.head(206);
        head.content_type(multipart.content_type());
        head.content_length(length);
        description.write_version(&mut head);
        head.end();
        multipart.write(|piece| match piece {
            MultipartPiece::Frame(bytes) => response.body(bytes),
            MultipartPiece::Content(range) => self.put(range, response),
        });
        ResponseSummary::of(206, length)
    }

    /// Adds these bytes of the file to the body.
    fn put(&self, range: &Range<u64>, response: &mut ResponseWriter<'_>) {
        let small = range.end - range.start <= JOINED_UP_TO as u64;
        match &self.content {
            BodyContent::Joined => response.body(&self.template.body()[in_memory(range)]),
            BodyContent::Shared(bytes) if small => response.body(&bytes[in_memory(range)]),
            BodyContent::Shared(bytes) => push_shared(bytes, in_memory(range), response),
            BodyContent::File(file) => response.push(Part::File(Arc::clone(file), range.clone())),
        }
    }

    /// Whether the content has a coding.
    pub(crate) fn is_coded(&self) -> bool {
        self.description.is_coded()
    }

    /// The facts of the file when it was opened.
    pub(crate) fn facts(&self) -> &FileStat {
        &self.facts
    }

    /// Returns the bytes from which encodings are made.
    pub(crate) fn source(&self) -> EncodingSource {
        match &self.content {
            BodyContent::Joined => EncodingSource::Memory(self.template.body().into()),
            BodyContent::Shared(bytes) => EncodingSource::Memory(Arc::clone(bytes)),
            BodyContent::File(file) => EncodingSource::File(Arc::clone(file)),
        }
    }

    /// Returns an encoding made of these bytes.
    pub(crate) fn made(unmade: Unmade, bytes: Arc<[u8]>) -> Variant {
        let facts = FileStat { size: bytes.len() as u64, ..unmade.facts };
        Variant::describe(200, unmade.description, facts, unmade.settled, Opened::Made(bytes))
    }

    /// Returns the content for a tag.
    pub(crate) fn untagged(&self) -> Untagged {
        Untagged { source: self.source(), facts: self.facts, settled: self.settled }
    }

    /// Returns the same version with a tag from this digest.
    pub(crate) fn tagged(&self, digest: &[u8]) -> Variant {
        let description = self.description.tagged(digest);
        let joined: &[u8] = if let BodyContent::Joined = self.content { self.template.body() } else { &[] };
        let template = description.template(self.status, joined, self.facts.size);
        Variant { template, description, content: self.content.clone(), ..*self }
    }

    /// Describes an encoding of this file that is not made yet.
    pub(crate) fn unmade(&self, coding: ContentCoding) -> Unmade {
        Unmade { description: self.description.made(coding), facts: self.facts, settled: self.settled }
    }

    /// Whether a file with these facts is certainly this version.
    pub(crate) fn is_still(&self, facts: &FileStat) -> bool {
        self.settled && self.facts == *facts
    }

    /// Whether it keeps a file open.
    pub(crate) fn holds_file(&self) -> bool {
        matches!(self.content, BodyContent::File(_))
    }

    /// Bytes of memory besides this value itself.
    pub(crate) fn weight(&self) -> usize {
        let shared = match &self.content {
            BodyContent::Shared(bytes) => bytes.len(),
            _ => 0,
        };
        self.template.weight() + shared + self.description.weight()
    }
}

/// Adds a range of shared bytes to a response. Long content counts as unsent until the response is sent or
/// dropped.
fn push_shared(bytes: &Arc<[u8]>, range: Range<usize>, response: &mut ResponseWriter<'_>) {
    response.push(Part::Shared(Arc::clone(bytes), range));
    if bytes.len() >= unsent::LONG
        && let Some(share) = unsent::files().share(address(bytes), bytes.len(), || Arc::clone(bytes))
    {
        response.observe(Box::new(|_| drop(share)));
    }
}

/// Returns a number that identifies the content as long as it lives.
fn address(bytes: &Arc<[u8]>) -> usize {
    bytes.as_ptr().addr()
}

/// Converts a range of a file in memory to indices, which fit because the whole file fits.
fn in_memory(range: &Range<u64>) -> Range<usize> {
    range.start as usize..range.end as usize
}
