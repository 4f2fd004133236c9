//! The cache of one worker: the files that it has served, for each site.
//!
//! A worker is a thread, and each thread has its own stores, without locks or shared writes. Files in memory,
//! open files and absent files have separate bounds, so that requests for a million missing names evict only
//! missing names. Keys are canonical paths, so a file has one entry for all spellings of its path.

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

/// The divisor of the cache's bytes that bounds absent files.
const ABSENT_SHARE: usize = 16;

thread_local! {
    /// The stores of this thread, by the number of their site.
    static STORES: RefCell<Vec<(u64, Box<SiteStore>)>> = const { RefCell::new(Vec::new()) };
}

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
    /// The position in the list of changes on disk.
    pub(crate) listener: ChangeListener,
}

/// Calls `use_it` with this thread's store for `site`.
#[inline]
pub(crate) fn with<T>(site: &Site, use_it: impl FnOnce(&mut ResponseStore) -> T) -> T {
    STORES.with_borrow_mut(|stores| {
        let index = match stores.iter().position(|(number, _)| *number == site.id) {
            Some(index) => index,
            None => begin(site, stores),
        };
        use_it(&mut stores[index].1.store)
    })
}

/// Like [`with`], for calls that may cache something. The bounds apply to all sites together: if one is
/// exceeded, the site with the largest share evicts entries.
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

/// Evicts from the largest of these caches until their sums are within each bound.
fn balance<V>(stores: &mut [(u64, Box<SiteStore>)], of: fn(&mut ResponseStore) -> &mut ClockCache<V>) {
    for bound in 0..ClockCache::<V>::BOUNDS {
        loop {
            let (mut all, mut most, mut largest) = (0, 0, (0, 0));
            for (index, (_, each)) in stores.iter_mut().enumerate() {
                let (used, at_most) = of(&mut each.store).load()[bound];
                (all, most) = (all + used, most.max(at_most));
                largest = largest.max((used, index));
            }
            if all <= most {
                break;
            }
            of(&mut stores[largest.1].1.store).evict();
        }
    }
}

/// Adds a store for a new site, and drops the stores of sites that no longer exist.
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
            // An entry may also hold a file for each sibling.
            files: ClockCache::new(
                settings.open_files / (1 + settings.codings.siblings.len()),
                settings.cache_bytes,
            ),
            absent: ClockCache::new(settings.cache_entries, settings.cache_bytes / ABSENT_SHARE),
            pages: OpenErrorPages::default(),
            listener: ChangeListener::default(),
        }
    }

    /// Expires the entries of changed files. A changed file may also be the index of a folder, or a sibling
    /// of another file. A file found through a rule or a link has another name here; its entry expires after
    /// a second.
    #[cold]
    fn apply_changes(&mut self, site: &Site, watch: &FolderWatch) {
        let ResponseStore { memory, files, absent, pages, listener, .. } = self;
        pages.expire_all();
        watch.report(listener, |change| match change {
            ChangeNotice::Everything => {
                memory.expire_all();
                files.expire_all();
                absent.clear();
            }
            ChangeNotice::File(relative) => named_by(relative, &site.settings).for_each(|path| {
                let key = path.canonical();
                memory.expire(key);
                files.expire(key);
                absent.expire(key);
            }),
        });
    }

    /// Answers a GET or HEAD with a file in memory that has no encodings; None in all other cases.
    #[inline]
    pub(crate) fn respond_from_memory(
        &mut self,
        site: &Site,
        access: &Access,
        request: &Request<'_>,
        response: &mut ResponseWriter<'_>,
    ) -> Option<ResponseSummary> {
        if let Some(watch) = &site.watch
            && watch.has_changes(&self.listener)
        {
            self.apply_changes(site, watch);
        }
        // Most clients send the canonical path, so a hit needs no parsing.
        let resource = self.memory.fresh(request.target.path, clock::now())?;
        if resource.plain.is_guarded(access) || resource.encodings.is_some() {
            return None;
        }
        Some(resource.plain.respond(request, &site.settings, response))
    }

    /// Changes a cached file, if the cache has it.
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

    /// Checks a file again if its last check was more than a second ago, and removes it if it has changed.
    pub(crate) fn check(&mut self, canonical: &str, paths: &TryPaths, site: &Site, now: Instant) {
        for cache in [&mut self.memory, &mut self.files] {
            cache.check(canonical, now, |resource| resource.is_still_first(paths, site));
        }
    }

    /// Loads a file. If descriptors run out, closes all cached files and pages, and tries once more.
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

    pub(crate) fn keep(&mut self, canonical: &str, loaded: Loaded, now: Instant) {
        let Loaded { resource, keep: true } = loaded else { return };
        let cache = if resource.holds_file() { &mut self.files } else { &mut self.memory };
        let weight = resource.weight();
        cache.insert(canonical, resource, weight, now);
    }

    /// Answers a malformed request with the site's error page, if it has one. Without `whole`, only the head
    /// is sent. The connection ends after it. Returns the length of the body.
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

/// Returns all paths that mean the file called `relative`.
fn named_by<'a>(relative: &'a str, settings: &'a Settings) -> impl Iterator<Item = SitePath> + 'a {
    let plain = settings.codings.siblings.iter().filter_map(|&coding| relative.strip_suffix(suffix(coding)));
    std::iter::once(relative).chain(plain).flat_map(|name| {
        let folders = settings.index.iter().filter_map(|index| name.strip_suffix(index.as_str()));
        let folders = folders.filter(|rest| rest.is_empty() || rest.ends_with('/'));
        let folder = folders.flat_map(|folder| [folder, folder.trim_end_matches('/')]);
        std::iter::once(name).chain(folder).map(|name| SitePath::of_decoded(&format!("/{name}")))
    })
}

/// The pages found so far, by status: at most as many as there are errors.
#[derive(Default)]
pub(crate) struct OpenErrorPages {
    looked_for: Vec<ErrorPage>,
}

/// The page for an error, and the time of its last check.
struct ErrorPage {
    status: u16,
    /// The page, and its place among the files for the status.
    body: Option<(usize, Variant)>,
    checked: Option<Instant>,
}

impl OpenErrorPages {
    /// Returns the page for an error, which is checked once a second.
    pub(crate) fn of(&mut self, status: u16, site: &Site, now: Instant) -> Option<&mut Variant> {
        let mut names = site.settings.routes.error_pages.of(status).peekable();
        names.peek()?;
        let pages = &mut self.looked_for;
        let index = pages.iter().position(|page| page.status == status).unwrap_or_else(|| {
            pages.push(ErrorPage { status, body: None, checked: None });
            pages.len() - 1
        });
        let page = &mut pages[index];
        if page.checked.is_none_or(|checked| !is_fresh(checked, now)) {
            let mut old = page.body.take();
            page.body = names.enumerate().find_map(|(place, name)| {
                let wanted = LookupName::file(name);
                let look = || wanted.look(&site.files.roots).map(|facts| (&wanted, facts));
                let still = |body: &Variant| is_still(&site.files, body, look(), |_, _| true);
                let kept = old.take_if(|(known, _)| *known == place).map(|(_, body)| body).filter(still);
                Some((place, kept.or_else(|| load(&wanted, status, site))?))
            });
            page.checked = Some(now);
        }
        page.body.as_mut().map(|(_, body)| body)
    }

    /// Closes all pages. Returns whether there were any.
    fn clear(&mut self) -> bool {
        !std::mem::take(&mut self.looked_for).is_empty()
    }

    /// Expires all pages.
    pub(crate) fn expire_all(&mut self) {
        self.looked_for.iter_mut().for_each(|page| page.checked = None);
    }
}

fn load(wanted: &LookupName, status: u16, site: &Site) -> Option<Variant> {
    let Found { facts, opened, guard, .. } = site.files.open(wanted).ok()?;
    let form = RepresentationForm::plain(&facts, site.settings.policies.unknown(), &guard);
    Some(Variant::new(status, wanted.name(), facts, opened, form))
}
