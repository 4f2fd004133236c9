//! What one worker remembers of the sites it serves.
//!
//! A worker is a thread, so a store is a thread's own: no lock, nothing shared that is written. Files in
//! memory, files held open and what is not there have bounds of their own, so that none can push out
//! another: who asks for a million names that do not exist evicts names that do not exist. Keys are
//! canonical paths, so a file has one entry, however it is spelled.

use tenfold_http::response::{FieldName, Lines};
use tenfold_http::{Head, Instant, Method, Out, Version, clock};

use crate::cache::clock::ClockCache;
use crate::files::open::{self as resolve, Absence, Loaded};
use crate::files::try_paths::Candidates;
use crate::files::watch::{Listener, Told, Watch};
use crate::representation::encodings as coded;
use crate::representation::tags as tag;
use crate::representation::variant::Resource;
use crate::respond::error_pages::Pages;
use crate::respond::listing::{self, Listing};
use crate::respond::message;
use crate::respond::work::Answered;
use crate::rules::access::{Access, Denied, STRANGER};
use crate::rules::codings::suffix;
use crate::rules::path::SitePath;
use crate::rules::policy::Effective;
use crate::rules::precheck::{Front, Stop, Way};
use crate::{Outcome, Settings, Site};

/// How much smaller the store of what is not there is than that of what is.
const ABSENT_SHARE: usize = 16;

/// What is remembered of one site.
pub(crate) struct Store {
    memory: ClockCache<Resource>,
    files: ClockCache<Resource>,
    absent: ClockCache<Absence>,
    pages: Pages,
    /// What was heard of changes on disk.
    listener: Listener,
}

/// A request to a site, at a moment.
#[derive(Clone, Copy)]
struct Asked<'a> {
    site: &'a Site,
    head: &'a Head<'a>,
    access: &'a Access,
    now: Instant,
}

/// Answers with a file that was found under `key`, in the coding that suits.
fn answer(resource: &mut Resource, key: &str, asked: Asked<'_>, out: &mut Out) -> Answered {
    let Asked { site, head, .. } = asked;
    match resource.alternatives() {
        None => resource.respond(head, &site.settings, out).into(),
        Some(_) => coded::negotiate(resource, key, site, head, out),
    }
}

impl Store {
    pub(super) fn new(settings: &Settings) -> Store {
        Store {
            memory: ClockCache::new(settings.cache_entries, settings.cache_bytes),
            // Each may hold one for every coding that stands beside it.
            files: ClockCache::new(
                settings.open_files / (1 + settings.codings.siblings.len()),
                settings.cache_bytes,
            ),
            absent: ClockCache::new(settings.cache_entries, settings.cache_bytes / ABSENT_SHARE),
            pages: Pages::default(),
            listener: Listener::default(),
        }
    }

    /// Doubts what is told to have changed. A file is one of a folder's index and of the codings beside it,
    /// too; what was found by a rule of the configuration or through a link has another name, and waits for
    /// the look after a second.
    #[cold]
    fn hear(&mut self, site: &Site, watch: &Watch) {
        let Store { memory, files, absent, pages, listener, .. } = self;
        pages.doubt();
        watch.tell(listener, |told| match told {
            Told::Everything => {
                memory.doubt_all();
                files.doubt_all();
                absent.clear();
            }
            Told::File(relative) => named_by(relative, &site.settings).for_each(|path| {
                let key = path.canonical();
                memory.doubt(key);
                files.doubt(key);
                absent.doubt(key);
            }),
        });
    }

    /// Answers a GET or a HEAD with a file in memory of which there is one coding; none where it takes more.
    #[inline]
    pub(crate) fn respond_from_memory(
        &mut self,
        site: &Site,
        access: &Access,
        head: &Head<'_>,
        out: &mut Out,
    ) -> Option<Outcome> {
        if let Some(watch) = &site.watch
            && watch.has_news(&self.listener)
        {
            self.hear(site, watch);
        }
        // Most clients spell a path as we do: what is found under the bytes that came needs no reading.
        let resource = self.memory.fresh(head.target.path, clock::now())?;
        if resource.is_guarded(access) || resource.alternatives().is_some() {
            return None;
        }
        Some(resource.respond(head, &site.settings, out))
    }

    /// Answers any GET or HEAD.
    pub(crate) fn respond(
        &mut self,
        site: &Site,
        access: &Access,
        head: &Head<'_>,
        out: &mut Out,
    ) -> Answered {
        let asked = Asked { site, head, access, now: clock::now() };
        match self.memory.fresh(head.target.path, asked.now) {
            Some(resource) if !resource.is_guarded(access) => answer(resource, head.target.path, asked, out),
            _ => self.respond_without_memory(asked, out),
        }
    }

    /// Answers a GET or a HEAD of which nothing is known yet but, perhaps, something about its client.
    pub(crate) fn respond_to(
        &mut self,
        site: &Site,
        head: &Head<'_>,
        access: &Access,
        out: &mut Out,
    ) -> Answered {
        let asked = Asked { site, head, access, now: clock::now() };
        let Front { here, fields, way } = Front::of(site, head, access);
        out.add_fields(&fields);
        let answered = match way {
            Ok(way) => self.look(&way, &here, asked, out),
            Err(Stop::Denied(denied)) => self.deny(denied, &here, asked, out),
            Err(Stop::Error(status)) => self.error(status, &here, asked, out).into(),
            Err(Stop::Redirect(status, place)) => {
                out.add_fields(&here.of_errors);
                message::redirect(head, status, &place, out).into()
            }
        };
        answered.adding(out.take_fields())
    }

    /// Changes what is known of a file, where it is known.
    pub(crate) fn amend(&mut self, canonical: &str, change: impl FnOnce(&mut Resource)) {
        let mut change = Some(change);
        for cache in [&mut self.memory, &mut self.files] {
            cache.amend(canonical, |resource| {
                if let Some(change) = change.take() {
                    change(resource);
                }
                resource.weight()
            });
        }
    }

    fn respond_without_memory(&mut self, asked: Asked<'_>, out: &mut Out) -> Answered {
        // What holds for everybody and everywhere needs no reading of the path.
        if let Some(here) = asked.site.settings.policies.alone()
            && let Some(answered) = self.recall(asked.head.target.path, here, asked, out)
        {
            return answered;
        }
        self.respond_to(asked.site, asked.head, asked.access, out)
    }

    /// Answers with what is found on this way.
    fn look(&mut self, way: &Way, here: &Effective, asked: Asked<'_>, out: &mut Out) -> Answered {
        let (site, key) = (asked.site, way.path.canonical());
        let opened = way.rewritten.as_ref().unwrap_or(&way.path);
        let candidates = Candidates::of(opened, here, &site.settings);
        if let Some(watch) = &site.watch {
            candidates.names().for_each(|name| watch.follow(&site.root, name, &mut self.listener));
        }
        self.check(key, &candidates, asked);
        if let Some(resource) = self.memory.fresh(key, asked.now) {
            if let Err(denied) = asked.access.admit(resource.guard(), here, asked.head) {
                return self.deny(denied, here, asked, out);
            }
            hint(here, asked.head, out);
            return answer(resource, key, asked, out);
        }
        if let Some(answered) = self.recall(key, here, asked, out) {
            return answered;
        }
        let loaded = self.load(&candidates, here, site).map_err(|absence| match absence {
            Absence::NotFound => resolve::without_index(way, here, site),
            absence => absence,
        });
        match loaded {
            Ok(loaded) => {
                if let Err(denied) = asked.access.admit(loaded.resource.guard(), here, asked.head) {
                    return self.deny(denied, here, asked, out);
                }
                hint(here, asked.head, out);
                if tag::is_from_content(&loaded.resource, site) {
                    return tag::work(key, loaded, site);
                }
                self.take_over(key, loaded, asked, out)
            }
            Err(absence) => {
                if !matches!(absence, Absence::Exhausted(_) | Absence::Failed(_)) {
                    self.absent.insert(key, absence, 0, asked.now);
                }
                self.refuse(absence, key, here, asked, out)
            }
        }
    }

    /// Answers with a file that was loaded for this client, and remembers it.
    pub(crate) fn take(
        &mut self,
        canonical: &str,
        loaded: Loaded,
        site: &Site,
        head: &Head<'_>,
        out: &mut Out,
    ) -> Answered {
        self.take_over(canonical, loaded, Asked { site, head, access: &STRANGER, now: clock::now() }, out)
    }

    fn take_over(
        &mut self,
        canonical: &str,
        mut loaded: Loaded,
        asked: Asked<'_>,
        out: &mut Out,
    ) -> Answered {
        let answered = answer(&mut loaded.resource, canonical, asked, out);
        self.keep(canonical, loaded, asked.now);
        answered
    }

    /// Answers with what is known to be held open or not to be there, if it is known.
    fn recall(
        &mut self,
        canonical: &str,
        here: &Effective,
        asked: Asked<'_>,
        out: &mut Out,
    ) -> Option<Answered> {
        if let Some(resource) = self.files.fresh(canonical, asked.now) {
            if let Err(denied) = asked.access.admit(resource.guard(), here, asked.head) {
                return Some(self.deny(denied, here, asked, out));
            }
            hint(here, asked.head, out);
            return Some(answer(resource, canonical, asked, out));
        }
        let absence = *self.absent.fresh(canonical, asked.now)?;
        Some(self.refuse(absence, canonical, here, asked, out))
    }

    /// Looks again at a file that has been remembered for long enough, and forgets it where it has changed.
    fn check(&mut self, canonical: &str, candidates: &Candidates, asked: Asked<'_>) {
        for cache in [&mut self.memory, &mut self.files] {
            cache.check(canonical, asked.now, |resource| candidates.are_still(asked.site, resource));
        }
    }

    /// Loads a file; where descriptors have run out, after giving back those that are only kept.
    fn load(&mut self, candidates: &Candidates, here: &Effective, site: &Site) -> Result<Loaded, Absence> {
        match candidates.load(site, here) {
            Err(Absence::Exhausted(_)) if self.files.clear() => candidates.load(site, here),
            result => result,
        }
    }

    fn keep(&mut self, canonical: &str, loaded: Loaded, now: Instant) {
        let Loaded { resource, keep: true } = loaded else { return };
        let cache = if resource.holds_file() { &mut self.files } else { &mut self.memory };
        let weight = resource.weight();
        cache.insert(canonical, resource, weight, now);
    }

    fn refuse(
        &mut self,
        absence: Absence,
        canonical: &str,
        here: &Effective,
        asked: Asked<'_>,
        out: &mut Out,
    ) -> Answered {
        let (status, failure) = match absence {
            Absence::NotFound => (404, None),
            Absence::Forbidden => (403, None),
            Absence::Directory => {
                out.add_fields(&here.of_errors);
                return message::to_directory(asked.head, canonical, out).into();
            }
            Absence::Listed(listing) => return self.list(canonical, listing, here, asked, out),
            Absence::Exhausted(errno) => {
                let mut again = Lines::default();
                again.number(FieldName::RETRY_AFTER, 1);
                out.add_fields(&again);
                (503, Some(errno))
            }
            Absence::Failed(errno) => (500, Some(errno)),
        };
        let outcome = self.error(status, here, asked, out);
        failure.map_or(outcome, |errno| outcome.because(errno)).into()
    }

    /// Answers with what is in a folder, which has a guard like a file. It is remembered nowhere.
    fn list(
        &mut self,
        canonical: &str,
        listing: Listing,
        here: &Effective,
        asked: Asked<'_>,
        out: &mut Out,
    ) -> Answered {
        let site = asked.site;
        let path = listing::path_of(canonical, site);
        let found = site.root.look(path.relative()).map_err(Absence::from);
        match found.and_then(|facts| site.protection.guard(path.relative(), &facts)) {
            Ok(Some(guard)) => match asked.access.admit(&guard, here, asked.head) {
                Ok(()) => listing::list(path, listing, here, site, asked.head),
                Err(denied) => self.deny(denied, here, asked, out),
            },
            Ok(None) => self.refuse(Absence::NotFound, canonical, here, asked, out),
            Err(absence) => self.refuse(absence, canonical, here, asked, out),
        }
    }

    /// Answers a client that is not let in, or says what has to be done to know.
    fn deny(&mut self, denied: Denied, here: &Effective, asked: Asked<'_>, out: &mut Out) -> Answered {
        match denied {
            Denied::Unauthorized(realm) => {
                let mut challenge = Lines::default();
                challenge.field(FieldName::constant("WWW-Authenticate"), realm.challenge());
                out.add_fields(&challenge);
                self.error(401, here, asked, out).into()
            }
            // What comes after it settles everything anew, the fields that were added too.
            Denied::Work(work) => {
                out.take_fields();
                Answered::Work(work)
            }
        }
    }

    /// Answers where work beside the loop did not find what it was to read.
    pub(crate) fn refuse_unread(
        &mut self,
        site: &Site,
        absence: Absence,
        here: &Effective,
        head: &Head<'_>,
        out: &mut Out,
    ) -> Answered {
        let asked = Asked { site, head, access: &STRANGER, now: clock::now() };
        self.refuse(absence, asked.head.target.path, here, asked, out)
    }

    /// Answers a method that a site does not serve.
    pub(crate) fn method_not_allowed(&mut self, site: &Site, head: &Head<'_>, out: &mut Out) -> Outcome {
        let mut allowed = Lines::default();
        allowed.field(FieldName::ALLOW, message::ALLOWED);
        out.add_fields(&allowed);
        let asked = Asked { site, head, access: &STRANGER, now: clock::now() };
        self.error(405, site.settings.policies.everywhere(), asked, out)
    }

    /// Answers with an error: with the site's own page where it has one.
    fn error(&mut self, status: u16, here: &Effective, asked: Asked<'_>, out: &mut Out) -> Outcome {
        out.add_fields(&here.of_errors);
        match self.pages.of(status, asked.site, asked.now) {
            Some(page) if asked.access.permits(page.guard(), asked.head) => page.whole(asked.head, out),
            _ => message::plain(asked.head, status, out),
        }
    }

    /// Answers what was no request with the site's own page for it, where it has one. The connection ends
    /// after it. Says how long the body is.
    pub(crate) fn refuse_with_page(&mut self, site: &Site, status: u16, out: &mut Out) -> Option<u64> {
        let page = self.pages.of(status, site, clock::now()).filter(|page| page.guard().is_open());
        page.map(|page| page.last(out))
    }
}

/// The paths that mean the file called `relative`.
fn named_by<'a>(relative: &'a str, settings: &'a Settings) -> impl Iterator<Item = SitePath> + 'a {
    let plain = settings.codings.siblings.iter().filter_map(|&coding| relative.strip_suffix(suffix(coding)));
    std::iter::once(relative).chain(plain).flat_map(|name| {
        let folder = name.strip_suffix(&settings.index).filter(|rest| rest.is_empty() || rest.ends_with('/'));
        let folder = folder.into_iter().flat_map(|folder| [folder, folder.trim_end_matches('/')]);
        std::iter::once(name).chain(folder).map(|name| SitePath::of_decoded(&format!("/{name}")))
    })
}

/// Sends ahead what an answer will need: to who understands interim answers (RFC 8297 §2).
fn hint(here: &Effective, request: &Head<'_>, out: &mut Out) {
    if let Some(hints) = &here.hints
        && (request.version, request.method) == (Version::Http11, Method::Get)
    {
        out.stage(hints);
    }
}
