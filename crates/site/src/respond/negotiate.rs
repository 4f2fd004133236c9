//! The encoding of a file for a request, and the work that makes it.

use std::sync::Arc;

use tenfold_http::semantics::negotiate::{self, ContentCoding};
use tenfold_http::{Request, ResponseWriter};

use crate::representation::encodings::EncodedForm;
use crate::representation::resource::Resource;
use crate::representation::summary::ResponseSummary;
use crate::representation::unmade::Unmade;
use crate::representation::variant::Variant;
use crate::respond::work::{Answered, Work};
use crate::respond::{message, store};
use crate::site::Site;

/// Answers a request for a file in the best encoding; `key` is its key in the store.
pub(crate) fn respond(
    resource: &mut Resource,
    key: &str,
    site: &Site,
    request: &Request<'_>,
    response: &mut ResponseWriter<'_>,
) -> Answered {
    let (settings, Resource { plain, encodings, number }) = (&site.settings, resource);
    let Some(encodings) = encodings else {
        if !plain.is_admitted() {
            return message::unavailable(request, response).into();
        }
        return plain.respond(request, settings, response).into();
    };
    let Some(coding) = encodings.choose(request) else {
        return plain.not_acceptable(request, response).into();
    };
    match encodings.get_mut(coding) {
        Some(EncodedForm::Made(variant) | EncodedForm::Sibling(variant)) => {
            if !variant.is_admitted() {
                return plain_or_unavailable(plain, site, request, response).into();
            }
            variant.respond(request, settings, response).into()
        }
        Some(EncodedForm::Possible) => {
            let unmade = plain.unmade(coding);
            if let Some(summary) = unmade.respond(request, response) {
                return summary.into();
            }
            let pending =
                PendingEncoding { key: key.to_owned(), number: *number, coding, plain: plain.clone() };
            Answered::Work(pending.make(unmade, site))
        }
        Some(EncodedForm::Absent) | None => plain.respond(request, settings, response).into(),
    }
}

/// An encoding that a request waits for.
struct PendingEncoding {
    /// The key of the file in the store.
    key: String,
    /// [`Resource::number`] of the file.
    number: u64,
    coding: ContentCoding,
    /// The file without an encoding.
    plain: Variant,
}

impl PendingEncoding {
    /// Returns the work that makes the encoding. If the queue of work is full, clients that accept it get the
    /// file without an encoding.
    fn make(self, unmade: Unmade, site: &Site) -> Work {
        let (source, cache) = (self.plain.source(), Arc::clone(&site.encoded));
        let pending = Arc::new(self);
        let otherwise = Arc::clone(&pending);
        let work = Work::new(
            move || unmade.make(&source, &cache).map(|bytes| (unmade, bytes)),
            move |made, site, head, response| {
                // The template needs this thread's clock for its date.
                let made = made.map(|(unmade, bytes)| Variant::made(unmade, bytes));
                pending.answer(made, site, head, response).into()
            },
        );
        work.or_else(move |site, head, response| plain_or_unavailable(&otherwise.plain, site, head, response))
    }

    /// Answers with the encoding that was made, and caches it. After a failure, the encoding is not tried
    /// again for this version of the file.
    fn answer(
        &self,
        mut made: Option<Variant>,
        site: &Site,
        request: &Request<'_>,
        response: &mut ResponseWriter<'_>,
    ) -> ResponseSummary {
        let summary = match &mut made {
            Some(made) if !made.is_admitted() => plain_or_unavailable(&self.plain, site, request, response),
            Some(made) => made.respond(request, &site.settings, response),
            None => plain_if_accepted(&self.plain, site, request, response)
                .unwrap_or_else(|| self.plain.not_acceptable(request, response)),
        };
        store::with_growth(site, |store| {
            store.update(&self.key, |known| {
                if known.number == self.number
                    && let Some(encodings) = &mut known.encodings
                {
                    encodings.settle(self.coding, made);
                }
            });
        });
        summary
    }
}

/// Answers with the file without an encoding, or with 503 if the client does not accept it.
pub(crate) fn plain_or_unavailable(
    plain: &Variant,
    site: &Site,
    request: &Request<'_>,
    response: &mut ResponseWriter<'_>,
) -> ResponseSummary {
    plain_if_accepted(plain, site, request, response)
        .unwrap_or_else(|| message::unavailable(request, response))
}

fn plain_if_accepted(
    plain: &Variant,
    site: &Site,
    request: &Request<'_>,
    response: &mut ResponseWriter<'_>,
) -> Option<ResponseSummary> {
    negotiate::choose(request.values("accept-encoding"), &[ContentCoding::Identity])?;
    Some(plain.clone().respond(request, &site.settings, response))
}
