//! The header fields of a representation, whichever part of it is sent.

use std::borrow::Cow;

use tenfold_http::semantics::condition::Validators;
use tenfold_http::semantics::negotiate::ContentCoding;
use tenfold_http::{FieldName, FieldValue, Request, ResponseHead, ResponseWriter, Template, clock};
use tenfold_sys::file::{FileStat, Timestamp};

use crate::files::media_type;
use crate::representation::compress::RECIPE;
use crate::representation::status_text::{self, NOSNIFF};
use crate::representation::summary::ResponseSummary;
use crate::rules::access::Guard;
use crate::rules::codings::suffix;
use crate::rules::fields::ResponseFields;
use crate::rules::policy::Effective;

/// The relation of a representation to its file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepresentationForm<'a> {
    pub(crate) coding: ContentCoding,
    /// Whether the client can choose between encodings of the file.
    pub(crate) negotiated: bool,
    /// The file's time of modification: all encodings of a version have the same date.
    pub(crate) modified: Timestamp,
    /// The policy of the requested path.
    pub(crate) here: &'a Effective,
    /// The credentials that the file requires.
    pub(crate) guard: &'a Guard,
}

impl RepresentationForm<'_> {
    /// The form of a file that has no encodings.
    pub(crate) fn plain<'a>(
        facts: &FileStat,
        here: &'a Effective,
        guard: &'a Guard,
    ) -> RepresentationForm<'a> {
        RepresentationForm {
            coding: ContentCoding::Identity,
            negotiated: false,
            modified: facts.modified,
            here,
            guard,
        }
    }
}

/// The `Vary` of a response that depends on `Accept-Encoding` (RFC 9110 §12.5.5).
const VARY: FieldValue<'static> = FieldValue::constant("Accept-Encoding");

/// Whether this time comes from a tool that gives all files the same time, or from a wrong clock. Such times are
/// 1970 (OSTree, Nix), 1980 (ZIP, Gradle) and 1985-10-26 (npm). Real files of that age lose only `Last-Modified`.
fn is_fixed(time: Timestamp) -> bool {
    /// 1986-01-01.
    const FIRST_REAL: i64 = 504_921_600;
    time.seconds < FIRST_REAL
}

/// Returns the value of `Content-Encoding`.
fn token(coding: ContentCoding) -> FieldValue<'static> {
    FieldValue::new(coding.token().as_bytes()).expect("a coding's name is a token")
}

/// The header fields of a representation.
#[derive(Clone, Debug)]
pub(crate) struct Description {
    media_type: String,
    pub(crate) etag: String,
    modified: Option<u64>,
    pub(crate) coding: ContentCoding,
    /// Whether the client can choose between encodings of the file.
    pub(crate) negotiated: bool,
    /// The value of `Cache-Control`.
    cache: Option<Cow<'static, str>>,
    /// The fields that the configuration adds, replaces or removes.
    fields: ResponseFields,
    /// [`Effective::is_guarded`] of the path.
    by_path: bool,
    /// The credentials that the file requires.
    pub(crate) guard: Guard,
    /// Whether a response depends on more than the file, because of the path or of the guard.
    pub(crate) guarded: bool,
}

impl Description {
    pub(crate) fn of(name: &str, facts: &FileStat, form: RepresentationForm<'_>) -> Description {
        let RepresentationForm { coding, negotiated, here, guard, .. } = form;
        // Versions of a file with a fixed time differ only in their time of change.
        let version = if is_fixed(facts.modified) { facts.changed } else { facts.modified };
        // The inode would distinguish more versions, but it differs between nodes, and would reveal a number
        // of the file system.
        let etag =
            format!("\"{:x}.{:x}-{:x}{}\"", version.seconds, version.nanoseconds, facts.size, suffix(coding));
        let modified = form.modified;
        // A date in the future is forbidden (RFC 9110 §8.8.2.1). The date of the present second would also be
        // the date of later changes in it (§8.8.2.2). A fixed time does not change with the content.
        let real = Some(modified.seconds).filter(|_| !is_fixed(modified));
        let past = real.and_then(|seconds| u64::try_from(seconds).ok());
        let past = past.filter(|&seconds| seconds < clock::unix_seconds());
        let fields = here.fields.clone();
        let is_private = here.realm().is_some() || !guard.is_open();
        let cache = match here.policy.cache {
            _ if !fields.keeps(FieldName::CACHE_CONTROL) => None,
            Some(cache) => Some(cache.value(name, is_private)),
            // Some shared caches store every 200, even if it requires credentials.
            None => is_private.then_some("private".into()),
        };
        let (media_type, modified) = (media_type::of(name, &here.policy), past);
        let (by_path, guard) = (here.is_guarded(), guard.clone());
        let guarded = by_path || !guard.is_open();
        Description { media_type, etag, modified, coding, negotiated, cache, fields, by_path, guard, guarded }
    }

    /// Whether a response to a member depends only on the file.
    pub(crate) fn is_for_members_only(&self) -> bool {
        !self.by_path && self.guard.realm.is_none()
    }

    /// Whether the content is encoded, as a file or by a rule.
    pub(crate) fn is_coded(&self) -> bool {
        self.coding != ContentCoding::Identity || !self.fields.keeps(FieldName::CONTENT_ENCODING)
    }

    /// Describes an encoding made from this file. The tag includes [`RECIPE`], because another build may
    /// encode the same file into other bytes.
    pub(crate) fn made(&self, coding: ContentCoding) -> Description {
        let tag = self.etag.strip_suffix('"').unwrap_or(&self.etag);
        let etag = format!("{tag}{}{RECIPE}\"", suffix(coding));
        Description { etag, coding, ..self.clone() }
    }

    /// Describes the same file with a tag made from its content. It has no time of modification, which could
    /// be equal for different contents (RFC 9110 §8.8.2.1: a server may have no consistent time).
    pub(crate) fn tagged(&self, digest: &[u8]) -> Description {
        let digits = String::from_utf8_lossy(digest);
        let etag = format!("\"{digits}{}\"", suffix(self.coding));
        Description { etag, modified: None, ..self.clone() }
    }

    /// Returns the whole response with this status and a body of `size` bytes. `joined` is the body, if it
    /// follows the head.
    pub(crate) fn template(&self, status: u16, joined: &[u8], size: u64) -> Template {
        Template::new(status, joined, |head| match status {
            200 => self.write(head, size),
            _ => self.write_bare(head, size),
        })
    }

    pub(crate) fn validators(&self) -> Validators<'_> {
        Validators { etag: self.etag.as_bytes(), modified: self.modified }
    }

    /// Bytes of memory besides this value itself.
    pub(crate) fn weight(&self) -> usize {
        self.media_type.len() + self.etag.len()
    }

    fn etag(&self) -> FieldValue<'_> {
        FieldValue::new(self.etag.as_bytes()).expect("a quoted run of digits is a field value")
    }

    pub(crate) fn media_type(&self) -> FieldValue<'_> {
        FieldValue::new(self.media_type.as_bytes()).expect("media types come from a table of field values")
    }

    /// Writes the fields of a 200 with the whole file.
    fn write(&self, head: &mut ResponseHead<'_>, length: u64) {
        head.content_type(self.media_type());
        head.content_length(length);
        self.write_version(head);
    }

    /// Writes the fields of an error page, which has no validators.
    fn write_bare(&self, head: &mut ResponseHead<'_>, length: u64) {
        head.content_type(self.media_type());
        head.content_length(length);
        head.field(FieldName::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    }

    /// Answers 304 with the fields of a 200 that caches use, and no other description of the content
    /// (RFC 9110 §15.4.5).
    pub(crate) fn not_modified(&self, response: &mut ResponseWriter<'_>) -> ResponseSummary {
        let mut head = response.head(304);
        self.write_for_caches(&mut head);
        head.end();
        ResponseSummary::of(304, 0)
    }

    /// Answers 406, 412 or 416 with a line of text; `more` adds the fields of the status.
    pub(crate) fn refuse(
        &self,
        request: &Request<'_>,
        status: u16,
        response: &mut ResponseWriter<'_>,
        more: impl FnOnce(&mut ResponseHead<'_>),
    ) -> ResponseSummary {
        status_text::with_fields(request, status, "", response, |head| {
            more(head);
            self.write_vary(head);
            self.fields.write(head);
        })
    }

    pub(crate) fn failed(&self, request: &Request<'_>, response: &mut ResponseWriter<'_>) -> ResponseSummary {
        self.refuse(request, 412, response, |_| {})
    }

    fn write_vary(&self, head: &mut ResponseHead<'_>) {
        if self.negotiated {
            self.fields.own(head, FieldName::VARY, VARY);
        }
    }

    pub(crate) fn write_version(&self, head: &mut ResponseHead<'_>) {
        if self.coding != ContentCoding::Identity {
            head.field(FieldName::CONTENT_ENCODING, token(self.coding));
        }
        self.fields.write_coding(head);
        self.write_vary(head);
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

    fn write_for_caches(&self, head: &mut ResponseHead<'_>) {
        self.write_vary(head);
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
