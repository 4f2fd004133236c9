//! The encodings of a file: those beside it, and those that can be made of it.

use std::sync::Arc;

use tenfold_http::Request;
use tenfold_http::semantics::negotiate::{self, Choice, ContentCoding};
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
    /// In the order of the server's preference; the file without an encoding is the last.
    available: Vec<ContentCoding>,
    /// By the number of the coding.
    encodings: [EncodedForm; 3],
}

/// A file in one coding.
#[derive(Clone, Debug)]
pub(crate) enum EncodedForm {
    Absent,
    /// It can be made.
    Possible,
    Made(Variant),
    /// It is a file of its own beside the file.
    Sibling(Variant),
}

impl Encodings {
    /// The encodings of the file called `name`, if it has any.
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
        if let Some(place @ EncodedForm::Absent) = self.encodings.get_mut(coding as usize) {
            *place = encoding;
            self.available.push(coding);
        }
    }

    /// The encoding to send for this request.
    pub(crate) fn choose(&self, request: &Request<'_>) -> Choice {
        negotiate::choose(request.values("accept-encoding"), &self.available)
    }

    /// The file in this coding; none for the file without an encoding.
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

    /// Whether the siblings of the file are those that were found.
    pub(crate) fn are_still(&self, site: &Site, name: &str, facts: &FileStat, guard: &Guard) -> bool {
        site.settings.codings.siblings.iter().all(|&coding| {
            match (usable_sibling(site, name, coding, facts, guard), self.sibling(coding)) {
                (Some(now), Some(sibling)) => sibling.is_still(&now),
                (None, None) => true,
                _ => false,
            }
        })
    }

    /// The siblings of which tags are made, in the order of the codings.
    pub(crate) fn untagged(&self) -> impl Iterator<Item = Untagged> {
        self.siblings().map(Variant::untagged)
    }

    /// The same with tags of these digests, in that order.
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

    fn siblings(&self) -> impl Iterator<Item = &Variant> {
        self.encodings.iter().filter_map(|encoding| match encoding {
            EncodedForm::Sibling(resource) => Some(resource),
            _ => None,
        })
    }

    pub(crate) fn hold_files(&self) -> bool {
        self.ready().any(Variant::holds_file)
    }

    /// Bytes of memory, with this value itself.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Encodings>() + self.ready().map(Variant::weight).sum::<usize>()
    }

    /// Keeps an encoding that was made; without one, forgets that it can be made.
    pub(crate) fn settle(&mut self, coding: ContentCoding, made: Option<Variant>) {
        if let Some(place @ EncodedForm::Possible) = self.encodings.get_mut(coding as usize) {
            *place = match made {
                Some(resource) => EncodedForm::Made(resource),
                None => EncodedForm::Absent,
            };
        }
        let encodings = &self.encodings;
        self.available.retain(|&each| !matches!(encodings.get(each as usize), Some(EncodedForm::Absent)));
    }
}

/// Whether a file has no siblings.
pub(crate) fn has_no_siblings(site: &Site, name: &str, facts: &FileStat, guard: &Guard) -> bool {
    let mut codings = site.settings.codings.siblings.iter();
    codings.all(|&coding| usable_sibling(site, name, coding, facts, guard).is_none())
}

/// The facts of the sibling of a file in this coding, if it is current and has the same guard.
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
