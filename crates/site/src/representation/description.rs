//! What the fields of a response say about a file, whatever is sent of it.

use std::borrow::Cow;

use tenfold_http::condition::Validators;
use tenfold_http::negotiate::Coding;
use tenfold_http::response::{FieldName, FieldValue, ResponseHead};
use tenfold_http::{Head, Out, clock};
use tenfold_sys::file::Facts;

use crate::Outcome;
use crate::files::media_type;
use crate::files::protection::Guard;
use crate::representation::compress::RECIPE;
use crate::representation::encodings as coded;
use crate::representation::template::Template;
use crate::representation::variant::Form;
use crate::respond::message;
use crate::respond::message::NOSNIFF;
use crate::rules::codings::suffix;
use crate::rules::fields::Fields;

/// What the fields of a response say about a file.
#[derive(Clone, Debug)]
pub(super) struct Description {
    media_type: String,
    pub(super) etag: String,
    modified: Option<u64>,
    pub(super) coding: Coding,
    /// Whether there are others to choose from.
    pub(super) negotiated: bool,
    /// The value of `Cache-Control`, where there is one.
    cache: Option<Cow<'static, str>>,
    /// What the configuration does to the fields.
    fields: Fields,
    /// As [`crate::rules::policy::Effective::is_guarded`], of the path.
    by_path: bool,
    /// Who may have the file.
    pub(super) guard: Guard,
    /// Whether answers with it take more than the file, for either reason.
    pub(super) guarded: bool,
}

impl Description {
    pub(super) fn of(name: &str, facts: &Facts, form: Form<'_>) -> Description {
        let Form { coding, negotiated, here, guard, .. } = form;
        let modified = facts.modified;
        // The inode would tell more versions apart, and it would tell every client a number of the file system that
        // is another one on each node.
        let etag = format!(
            "\"{:x}.{:x}-{:x}{}\"",
            modified.seconds,
            modified.nanoseconds,
            facts.size,
            suffix(coding)
        );
        let modified = form.modified;
        // A date in the future may not be sent (RFC 9110 §8.8.2.1), that of this second would be that of what
        // is written later in it, too (§8.8.2.2), and one before 1970 helps nobody.
        let past = u64::try_from(modified.seconds).ok().filter(|&seconds| seconds < clock::unix_seconds());
        let fields = here.fields.clone();
        let cache = here.policy.cache.filter(|_| fields.keeps(FieldName::CACHE_CONTROL));
        let cache = cache.map(|cache| cache.value(name, here.realm().is_some() || !guard.is_open()));
        let (media_type, modified) = (media_type::of(name, &here.policy), past);
        let (by_path, guard) = (here.is_guarded(), guard.clone());
        let guarded = by_path || !guard.is_open();
        Description { media_type, etag, modified, coding, negotiated, cache, fields, by_path, guard, guarded }
    }

    /// Whether answers to a member take nothing but the file.
    pub(super) fn is_for_members_alone(&self) -> bool {
        !self.by_path && self.guard.realm.is_none()
    }

    /// The same file in a coding that is made of it. The tag says by what, since another build may make other
    /// bytes of the same file.
    pub(super) fn made(&self, coding: Coding) -> Description {
        let tag = self.etag.strip_suffix('"').unwrap_or(&self.etag);
        let etag = format!("{tag}{}{RECIPE}\"", suffix(coding));
        Description { etag, coding, ..self.clone() }
    }

    /// The same file with a tag that was made of its content.
    pub(super) fn tagged(&self, digest: &[u8]) -> Description {
        let digits = String::from_utf8_lossy(digest);
        let etag = format!("\"{digits}{}\"", suffix(self.coding));
        Description { etag, ..self.clone() }
    }

    /// The whole response with this status, of so many bytes, and the body behind it where it is `joined`.
    pub(super) fn template(&self, status: u16, joined: &[u8], size: u64) -> Template {
        Template::new(status, joined, |head| match status {
            200 => self.write(head, size),
            _ => self.write_bare(head, size),
        })
    }

    pub(super) fn validators(&self) -> Validators<'_> {
        Validators { etag: self.etag.as_bytes(), modified: self.modified }
    }

    /// Bytes of memory beside this value itself.
    pub(super) fn weight(&self) -> usize {
        self.media_type.len() + self.etag.len()
    }

    fn etag(&self) -> FieldValue<'_> {
        FieldValue::new(self.etag.as_bytes()).expect("a quoted run of digits is a field value")
    }

    pub(super) fn media_type(&self) -> FieldValue<'_> {
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
    pub(super) fn not_modified(&self, request: &Head<'_>, out: &mut Out) -> Outcome {
        let mut head = ResponseHead::answering(request, 304, out);
        self.write_for_caches(&mut head);
        head.end();
        Outcome::of(304, 0)
    }

    /// A line of text in place of the file: 406, 412, 416; `more` says what belongs to the status.
    pub(super) fn refuse(
        &self,
        request: &Head<'_>,
        status: u16,
        out: &mut Out,
        more: impl FnOnce(&mut ResponseHead<'_>),
    ) -> Outcome {
        message::with_fields(request, status, out, |head| {
            more(head);
            self.write_choice(head);
            self.fields.write(head);
        })
    }

    pub(super) fn failed(&self, request: &Head<'_>, out: &mut Out) -> Outcome {
        self.refuse(request, 412, out, |_| {})
    }

    /// Says that another `Accept-Encoding` would get another answer, where it would.
    fn write_choice(&self, head: &mut ResponseHead<'_>) {
        if self.negotiated {
            self.fields.own(head, FieldName::VARY, coded::VARY);
        }
    }

    pub(super) fn write_version(&self, head: &mut ResponseHead<'_>) {
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
