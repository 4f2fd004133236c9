//! A file as a representation: what a request gets of it, and what it is told about it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenfold_http::clock;
use tenfold_http::condition::{self, Validators, Verdict};
use tenfold_http::multipart::Multipart;
use tenfold_http::negotiate::Coding;
use tenfold_http::range::{self, Ranges};
use tenfold_http::response::{FieldName, FieldValue, ResponseHead};
use tenfold_http::{Head, Method, OpenFile, Out, Part};
use tenfold_sys::file::{Facts, Root, Timestamp};

use crate::coded::{self, Alternatives};
use crate::codings::suffix;
use crate::compress::RECIPE;
use crate::fields::Fields;
use crate::message::NOSNIFF;
use crate::policy::Effective;
use crate::tag::Untagged;
use crate::template::Template;
use crate::{Outcome, Settings, media_type, message};

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
    /// What holds where the file is.
    pub(crate) here: &'a Effective,
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

/// What the fields of a response say about a file.
#[derive(Clone, Debug)]
struct Description {
    media_type: String,
    etag: String,
    modified: Option<u64>,
    coding: Coding,
    /// Whether there are others to choose from.
    negotiated: bool,
    /// The value of `Cache-Control`, where there is one.
    cache: Option<Cow<'static, str>>,
    /// What the configuration does to the fields.
    fields: Fields,
    /// As [`Effective::is_guarded`].
    guarded: bool,
}

impl Resource {
    /// The file called `name` (its extension counts) as the body of responses with this status.
    pub(crate) fn new(status: u16, name: &str, facts: Facts, opened: Opened, form: Form<'_>) -> Resource {
        let now = i64::try_from(clock::unix_seconds()).unwrap_or(i64::MAX);
        let settled = facts.changed.seconds.saturating_add(SETTLED_AFTER) <= now;
        Resource::describe(status, Description::of(name, &facts, form), facts, settled, opened)
    }

    fn describe(
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

    /// Whether answers with it depend on who asks, or need something in front of them.
    #[inline]
    pub(crate) fn is_guarded(&self) -> bool {
        self.description.guarded
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
            Ranges::Unsatisfiable => Some(message::with_fields(request, 416, out, |head| {
                head.unsatisfied_range(self.facts.size);
                self.description.write_choice(head);
            })),
        }
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
    pub(crate) fn stands_beside(&self, root: &Root, name: &str, facts: &Facts, settings: &Settings) -> bool {
        let codings = &settings.codings;
        match &self.alternatives {
            _ if self.status != 200 => true,
            Some(alternatives) => alternatives.are_still(root, name, facts, codings),
            None => coded::is_still_alone(root, name, facts, codings),
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
        let digits = String::from_utf8_lossy(digest);
        let etag = format!("\"{digits}{}\"", suffix(self.description.coding));
        let description = Description { etag, ..self.description.clone() };
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
        self.template.weight()
            + shared
            + others
            + self.description.media_type.len()
            + self.description.etag.len()
    }
}

/// A coding of a file that has to be made: everything is known of it but its bytes.
#[derive(Debug)]
pub(crate) struct Unmade {
    description: Description,
    /// Those of the file.
    facts: Facts,
    settled: bool,
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

/// A range of bytes that were read, as indices of them.
fn in_memory(range: &Range<u64>) -> Range<usize> {
    // No larger than a file that was read into memory.
    range.start as usize..range.end as usize
}

impl Description {
    fn of(name: &str, facts: &Facts, form: Form<'_>) -> Description {
        let Form { coding, negotiated, here, .. } = form;
        let modified = facts.modified;
        // The inode tells a replaced file from the one before, where both have the same size and a time
        // that was set on purpose, as archives and reproducible builds do.
        let etag = format!(
            "\"{:x}.{:x}-{:x}-{:x}{}\"",
            modified.seconds,
            modified.nanoseconds,
            facts.size,
            facts.inode,
            suffix(coding)
        );
        let modified = form.modified;
        // A date in the future may not be sent (RFC 9110 §8.8.2.1), that of this second would be that of what
        // is written later in it, too (§8.8.2.2), and one before 1970 helps nobody.
        let past = u64::try_from(modified.seconds).ok().filter(|&seconds| seconds < clock::unix_seconds());
        let fields = here.fields.clone();
        let cache = here.policy.cache.filter(|_| fields.keeps(FieldName::CACHE_CONTROL));
        let cache = cache.map(|cache| cache.value(name, here.realm().is_some()));
        let (media_type, modified) = (media_type::of(name, &here.policy), past);
        let guarded = here.is_guarded();
        Description { media_type, etag, modified, coding, negotiated, cache, fields, guarded }
    }

    /// The same file in a coding that is made of it. The tag says by what, since another build may make other
    /// bytes of the same file.
    fn made(&self, coding: Coding) -> Description {
        let tag = self.etag.strip_suffix('"').unwrap_or(&self.etag);
        let etag = format!("{tag}{}{RECIPE}\"", suffix(coding));
        Description { etag, coding, ..self.clone() }
    }

    /// The whole response with this status, of so many bytes, and the body behind it where it is `joined`.
    fn template(&self, status: u16, joined: &[u8], size: u64) -> Template {
        Template::new(status, joined, |head| match status {
            200 => self.write(head, size),
            _ => self.write_bare(head, size),
        })
    }

    fn validators(&self) -> Validators<'_> {
        Validators { etag: self.etag.as_bytes(), modified: self.modified }
    }

    fn etag(&self) -> FieldValue<'_> {
        FieldValue::new(self.etag.as_bytes()).expect("a quoted run of digits is a field value")
    }

    fn media_type(&self) -> FieldValue<'_> {
        FieldValue::new(self.media_type.as_bytes()).expect("media types come from a table of field values")
    }

    /// Writes the fields of a 200 with the whole file.
    fn write(&self, head: &mut ResponseHead<'_>, length: u64) {
        head.content_type(self.media_type());
        head.content_length(length);
        self.write_version(head);
    }

    /// Writes the fields of a page that stands for something else: it has no validators of its own.
    fn write_bare(&self, head: &mut ResponseHead<'_>, length: u64) {
        head.content_type(self.media_type());
        head.content_length(length);
        head.field(FieldName::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    }

    /// 304 carries what a 200 would say that caches act on, and no other description of the content
    /// (RFC 9110 §15.4.5).
    fn not_modified(&self, request: &Head<'_>, out: &mut Out) -> Outcome {
        let mut head = ResponseHead::answering(request, 304, out);
        self.write_for_caches(&mut head);
        head.end();
        Outcome::of(304, 0)
    }

    fn failed(&self, request: &Head<'_>, out: &mut Out) -> Outcome {
        message::with_fields(request, 412, out, |head| self.write_choice(head))
    }

    /// Says that another `Accept-Encoding` would get another answer, where it would.
    fn write_choice(&self, head: &mut ResponseHead<'_>) {
        if self.negotiated {
            self.fields.own(head, FieldName::VARY, coded::VARY);
        }
    }

    fn write_version(&self, head: &mut ResponseHead<'_>) {
        if self.coding != Coding::Identity {
            head.field(FieldName::CONTENT_ENCODING, coded::token(self.coding));
        }
        self.write_choice(head);
        if let Some(modified) = self.modified
            && self.fields.keeps(FieldName::LAST_MODIFIED)
        {
            head.date(FieldName::LAST_MODIFIED, modified);
        }
        self.fields.own(head, FieldName::ETAG, self.etag());
        self.fields.own(head, FieldName::ACCEPT_RANGES, FieldValue::constant("bytes"));
        self.fields.own(head, FieldName::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        self.write_cache_control(head);
        self.fields.write(head);
    }

    /// Writes what a 304 says.
    fn write_for_caches(&self, head: &mut ResponseHead<'_>) {
        self.write_choice(head);
        self.fields.own(head, FieldName::ETAG, self.etag());
        self.write_cache_control(head);
        self.fields.write(head);
    }

    fn write_cache_control(&self, head: &mut ResponseHead<'_>) {
        if let Some(cache) = &self.cache {
            let value = FieldValue::new(cache.as_bytes()).expect("presets are field values");
            head.field(FieldName::CACHE_CONTROL, value);
        }
    }
}
