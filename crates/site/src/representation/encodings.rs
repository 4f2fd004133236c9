//! The codings of a file: what stands beside it, what can be made of it, and which of them a request gets.

use std::fs::File;
use std::sync::Arc;

use tenfold_http::negotiate::{self, Choice, Coding};
use tenfold_http::response::FieldValue;
use tenfold_http::{Head, Out};
use tenfold_sys::file::{self, Facts};

use crate::cache::encoded::{Label, Shelf};
use crate::files::media_type;
use crate::files::open::{self as resolve, Wanted};
use crate::files::protection::Guard;
use crate::representation::compress::encode;
use crate::representation::tags::Untagged;
use crate::representation::variant::{Form, Resource, Source, Unmade};
use crate::respond::message;
use crate::respond::store;
use crate::respond::work::{Answered, Work};
use crate::rules::codings::suffix;
use crate::{Outcome, Site};

/// An answer that would be another one for another `Accept-Encoding` (RFC 9110 §12.5.5).
pub(crate) const VARY: FieldValue<'static> = FieldValue::constant("Accept-Encoding");

/// The value of `Content-Encoding`.
pub(crate) fn token(coding: Coding) -> FieldValue<'static> {
    FieldValue::new(coding.token().as_bytes()).expect("a coding's name is a token")
}

/// The codings of a file beside the file as it is.
#[derive(Clone, Debug)]
pub(crate) struct Alternatives {
    /// What an answer can be, in the order of the server; the file as it is comes last.
    available: Vec<Coding>,
    /// By the number of the coding.
    coded: [Coded; 3],
}

/// A file in one coding.
#[derive(Clone, Debug)]
enum Coded {
    Absent,
    /// It can be made.
    Possible,
    Made(Resource),
    /// It stands beside the file.
    Sibling(Resource),
}

impl Alternatives {
    /// What there is of the file called `name` beside itself; none where there is nothing.
    pub(crate) fn find(site: &Site, name: &str, facts: &Facts, form: Form<'_>) -> Option<Box<Alternatives>> {
        let codings = &site.settings.codings;
        let mut found = Alternatives { available: Vec::new(), coded: [const { Coded::Absent }; 3] };
        for &coding in &codings.siblings {
            if usable_sibling(site, name, coding, facts, form.guard).is_some()
                && let Some(sibling) = load_sibling(site, name, Form { coding, negotiated: true, ..form })
            {
                found.add(coding, Coded::Sibling(sibling));
            }
        }
        if codings.compresses(&media_type::of(name, &form.here.policy), facts.size) {
            codings.made.iter().for_each(|&coding| found.add(coding, Coded::Possible));
        }
        if found.available.is_empty() {
            return None;
        }
        found.available.push(Coding::Identity);
        Some(Box::new(found))
    }

    fn add(&mut self, coding: Coding, coded: Coded) {
        if let Some(place @ Coded::Absent) = self.coded.get_mut(coding as usize) {
            *place = coded;
            self.available.push(coding);
        }
    }

    fn ready(&self) -> impl Iterator<Item = &Resource> {
        self.coded.iter().filter_map(|coded| match coded {
            Coded::Made(resource) | Coded::Sibling(resource) => Some(resource),
            Coded::Absent | Coded::Possible => None,
        })
    }

    fn sibling(&self, coding: Coding) -> Option<&Resource> {
        match self.coded.get(coding as usize) {
            Some(Coded::Sibling(resource)) => Some(resource),
            _ => None,
        }
    }

    /// Whether what stands beside the file is what was found there.
    pub(crate) fn are_still(&self, site: &Site, name: &str, facts: &Facts, guard: &Guard) -> bool {
        site.settings.codings.siblings.iter().all(|&coding| {
            match (usable_sibling(site, name, coding, facts, guard), self.sibling(coding)) {
                (Some(now), Some(sibling)) => sibling.is_still(&now),
                (None, None) => true,
                _ => false,
            }
        })
    }

    /// What stands beside the file and is to get a tag, in the order of the codings.
    pub(crate) fn untagged(&self) -> impl Iterator<Item = Untagged> {
        self.siblings().map(Resource::untagged_alone)
    }

    /// The same with tags of these digests, in that order.
    pub(crate) fn tagged(&self, digests: &[Arc<[u8]>]) -> Alternatives {
        let mut digests = digests.iter();
        let mut tagged = self.clone();
        for coded in &mut tagged.coded {
            if let Coded::Sibling(sibling) = coded
                && let Some(digest) = digests.next()
            {
                *sibling = sibling.tagged_alone(digest);
            }
        }
        tagged
    }

    fn siblings(&self) -> impl Iterator<Item = &Resource> {
        self.coded.iter().filter_map(|coded| match coded {
            Coded::Sibling(resource) => Some(resource),
            _ => None,
        })
    }

    pub(crate) fn hold_files(&self) -> bool {
        self.ready().any(Resource::holds_file)
    }

    /// Bytes of memory, with this value itself.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Alternatives>() + self.ready().map(Resource::weight).sum::<usize>()
    }

    /// Keeps what was made; forgets that it can be made, where it can not.
    fn settle(&mut self, coding: Coding, made: Option<Resource>) {
        if let Some(place @ Coded::Possible) = self.coded.get_mut(coding as usize) {
            *place = match made {
                Some(resource) => Coded::Made(resource),
                None => Coded::Absent,
            };
        }
        let coded = &self.coded;
        self.available.retain(|&each| !matches!(coded.get(each as usize), Some(Coded::Absent)));
    }
}

/// Whether nothing stands beside a file that was found alone.
pub(crate) fn is_still_alone(site: &Site, name: &str, facts: &Facts, guard: &Guard) -> bool {
    let mut codings = site.settings.codings.siblings.iter();
    codings.all(|&coding| usable_sibling(site, name, coding, facts, guard).is_none())
}

/// The facts of the file beside another one that has it in this coding: where there is one, and it is at
/// least as new. An older one was made of an older version. It has the guard of that file, or is not used.
fn usable_sibling(site: &Site, name: &str, coding: Coding, facts: &Facts, guard: &Guard) -> Option<Facts> {
    let wanted = Wanted::file(&format!("{name}{}", suffix(coding)));
    let sibling = wanted.look(&site.root).ok().filter(|sibling| sibling.modified >= facts.modified)?;
    resolve::is_guarded_by(site, wanted.name(), &sibling, guard).then_some(sibling)
}

/// Loads what stands beside the file called `name` in this form.
fn load_sibling(site: &Site, name: &str, form: Form<'_>) -> Option<Resource> {
    let wanted = Wanted::file(&format!("{name}{}", suffix(form.coding)));
    let found = resolve::open(site, &wanted).ok()?;
    let usable = found.keep && found.guard == *form.guard && found.facts.modified >= form.modified;
    usable.then(|| Resource::new(200, name, found.facts, found.opened, form))
}

/// Answers a request for a file that there is in several codings; `key` is where the store has it.
pub(crate) fn negotiate(
    resource: &mut Resource,
    key: &str,
    site: &Site,
    request: &Head<'_>,
    out: &mut Out,
) -> Answered {
    let settings = &site.settings;
    let Some(alternatives) = resource.alternatives() else {
        return resource.respond(request, settings, out).into();
    };
    let choice = negotiate::choose(request.values("accept-encoding"), &alternatives.available);
    let coding = match choice {
        Choice::Use(coding) => coding,
        Choice::NotAcceptable => return resource.not_acceptable(request, out).into(),
    };
    match alternatives.coded.get_mut(coding as usize) {
        Some(Coded::Made(coded) | Coded::Sibling(coded)) => coded.respond(request, settings, out).into(),
        Some(Coded::Possible) => make(resource, coding, key, site, request, out),
        Some(Coded::Absent) | None => resource.respond(request, settings, out).into(),
    }
}

/// Answers with a coding that has to be made. What needs no content is answered without: a HEAD, and what
/// the client has already. Where as much is being made as may be, the file goes as it is, to who takes it so.
fn make(
    resource: &mut Resource,
    coding: Coding,
    key: &str,
    site: &Site,
    request: &Head<'_>,
    out: &mut Out,
) -> Answered {
    let unmade = resource.unmade(coding);
    if let Some(outcome) = unmade.respond(request, out) {
        return outcome.into();
    }
    let job = Job { source: resource.source(), unmade, coding, shelf: Arc::clone(&site.shelf) };
    let (key, plain) = (key.to_owned(), Arc::new(resource.alone()));
    let otherwise = Arc::clone(&plain);
    let work = Work::new(
        move || job.run(),
        move |made, site, head, out| answer_made(site, &key, &plain, (coding, made), head, out).into(),
    );
    Answered::Work(work.or_else(move |site, head, out| {
        as_it_is(&otherwise, site, head, out).unwrap_or_else(|| message::unavailable(head, out))
    }))
}

/// Answers with the file as it is; none where the client excludes that.
pub(crate) fn as_it_is(
    resource: &Resource,
    site: &Site,
    request: &Head<'_>,
    out: &mut Out,
) -> Option<Outcome> {
    match negotiate::choose(request.values("accept-encoding"), &[Coding::Identity]) {
        Choice::Use(_) => Some(resource.clone().respond(request, &site.settings, out)),
        Choice::NotAcceptable => None,
    }
}

/// A file that is to be coded.
struct Job {
    source: Source,
    unmade: Unmade,
    coding: Coding,
    shelf: Arc<Shelf>,
}

/// What came of it.
struct Made {
    unmade: Unmade,
    bytes: Arc<[u8]>,
}

impl Job {
    /// Finds or makes it; none where the file has changed, or can not be read.
    fn run(self) -> Option<Made> {
        let facts = self.unmade.facts();
        // Only what has settled can be told from what comes after it.
        let label = self.unmade.is_settled().then(|| Label::new(facts, self.coding));
        if let Some(known) = label.and_then(|label| self.shelf.find(&label)) {
            return Some(Made { unmade: self.unmade, bytes: known });
        }
        let coded: Arc<[u8]> = match &self.source {
            Source::Memory(bytes) => encode(bytes, self.coding).ok()?.into(),
            Source::File(file) => encode(&read(&file.file, facts)?, self.coding).ok()?.into(),
        };
        if let Some(label) = label {
            self.shelf.put(label, Arc::clone(&coded));
        }
        Some(Made { unmade: self.unmade, bytes: coded })
    }
}

/// All of an open file, where it is this version of it.
fn read(file: &File, facts: &Facts) -> Option<Vec<u8>> {
    let bytes = file::read_whole(file, usize::try_from(facts.size).ok()?).ok()??;
    (file::facts(file).ok()? == *facts).then_some(bytes)
}

/// Answers with what was made, and leaves it where the next request finds it. What was not made is not tried
/// again with this version of the file.
fn answer_made(
    site: &Site,
    key: &str,
    plain: &Resource,
    (coding, made): (Coding, Option<Made>),
    request: &Head<'_>,
    out: &mut Out,
) -> Outcome {
    let mut made = made.map(|Made { unmade, bytes }| unmade.with(bytes));
    let outcome = match &mut made {
        Some(made) => made.respond(request, &site.settings, out),
        None => as_it_is(plain, site, request, out).unwrap_or_else(|| plain.not_acceptable(request, out)),
    };
    store::with(site, |store| {
        store.amend(key, |known| {
            if known.number() == plain.number()
                && let Some(alternatives) = known.alternatives()
            {
                alternatives.settle(coding, made);
            }
        });
    });
    outcome
}
