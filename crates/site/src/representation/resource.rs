//! A file with all of its encodings, loaded and ready to be sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenfold_http::FieldName;
use tenfold_http::semantics::negotiate::ContentCoding;
use tenfold_sys::file::FileStat;

use crate::files::absence::Absence;
use crate::files::media_type;
use crate::files::open::{Files, Found, LookupName};
use crate::files::try_paths::TryPaths;
use crate::representation::description::RepresentationForm;
use crate::representation::encodings::{self, Encodings};
use crate::representation::tags::Untagged;
use crate::representation::variant::Variant;
use crate::rules::access::Guard;
use crate::rules::path::SitePath;
use crate::rules::policy::Effective;
use crate::site::Site;

/// One version of a file.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    /// The file without an encoding.
    pub(crate) plain: Variant,
    /// The encodings, if the file has any.
    pub(crate) encodings: Option<Box<Encodings>>,
    /// Distinguishes the resource from all other resources of this process.
    pub(crate) number: u64,
}

/// A file that was found.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) resource: Resource,
    /// Whether the resource may be cached, as in [`Found`].
    pub(crate) keep: bool,
}

impl Loaded {
    /// Loads the first existing file of `paths`, with its encodings, under the policy `here`.
    pub(crate) fn first(paths: &TryPaths, site: &Site, here: &Effective) -> Result<Loaded, Absence> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let (wanted, found) = paths.first(|wanted| site.files.open(wanted))?;
        let Found { facts, opened, guard, keep } = found;
        let policies = &site.settings.policies;
        let of_file = || policies.caching_of(here, &SitePath::of_decoded(&format!("/{}", wanted.name())));
        let here = if wanted.fixed { &of_file() } else { here };
        let form = RepresentationForm::plain(&facts, here, &guard);
        // Content whose coding is set by a rule is not encoded again.
        let is_free = here.fields.keeps(FieldName::CONTENT_ENCODING);
        let own = media_type::compressed(wanted.name(), &here.policy).filter(|_| is_free);
        let (coding, name) = own.unwrap_or_else(|| (ContentCoding::Identity, wanted.name().to_owned()));
        let mut encodings = None;
        if is_free && coding == ContentCoding::Identity {
            encodings = Encodings::find(site, &name, &facts, form);
        }
        let form = RepresentationForm { coding, negotiated: encodings.is_some(), ..form };
        let plain = Variant::new(200, &name, facts, opened, form);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Ok(Loaded { resource: Resource { plain, encodings, number }, keep })
    }
}

impl Resource {
    /// Returns the credentials that the file requires.
    pub(crate) fn guard(&self) -> &Guard {
        self.plain.guard()
    }

    /// Whether the first existing file of `paths` is still this version, with the same siblings.
    pub(crate) fn is_still_first(&self, paths: &TryPaths, site: &Site) -> bool {
        let looked = paths.first(|wanted| wanted.look(&site.files.roots));
        is_still(&site.files, &self.plain, looked, |name, facts| match &self.encodings {
            Some(encodings) => encodings.are_still(site, name, facts, self.guard()),
            None if self.plain.is_coded() => true,
            None => encodings::has_no_siblings(site, name, facts, self.guard()),
        })
    }

    /// Returns the file and its siblings, for tags from their content.
    pub(crate) fn untagged(&self) -> Vec<Untagged> {
        let others = self.encodings.iter().flat_map(|encodings| encodings.untagged());
        std::iter::once(self.plain.untagged()).chain(others).collect()
    }

    /// Returns the same version with tags from these digests, in the order of [`Resource::untagged`].
    pub(crate) fn tagged(&self, digests: &[Arc<[u8]>]) -> Resource {
        let (own, others) = digests.split_first().expect("the file itself is the first");
        let encodings = self.encodings.as_ref().map(|known| Box::new(known.tagged(others)));
        Resource { plain: self.plain.tagged(own), encodings, number: self.number }
    }

    /// Whether it keeps a file open.
    pub(crate) fn holds_file(&self) -> bool {
        self.plain.holds_file() || self.encodings.as_ref().is_some_and(|encodings| encodings.hold_files())
    }

    /// Bytes of memory besides this value itself.
    pub(crate) fn weight(&self) -> usize {
        self.plain.weight() + self.encodings.as_ref().map_or(0, |encodings| encodings.weight())
    }
}

/// Whether a file is still this version, and `also` holds. If descriptors are exhausted, the version stays
/// valid: an old response is better than an error.
pub(crate) fn is_still(
    files: &Files,
    variant: &Variant,
    looked: Result<(&LookupName, FileStat), Absence>,
    also: impl FnOnce(&str, &FileStat) -> bool,
) -> bool {
    match looked {
        Ok((wanted, facts)) => {
            variant.is_still(&facts)
                && files.is_guarded_by(wanted.name(), &facts, variant.guard())
                && also(wanted.name(), &facts)
        }
        Err(absence) => matches!(absence, Absence::Exhausted(_)),
    }
}
