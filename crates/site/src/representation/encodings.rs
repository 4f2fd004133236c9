//! The encodings of a file: siblings on disk, and encodings made on the fly.

use std::sync::Arc;

use tenfold_http::Request;
use tenfold_http::semantics::negotiate::{self, ContentCoding};
use tenfold_sys::file::FileStat;

use crate::files::media_type;
use crate::files::open::LookupName;
use crate::files::siblings::is_current;
use crate::representation::description::RepresentationForm;
use crate::representation::tags::Untagged;
use crate::representation::variant::Variant;
use crate::rules::access::Guard;
use crate::rules::codings::suffix;
use crate::site::Site;

/// The encodings of a file that a request can choose from.
#[derive(Clone, Debug)]
pub(crate) struct Encodings {
    /// In order of preference; the file without an encoding comes last.
    available: Vec<ContentCoding>,
    /// Indexed by the coding's number.
    encodings: [EncodedForm; 3],
}

/// A file in one coding.
#[derive(Clone, Debug)]
pub(crate) enum EncodedForm {
    Absent,
    /// It can be made on the fly.
    Possible,
    Made(Variant),
    /// A file next to the file, such as `page.html.gz`.
    Sibling(Variant),
}

impl Encodings {
    /// Returns the encodings of the file called `name`, or None if it has none.
    pub(crate) fn find(
        site: &Site,
        name: &str,
        facts: &FileStat,
        form: RepresentationForm<'_>,
    ) -> Option<Box<Encodings>> {
        let codings = &site.settings.codings;
        let mut found = Encodings { available: Vec::new(), encodings: [const { EncodedForm::Absent }; 3] };
        for &coding in &codings.siblings {
            if usable_sibling(site, name, coding, facts, form.guard).is_some()
                && let Some(sibling) =
                    load_sibling(site, name, RepresentationForm { coding, negotiated: true, ..form })
            {
                found.add(coding, EncodedForm::Sibling(sibling));
            }
        }
        if codings.compresses(&media_type::of(name, &form.here.policy), facts.size) {
            codings.made.iter().for_each(|&coding| found.add(coding, EncodedForm::Possible));
        }
        if found.available.is_empty() {
            return None;
        }
        found.available.push(ContentCoding::Identity);
        Some(Box::new(found))
    }

    fn add(&mut self, coding: ContentCoding, encoding: EncodedForm) {
        if let Some(form @ EncodedForm::Absent) = self.encodings.get_mut(coding as usize) {
            *form = encoding;
            self.available.push(coding);
        }
    }

    /// Returns the encoding to send for this request.
    pub(crate) fn choose(&self, request: &Request<'_>) -> Option<ContentCoding> {
        negotiate::choose(request.values("accept-encoding"), &self.available)
    }

    /// Returns the file in this coding; None for the file without an encoding.
    pub(crate) fn get_mut(&mut self, coding: ContentCoding) -> Option<&mut EncodedForm> {
        self.encodings.get_mut(coding as usize)
    }

    fn ready(&self) -> impl Iterator<Item = &Variant> {
        self.encodings.iter().filter_map(|encoding| match encoding {
            EncodedForm::Made(resource) | EncodedForm::Sibling(resource) => Some(resource),
            EncodedForm::Absent | EncodedForm::Possible => None,
        })
    }

    fn sibling(&self, coding: ContentCoding) -> Option<&Variant> {
        match self.encodings.get(coding as usize) {
            Some(EncodedForm::Sibling(resource)) => Some(resource),
            _ => None,
        }
    }

    /// Whether the siblings on disk are still the siblings found earlier.
    pub(crate) fn are_still(&self, site: &Site, name: &str, facts: &FileStat, guard: &Guard) -> bool {
        site.settings.codings.siblings.iter().all(|&coding| {
            match (usable_sibling(site, name, coding, facts, guard), self.sibling(coding)) {
                (Some(now), Some(sibling)) => sibling.is_still(&now),
                (None, None) => true,
                _ => false,
            }
        })
    }

    /// Returns the siblings, for tags from their content, in the order of the codings.
    pub(crate) fn untagged(&self) -> impl Iterator<Item = Untagged> {
        self.encodings.iter().filter_map(|encoding| match encoding {
            EncodedForm::Sibling(sibling) => Some(sibling.untagged()),
            _ => None,
        })
    }

    /// Returns the same encodings with tags from these digests, in the same order.
    pub(crate) fn tagged(&self, digests: &[Arc<[u8]>]) -> Encodings {
        let mut digests = digests.iter();
        let mut tagged = self.clone();
        for encoding in &mut tagged.encodings {
            if let EncodedForm::Sibling(sibling) = encoding
                && let Some(digest) = digests.next()
            {
                *sibling = sibling.tagged(digest);
            }
        }
        tagged
    }

    pub(crate) fn hold_files(&self) -> bool {
        self.ready().any(Variant::holds_file)
    }

    /// Bytes of memory, including this value itself.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Encodings>() + self.ready().map(Variant::weight).sum::<usize>()
    }

    /// Keeps an encoding that was made. Without `made`, marks the encoding as absent.
    pub(crate) fn settle(&mut self, coding: ContentCoding, made: Option<Variant>) {
        if let Some(form @ EncodedForm::Possible) = self.encodings.get_mut(coding as usize) {
            *form = match made {
                Some(resource) => EncodedForm::Made(resource),
                None => EncodedForm::Absent,
            };
        }
        let encodings = &self.encodings;
        self.available.retain(|&each| !matches!(encodings.get(each as usize), Some(EncodedForm::Absent)));
    }
}

pub(crate) fn has_no_siblings(site: &Site, name: &str, facts: &FileStat, guard: &Guard) -> bool {
    let mut codings = site.settings.codings.siblings.iter();
    codings.all(|&coding| usable_sibling(site, name, coding, facts, guard).is_none())
}

/// Returns the facts of a file's sibling in this coding, if it is current and has the same guard.
fn usable_sibling(
    site: &Site,
    name: &str,
    coding: ContentCoding,
    facts: &FileStat,
    guard: &Guard,
) -> Option<FileStat> {
    let wanted = LookupName::file(&format!("{name}{}", suffix(coding)));
    let sibling = wanted.look(&site.files.roots).ok()?;
    if !is_current(sibling.modified, facts.modified) {
        if let Some(remarks) = &site.remarks {
            remarks.stale(site.files.roots.of(name), wanted.name(), name);
        }
        return None;
    }
    site.files.is_guarded_by(wanted.name(), &sibling, guard).then_some(sibling)
}

/// Loads the sibling of the file called `name` in this form.
fn load_sibling(site: &Site, name: &str, form: RepresentationForm<'_>) -> Option<Variant> {
    let wanted = LookupName::file(&format!("{name}{}", suffix(form.coding)));
    let found = site.files.open(&wanted).ok()?;
    let usable = found.keep && found.guard == *form.guard && is_current(found.facts.modified, form.modified);
    usable.then(|| Variant::new(200, name, found.facts, found.opened, form))
}
