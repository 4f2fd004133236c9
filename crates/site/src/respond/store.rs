//! The cache of one worker: the files of each site that it has served.
//!
//! A worker is a thread, and each thread has its own stores: no lock, and nothing shared is written. Files in
//! memory, open files and absent files have bounds of their own, so that none can evict another: requests for a
//! million names that do not exist evict names that do not exist. Keys are canonical paths, so a file has one
//! entry, however it is spelled.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use tenfold_http::{Instant, Request, ResponseWriter, clock};

use crate::cache::clock::{ClockCache, is_fresh};
use crate::files::absence::Absence;
use crate::files::open::{Found, LookupName};
use crate::files::try_paths::TryPaths;
use crate::files::watch::{ChangeListener, ChangeNotice, FolderWatch};
use crate::representation::description::RepresentationForm;
use crate::representation::resource::{Loaded, Resource, is_still};
use crate::representation::summary::ResponseSummary;
use crate::representation::variant::Variant;
use crate::rules::access::Access;
use crate::rules::codings::suffix;
use crate::rules::path::SitePath;
use crate::rules::policy::Effective;
use crate::rules::settings::Settings;
use crate::site::Site;

/// The size of the store of absent files, as a part of the store of files.
const ABSENT_SHARE: usize = 16;

thread_local! {
    /// The stores of this thread, by the number of their site.
    static STORES: RefCell<Vec<(u64, Box<SiteStore>)>> = const { RefCell::new(Vec::new()) };
}

/// The store of one site.
struct SiteStore {
    alive: Weak<()>,
    store: ResponseStore,
}

/// The cache of one site.
pub(crate) struct ResponseStore {
    pub(crate) memory: ClockCache<Resource>,
    pub(crate) files: ClockCache<Resource>,
    pub(crate) absent: ClockCache<Absence>,
    pub(crate) pages: OpenErrorPages,
    /// The changes on disk that were heard of.
    pub(crate) listener: ChangeListener,
}

/// Calls `use_it` with this thread's store for `site`.
#[inline]
pub(crate) fn with<T>(site: &Site, use_it: impl FnOnce(&mut ResponseStore) -> T) -> T {
    STORES.with_borrow_mut(|stores| {
        let place = match stores.iter().position(|(number, _)| *number == site.id) {
            Some(place) => place,
            None => begin(site, stores),
        };
        use_it(&mut stores[place].1.store)
    })
}

/// As [`with`], for uses that cache something. The bounds are those of all sites together: past one of them, the site that
/// uses most of it gives way.
pub(crate) fn with_growth<T>(site: &Site, use_it: impl FnOnce(&mut ResponseStore) -> T) -> T {
    let result = with(site, use_it);
    STORES.with_borrow_mut(|stores| {
        if stores.len() > 1 {
            balance(stores, |store| &mut store.memory);
            balance(stores, |store| &mut store.files);
            balance(stores, |store| &mut store.absent);
        }
    });
    result
}

/// Evicts from the largest of these caches until all of them together are within each bound.
fn balance<V>(stores: &mut [(u64, Box<SiteStore>)], of: fn(&mut ResponseStore) -> &mut ClockCache<V>) {
    for bound in 0..ClockCache::<V>::BOUNDS {
        loop {
            let (mut all, mut most, mut largest) = (0, 0, (0, 0));
            for (place, (_, each)) in stores.iter_mut().enumerate() {
                let (used, at_most) = of(&mut each.store).load()[bound];
                (all, most) = (all + used, most.max(at_most));
                largest = largest.max((used, place));
            }
            if all <= most {
                break;
            }
            of(&mut stores[largest.1].1.store).evict();
        }
    }
}

/// Makes a store for a site that is new here, and drops those of sites that are gone.
#[cold]
fn begin(site: &Site, stores: &mut Vec<(u64, Box<SiteStore>)>) -> usize {
    stores.retain(|(_, each)| each.alive.strong_count() > 0);
    let (alive, store) = (Arc::downgrade(&site.alive), ResponseStore::new(&site.settings));
    stores.push((site.id, Box::new(SiteStore { alive, store })));
    stores.len() - 1
}

impl ResponseStore {
    fn new(settings: &Settings) -> ResponseStore {
        ResponseStore {
            memory: ClockCache::new(settings.cache_entries, settings.cache_bytes),
            // Each may hold one for every sibling.
            files: ClockCache::new(
                settings.open_files / (1 + settings.codings.siblings.len()),
                settings.cache_bytes,
            ),
            absent: ClockCache::new(settings.cache_entries, settings.cache_bytes / ABSENT_SHARE),
            pages: OpenErrorPages::default(),
            listener: ChangeListener::default(),
        }
    }

    /// Doubts the entries of changed files. A changed file may also be the index of a folder, or the sibling of
    /// another file; a file that was found by a rule of the configuration or through a link has another name,
    /// and waits for the look after a second.
    #[cold]
    fn hear(&mut self, site: &Site, watch: &FolderWatch) {
        let ResponseStore { memory, files, absent, pages, listener, .. } = self;
        pages.doubt();
        watch.tell(listener, |told| match told {
            ChangeNotice::Everything => {
                memory.doubt_all();
                files.doubt_all();
                absent.clear();
            }
            ChangeNotice::File(relative) => named_by(relative, &site.settings).for_each(|path| {
                let key = path.canonical();
                memory.doubt(key);
                files.doubt(key);
                absent.doubt(key);
            }),
        });
    }

    /// Answers a GET or a HEAD with a file in memory without encodings; none if it takes more.
    #[inline]
    pub(crate) fn respond_from_memory(
        &mut self,
        site: &Site,
        access: &Access,
        request: &Request<'_>,
        response: &mut ResponseWriter<'_>,
    ) -> Option<ResponseSummary> {
        if let Some(watch) = &site.watch
            && watch.has_news(&self.listener)
        {
            self.hear(site, watch);
        }
        // Most clients send the canonical path: an entry under these bytes makes parsing them unnecessary.
        let resource = self.memory.fresh(request.target.path, clock::now())?;
        if resource.plain.is_guarded(access) || resource.encodings.is_some() {
            return None;
        }
        Some(resource.plain.respond(request, &site.settings, response))
    }

    /// Changes a file in the cache, if it is there.
    pub(crate) fn update(&mut self, canonical: &str, change: impl FnOnce(&mut Resource)) {
        let mut change = Some(change);
        for cache in [&mut self.memory, &mut self.files] {
            cache.update(canonical, |resource| {
                if let Some(change) = change.take() {
                    change(resource);
                }
                resource.weight()
            });
        }
    }

    /// Looks again at a file that was checked more than a second ago, and forgets it if it has changed.
    pub(crate) fn check(&mut self, canonical: &str, paths: &TryPaths, site: &Site, now: Instant) {
        for cache in [&mut self.memory, &mut self.files] {
            cache.check(canonical, now, |resource| resource.is_still_first(paths, site));
        }
    }

    /// Loads a file; if descriptors run out, closes the files and pages that are only cached, and tries again.
    pub(crate) fn load(
        &mut self,
        paths: &TryPaths,
        here: &Effective,
        site: &Site,
    ) -> Result<Loaded, Absence> {
        match Loaded::first(paths, site, here) {
            Err(Absence::Exhausted(_)) if self.files.clear() | self.pages.clear() => {
                Loaded::first(paths, site, here)
            }
            result => result,
        }
    }

    /// Caches a file.
    pub(crate) fn keep(&mut self, canonical: &str, loaded: Loaded, now: Instant) {
        let Loaded { resource, keep: true } = loaded else { return };
        let cache = if resource.holds_file() { &mut self.files } else { &mut self.memory };
        let weight = resource.weight();
        cache.insert(canonical, resource, weight, now);
    }

    /// Answers a malformed request with the site's own page for it, if it has one; if not `whole`, with its head alone. The
    /// connection ends after it. Returns the number of bytes of the body.
    pub(crate) fn refuse_with_page(
        &mut self,
        site: &Site,
        status: u16,
        whole: bool,
        response: &mut ResponseWriter<'_>,
    ) -> Option<u64> {
        let page = self.pages.of(status, site, clock::now()).filter(|page| page.guard().is_open());
        page.map(|page| page.last(whole, response))
    }
}

/// The paths that mean the file called `relative`.
fn named_by<'a>(relative: &'a str, settings: &'a Settings) -> impl Iterator<Item = SitePath> + 'a {
    let plain = settings.codings.siblings.iter().filter_map(|&coding| relative.strip_suffix(suffix(coding)));
    std::iter::once(relative).chain(plain).flat_map(|name| {
        let folders = settings.index.iter().filter_map(|index| name.strip_suffix(index.as_str()));
        let folders = folders.filter(|rest| rest.is_empty() || rest.ends_with('/'));
        let folder = folders.flat_map(|folder| [folder, folder.trim_end_matches('/')]);
        std::iter::once(name).chain(folder).map(|name| SitePath::of_decoded(&format!("/{name}")))
    })
}

/// The pages that were looked for: of the statuses that were sent so far, no more than there are errors.
#[derive(Default)]
pub(crate) struct OpenErrorPages {
    looked_for: Vec<ErrorPage>,
}

/// The page for an error, and the time of the last look for it.
struct ErrorPage {
    status: u16,
    body: Option<Variant>,
    checked: Option<Instant>,
}

impl OpenErrorPages {
    /// The page for an error, looked for once a second.
    pub(crate) fn of(&mut self, status: u16, site: &Site, now: Instant) -> Option<&mut Variant> {
        let name = site.settings.routes.error_pages.of(status)?;
        let pages = &mut self.looked_for;
        let place = pages.iter().position(|page| page.status == status).unwrap_or_else(|| {
            pages.push(ErrorPage { status, body: None, checked: None });
            pages.len() - 1
        });
        let page = &mut pages[place];
        if page.checked.is_none_or(|checked| !is_fresh(checked, now)) {
            let wanted = LookupName::file(name);
            let look = || wanted.look(&site.files.roots).map(|facts| (&wanted, facts));
            let still = |body: &Variant| is_still(&site.files, body, look(), |_, _| true);
            page.body = page.body.take().filter(still).or_else(|| load(&wanted, status, site));
            page.checked = Some(now);
        }
        page.body.as_mut()
    }

    /// Closes all of them. Returns whether there were any.
    fn clear(&mut self) -> bool {
        !std::mem::take(&mut self.looked_for).is_empty()
    }

    /// Looks for all of them again when they are next needed.
    pub(crate) fn doubt(&mut self) {
        self.looked_for.iter_mut().for_each(|page| page.checked = None);
    }
}

fn load(wanted: &LookupName, status: u16, site: &Site) -> Option<Variant> {
    let Found { facts, opened, guard, .. } = site.files.open(wanted).ok()?;
    let form = RepresentationForm::plain(&facts, site.settings.policies.everywhere(), &guard);
    Some(Variant::new(status, wanted.name(), facts, opened, form))
}
