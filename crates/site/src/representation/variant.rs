//! A file as a representation: which of its bytes a request gets. What is said about them is the business of
//! `description`.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenfold_http::clock;
use tenfold_http::condition::{self, Validators, Verdict};
use tenfold_http::multipart::Multipart;
use tenfold_http::negotiate::Coding;
use tenfold_http::range::{self, Ranges};
use tenfold_http::response::ResponseHead;
use tenfold_http::{Head, Method, OpenFile, Out, Part};
use tenfold_sys::file::{Facts, Timestamp};

use crate::files::protection::Guard;
use crate::representation::description::Description;
use crate::representation::encodings::{self as coded, Alternatives};
use crate::representation::tags::Untagged;
use crate::representation::template::Template;
pub(crate) use crate::representation::unmade::Unmade;
use crate::rules::access::Access;
use crate::rules::policy::Effective;
use crate::{Outcome, Settings, Site};

/// Bytes up to which a body is copied behind its head, so that both leave in one piece; a larger one is
/// shared instead. At this size the copy costs about as much as a second vector for the kernel to walk, and
/// sixteen of them fill the stage of a connection.
pub(crate) const JOINED_UP_TO: usize = 4096;

/// Seconds after which a file's times tell versions of it apart. Two changes within one tick of the
/// kernel's clock, at most 10 ms, leave the same times; the rest is generous.
const SETTLED_AFTER: i64 = 2;

/// One version of a file, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    status: u16,
    /// The whole response, with the body where it is joined.
    template: Template,
    content: Content,
    description: Description,
    facts: Facts,
    settled: bool,
    /// Tells what was loaded apart from everything else that this process has loaded.
    number: u64,
    /// Where there are several codings, those that are not this one.
    alternatives: Option<Box<Alternatives>>,
}

/// What a representation is of its file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form<'a> {
    pub(crate) coding: Coding,
    /// Whether there are others to choose from.
    pub(crate) negotiated: bool,
    /// When the file was modified: all codings of a version say the same.
    pub(crate) modified: Timestamp,
    /// What holds at the path that led to the file.
    pub(crate) here: &'a Effective,
    /// Who may have the file.
    pub(crate) guard: &'a Guard,
}

/// How a file was opened.
#[derive(Debug)]
pub(crate) enum Opened {
    /// It was read, whole.
    Read(Vec<u8>),
    /// It was made.
    Made(Arc<[u8]>),
    /// It is open.
    File(OpenFile),
}

/// The bytes of a file, for work beside the loop.
pub(crate) enum Source {
    Memory(Arc<[u8]>),
    File(Arc<OpenFile>),
}

/// Where the bytes of a representation are.
#[derive(Clone, Debug)]
enum Content {
    /// Behind the head.
    Joined,
    /// In memory, apart from the head.
    Shared(Arc<[u8]>),
    /// In the file.
    File(Arc<OpenFile>),
}

impl Resource {
    /// The file called `name` (its extension counts) as the body of responses with this status.
    pub(crate) fn new(status: u16, name: &str, facts: Facts, opened: Opened, form: Form<'_>) -> Resource {
        let now = i64::try_from(clock::unix_seconds()).unwrap_or(i64::MAX);
        let settled = facts.changed.seconds.saturating_add(SETTLED_AFTER) <= now;
        Resource::describe(status, Description::of(name, &facts, form), facts, settled, opened)
    }

    pub(super) fn describe(
        status: u16,
        description: Description,
        facts: Facts,
        settled: bool,
        opened: Opened,
    ) -> Resource {
        static LOADED: AtomicU64 = AtomicU64::new(0);
        let (joined, content) = match opened {
            Opened::Read(bytes) if bytes.len() <= JOINED_UP_TO => (bytes, Content::Joined),
            Opened::Made(bytes) if bytes.len() <= JOINED_UP_TO => (bytes.to_vec(), Content::Joined),
            Opened::Read(bytes) => (Vec::new(), Content::Shared(bytes.into())),
            Opened::Made(bytes) => (Vec::new(), Content::Shared(bytes)),
            Opened::File(file) => (Vec::new(), Content::File(Arc::new(file))),
        };
        let template = description.template(status, &joined, facts.size);
        let number = LOADED.fetch_add(1, Ordering::Relaxed);
        Resource { status, template, content, description, facts, settled, number, alternatives: None }
    }

    /// The same with other codings to choose from.
    pub(crate) fn beside(self, alternatives: Option<Box<Alternatives>>) -> Resource {
        Resource { alternatives, ..self }
    }

    /// Answers with the file, a part of it, or that the peer has it already.
    #[inline]
    pub(crate) fn respond(&mut self, request: &Head<'_>, settings: &Settings, out: &mut Out) -> Outcome {
        if request.selective
            && let Some(outcome) = self.select(request, settings, out)
        {
            return outcome;
        }
        self.whole(request, out)
    }

    /// Answers with the whole file, whatever the request's conditions and ranges.
    #[inline]
    pub(crate) fn whole(&mut self, request: &Head<'_>, out: &mut Out) -> Outcome {
        if request.method == Method::Head {
            self.template.stage(request, false, out);
            return Outcome::of(self.status, 0);
        }
        self.template.stage(request, true, out);
        self.put_rest(out);
        Outcome::of(self.status, self.facts.size)
    }

    /// Answers with all of it to who is not heard any longer; says how long the body is.
    pub(crate) fn last(&mut self, out: &mut Out) -> u64 {
        self.template.stage_last(out);
        self.put_rest(out);
        self.facts.size
    }

    /// Whether an answer with it takes more than the file: it depends on the client, or something precedes it.
    #[inline]
    pub(crate) fn is_guarded(&self, access: &Access) -> bool {
        self.description.guarded && !(access.member && self.description.is_for_members_alone())
    }

    /// Who may have it.
    pub(crate) fn guard(&self) -> &Guard {
        &self.description.guard
    }

    /// Puts the whole file behind its head, where it does not stand there.
    #[inline]
    fn put_rest(&self, out: &mut Out) {
        match &self.content {
            Content::Joined => {}
            Content::Shared(bytes) => out.push(Part::Shared(Arc::clone(bytes), 0..bytes.len())),
            Content::File(file) => out.push(Part::File(Arc::clone(file), 0..self.facts.size)),
        }
    }

    /// Answers what the conditions and the range of a request ask for; none where that is the whole file.
    fn select(&self, request: &Head<'_>, settings: &Settings, out: &mut Out) -> Option<Outcome> {
        let validators = self.description.validators();
        match condition::evaluate(request, validators) {
            Verdict::Proceed => {}
            Verdict::NotModified => return Some(self.description.not_modified(request, out)),
            Verdict::PreconditionFailed => return Some(self.description.failed(request, out)),
        }
        // All codings have the same date, so it does not say of which of them the peer has a part.
        let modified = validators.modified.filter(|_| !self.description.negotiated);
        let part_of = Validators { modified, ..validators };
        let ranged = request.method == Method::Get && condition::range_applies(request, part_of);
        let value = request.only("range").filter(|_| ranged)?;
        match range::select(value, self.facts.size, settings.max_ranges) {
            Ranges::Whole => None,
            Ranges::One(range) => Some(self.part(range, request, out)),
            // `Content-Encoding` would speak of all parts as one.
            Ranges::Many(_) if self.description.coding != Coding::Identity => None,
            Ranges::Many(ranges) => Some(self.parts(&ranges, request, out)),
            Ranges::Unsatisfiable => Some(
                self.description.refuse(request, 416, out, |head| head.unsatisfied_range(self.facts.size)),
            ),
        }
    }

    /// 406: the client excludes the file as it is, and there is no coding that it takes.
    pub(crate) fn not_acceptable(&self, request: &Head<'_>, out: &mut Out) -> Outcome {
        self.description.refuse(request, 406, out, |_| {})
    }

    fn part(&self, range: Range<u64>, request: &Head<'_>, out: &mut Out) -> Outcome {
        let length = range.end - range.start;
        let mut head = ResponseHead::answering(request, 206, out);
        head.content_type(self.description.media_type());
        head.content_length(length);
        head.content_range(&range, self.facts.size);
        self.description.write_version(&mut head);
        head.end();
        self.put(&range, out);
        Outcome::of(206, length)
    }

    fn parts(&self, ranges: &[Range<u64>], request: &Head<'_>, out: &mut Out) -> Outcome {
        let description = &self.description;
        let etag = description.etag.as_bytes();
        let multipart = Multipart::new(description.media_type(), ranges, self.facts.size, etag);
        let length = multipart.content_length();
        let mut head = ResponseHead::answering(request, 206, out);
        head.content_type(multipart.content_type());
        head.content_length(length);
        description.write_version(&mut head);
        head.end();
        multipart.write(out, |range, out| self.put(range, out));
        Outcome::of(206, length)
    }

    /// Puts these bytes of the file behind what is in `out`.
    fn put(&self, range: &Range<u64>, out: &mut Out) {
        let small = range.end - range.start <= JOINED_UP_TO as u64;
        match &self.content {
            Content::Joined => out.stage(&self.template.body()[in_memory(range)]),
            Content::Shared(bytes) if small => out.stage(&bytes[in_memory(range)]),
            Content::Shared(bytes) => out.push(Part::Shared(Arc::clone(bytes), in_memory(range))),
            Content::File(file) => out.push(Part::File(Arc::clone(file), range.clone())),
        }
    }

    /// The other codings, where there are some.
    #[inline]
    pub(crate) fn alternatives(&mut self) -> Option<&mut Alternatives> {
        self.alternatives.as_deref_mut()
    }

    /// Whether what stands beside the file called `name`, which has these facts, is what stood there.
    pub(crate) fn stands_beside(&self, site: &Site, name: &str, facts: &Facts) -> bool {
        match &self.alternatives {
            _ if self.status != 200 => true,
            Some(alternatives) => alternatives.are_still(site, name, facts, self.guard()),
            None => coded::is_still_alone(site, name, facts, self.guard()),
        }
    }

    /// Those of the file when it was opened.
    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Its number among all that this process has loaded.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// What codings are made of.
    pub(crate) fn source(&self) -> Source {
        match &self.content {
            Content::Joined => Source::Memory(self.template.body().into()),
            Content::Shared(bytes) => Source::Memory(Arc::clone(bytes)),
            Content::File(file) => Source::File(Arc::clone(file)),
        }
    }

    /// All content of which tags are to be made: that of the file, and that of those beside it.
    pub(crate) fn untagged(&self) -> Vec<Untagged> {
        let others = self.alternatives.iter().flat_map(|others| others.untagged());
        std::iter::once(self.untagged_alone()).chain(others).collect()
    }

    pub(crate) fn untagged_alone(&self) -> Untagged {
        Untagged { source: self.source(), facts: self.facts, settled: self.settled }
    }

    /// The same version with tags of these digests, in the order of [`Resource::untagged`].
    pub(crate) fn tagged(&self, digests: &[Arc<[u8]>]) -> Resource {
        let (own, others) = digests.split_first().expect("the file itself is the first");
        let alternatives = self.alternatives.as_ref().map(|known| Box::new(known.tagged(others)));
        Resource { alternatives, ..self.tagged_alone(own) }
    }

    pub(crate) fn tagged_alone(&self, digest: &[u8]) -> Resource {
        let description = self.description.tagged(digest);
        let joined: &[u8] = if let Content::Joined = self.content { self.template.body() } else { &[] };
        let template = description.template(self.status, joined, self.facts.size);
        Resource { template, description, content: self.content.clone(), alternatives: None, ..*self }
    }

    /// The same version of the file with nothing to choose from.
    pub(crate) fn alone(&self) -> Resource {
        Resource {
            template: self.template.clone(),
            content: self.content.clone(),
            description: self.description.clone(),
            alternatives: None,
            ..*self
        }
    }

    /// This file in a coding that has to be made.
    pub(crate) fn unmade(&self, coding: Coding) -> Unmade {
        Unmade { description: self.description.made(coding), facts: self.facts, settled: self.settled }
    }

    /// Whether a file with these facts is surely this version of it.
    pub(crate) fn is_still(&self, facts: &Facts) -> bool {
        self.settled && self.facts == *facts
    }

    /// Whether it keeps a file open.
    pub(crate) fn holds_file(&self) -> bool {
        let others = self.alternatives.as_ref().is_some_and(|others| others.hold_files());
        others || matches!(self.content, Content::File(_))
    }

    /// Bytes of memory beside this value itself.
    pub(crate) fn weight(&self) -> usize {
        let shared = match &self.content {
            Content::Shared(bytes) => bytes.len(),
            _ => 0,
        };
        let others = self.alternatives.as_ref().map_or(0, |others| others.weight());
        self.template.weight() + shared + others + self.description.weight()
    }
}

/// A range of bytes that were read, as indices of them.
fn in_memory(range: &Range<u64>) -> Range<usize> {
    // No larger than a file that was read into memory.
    range.start as usize..range.end as usize
}
