//! What one worker remembers of the sites it serves.
//!
//! A worker is a thread, so a store is a thread's own: no lock, nothing shared that is written. Files in
//! memory, files held open and what is not there have bounds of their own, so that none can push out
//! another: who asks for a million names that do not exist evicts names that do not exist. Keys are
//! canonical paths, so a file has one entry, however it is spelled.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use tenfold_http::{Head, Instant, Out, clock};

use crate::clock_cache::{ClockCache, is_fresh};
use crate::path::{PathError, SitePath};
use crate::policy::Effective;
use crate::resolve::{self, Absence, Loaded, Wanted};
use crate::resource::Resource;
use crate::work::Answered;
use crate::{Outcome, Settings, Site, coded, message};

/// Stores of a thread. There is one for each site that it serves; the bound is for a thread that sees many
/// sites come and go.
const MOST_STORES: usize = 64;

/// How much smaller the store of what is not there is than that of what is.
const ABSENT_SHARE: usize = 16;

thread_local! {
    static STORES: RefCell<Vec<Kept>> = const { RefCell::new(Vec::new()) };
}

struct Kept {
    site: u64,
    alive: Weak<()>,
    store: Store,
}

/// Hands over this thread's store for `site`.
#[inline]
pub(crate) fn with<T>(site: &Site, use_it: impl FnOnce(&mut Store) -> T) -> T {
    STORES.with_borrow_mut(|stores| {
        let place = match stores.iter().position(|kept| kept.site == site.id) {
            Some(place) => place,
            None => begin(site, stores),
        };
        use_it(&mut stores[place].store)
    })
}

/// Makes a store for a site that is new here, and drops those of sites that are gone.
#[cold]
fn begin(site: &Site, stores: &mut Vec<Kept>) -> usize {
    stores.retain(|kept| kept.alive.strong_count() > 0);
    if stores.len() >= MOST_STORES {
        stores.remove(0);
    }
    let store = Store::new(&site.settings);
    stores.push(Kept { site: site.id, alive: Arc::downgrade(&site.alive), store });
    stores.len() - 1
}

/// What is remembered of one site.
pub(crate) struct Store {
    memory: ClockCache<Resource>,
    files: ClockCache<Resource>,
    absent: ClockCache<Absence>,
    not_found: Page,
}

/// A request to a site, at a moment.
#[derive(Clone, Copy)]
struct Asked<'a> {
    site: &'a Site,
    head: &'a Head<'a>,
    now: Instant,
}

/// The page that says 404, and when it was looked for.
#[derive(Default)]
struct Page {
    resource: Option<Resource>,
    checked: Option<Instant>,
}

/// Answers with a file that was found under `key`, in the coding that suits.
#[inline]
fn answer(resource: &mut Resource, key: &str, asked: Asked<'_>, out: &mut Out) -> Answered {
    let Asked { site, head, .. } = asked;
    match resource.alternatives() {
        None => resource.respond(head, &site.settings, out).into(),
        Some(_) => coded::negotiate(resource, key, site, head, out),
    }
}

impl Store {
    fn new(settings: &Settings) -> Store {
        Store {
            memory: ClockCache::new(settings.cache_entries, settings.cache_bytes),
            // Each may hold one for every coding that stands beside it.
            files: ClockCache::new(
                settings.open_files / (1 + settings.codings.siblings.len()),
                settings.cache_bytes,
            ),
            absent: ClockCache::new(settings.cache_entries, settings.cache_bytes / ABSENT_SHARE),
            not_found: Page::default(),
        }
    }

    /// Answers a GET or a HEAD.
    #[inline]
    pub(crate) fn respond(&mut self, site: &Site, head: &Head<'_>, out: &mut Out) -> Answered {
        let asked = Asked { site, head, now: clock::now() };
        // Most clients spell a path as we do: what is found under the bytes that came needs no reading.
        match self.memory.fresh(head.target.path, asked.now) {
            Some(resource) => answer(resource, head.target.path, asked, out),
            None => self.respond_without_memory(asked, out),
        }
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
        let spelled = asked.head.target.path;
        if let Some(answered) = self.recall(spelled, asked, out) {
            return answered;
        }
        let path = match SitePath::parse(spelled) {
            Ok(path) => path,
            Err(PathError::Malformed) => return message::plain(asked.head, 400, out).into(),
            Err(PathError::Hidden) => return self.not_found(asked, out).into(),
        };
        let wanted = Wanted::by_path(&path, &asked.site.settings);
        self.check(path.canonical(), &wanted, asked);
        if let Some(resource) = self.memory.fresh(path.canonical(), asked.now) {
            return answer(resource, path.canonical(), asked, out);
        }
        if let Some(answered) = self.recall(path.canonical(), asked, out) {
            return answered;
        }
        match self.load(&wanted, &asked.site.settings.policies.at(&path), asked.site) {
            Ok(mut loaded) => {
                let answered = answer(&mut loaded.resource, path.canonical(), asked, out);
                self.keep(path.canonical(), loaded, asked.now);
                answered
            }
            Err(absence) => {
                if let Absence::NotFound | Absence::Forbidden | Absence::Directory = absence {
                    self.absent.insert(path.canonical(), absence, 0, asked.now);
                }
                self.refuse(absence, path.canonical(), asked, out)
            }
        }
    }

    /// Answers with what is known to be held open or not to be there, if it is known.
    fn recall(&mut self, canonical: &str, asked: Asked<'_>, out: &mut Out) -> Option<Answered> {
        if let Some(resource) = self.files.fresh(canonical, asked.now) {
            return Some(answer(resource, canonical, asked, out));
        }
        let absence = *self.absent.fresh(canonical, asked.now)?;
        Some(self.refuse(absence, canonical, asked, out))
    }

    /// Looks again at a file that has been remembered for long enough, and forgets it where it has changed.
    fn check(&mut self, canonical: &str, wanted: &Wanted, asked: Asked<'_>) {
        for cache in [&mut self.memory, &mut self.files] {
            let Site { root, settings, .. } = asked.site;
            cache.check(canonical, asked.now, |resource| resolve::is_still(root, wanted, resource, settings));
        }
    }

    /// Loads a file; where descriptors have run out, after giving back those that are only kept.
    fn load(&mut self, wanted: &Wanted, here: &Effective, site: &Site) -> Result<Loaded, Absence> {
        match resolve::load(&site.root, wanted, 200, here, &site.settings) {
            Err(Absence::Exhausted(_)) if self.files.clear() => {
                resolve::load(&site.root, wanted, 200, here, &site.settings)
            }
            result => result,
        }
    }

    fn keep(&mut self, canonical: &str, loaded: Loaded, now: Instant) {
        let Loaded { resource, keep: true } = loaded else { return };
        let cache = if resource.holds_file() { &mut self.files } else { &mut self.memory };
        let weight = resource.weight();
        cache.insert(canonical, resource, weight, now);
    }

    fn refuse(&mut self, absence: Absence, canonical: &str, asked: Asked<'_>, out: &mut Out) -> Answered {
        let outcome = match absence {
            Absence::NotFound => self.not_found(asked, out),
            Absence::Forbidden => message::plain(asked.head, 403, out),
            Absence::Directory => message::to_directory(asked.head, canonical, out),
            Absence::Exhausted(errno) => message::unavailable(asked.head, Some(errno), out),
            Absence::Failed(errno) => message::failed(asked.head, errno, out),
        };
        outcome.into()
    }

    /// Answers 404: with the site's own page where it has one, looked for once a second.
    fn not_found(&mut self, asked: Asked<'_>, out: &mut Out) -> Outcome {
        let Asked { site, head, now } = asked;
        let page = &mut self.not_found;
        if let Some(name) = &site.settings.error_page_404
            && page.checked.is_none_or(|checked| !is_fresh(checked, now))
        {
            let wanted = Wanted::file(name);
            let still = |page: &Resource| resolve::is_still(&site.root, &wanted, page, &site.settings);
            page.resource = page.resource.take().filter(still);
            if page.resource.is_none() {
                let loaded = resolve::load(&site.root, &wanted, 404, &Effective::default(), &site.settings);
                page.resource = loaded.ok().map(|loaded| loaded.resource);
            }
            page.checked = Some(now);
        }
        match &mut page.resource {
            Some(resource) => resource.whole(head, out),
            None => message::plain(head, 404, out),
        }
    }
}
