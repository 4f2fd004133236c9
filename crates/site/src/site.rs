//! A folder as a site: its files, its settings, and the caches that all threads share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenfold_sys::file::Root;

use crate::cache::encoded::EncodedCache;
use crate::files::open::Files;
use crate::files::protection::{Area, Protection};
use crate::files::roots::Roots;
use crate::files::siblings::Remarks;
use crate::files::watch::FolderWatch;
use crate::rules::settings::Settings;

/// A folder as a site.
///
/// Threads and processes that fork later share it. After a reload drops a site, each worker frees its store
/// for that site when it first serves a new site.
#[derive(Debug)]
pub struct Site {
    /// Identifies the site in the stores of each thread.
    pub(crate) id: u64,
    /// Stores hold a weak reference, which shows that the site was dropped.
    pub(crate) alive: Arc<()>,
    pub(crate) settings: Settings,
    /// The files, and the protection of each file, including protection by other hosts.
    pub(crate) files: Files,
    /// Remarks about files, for the server's log.
    pub(crate) remarks: Option<Remarks>,
    /// Changes on disk, if they are watched.
    pub(crate) watch: Option<FolderWatch>,
    /// Compressed content, shared by all threads.
    pub(crate) encoded: Arc<EncodedCache>,
    /// Digests of content, shared by all threads.
    pub(crate) digests: Arc<EncodedCache>,
}

/// Bytes of memory for digests of content; a digest takes about 300.
const MOST_DIGESTS: usize = 4 << 20;

impl Site {
    /// Returns the site of a folder. Files are read only when they are requested.
    pub fn new(root: Root, settings: Settings) -> Site {
        Site::with_second_root(root, None, settings)
    }

    /// Returns the site of a folder whose entry of a name, and everything beneath it, come from a second root.
    pub fn with_second_root(mut root: Root, mut second: Option<(&str, Root)>, settings: Settings) -> Site {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        root.follow(settings.routes.links);
        second.iter_mut().for_each(|(_, root)| root.follow(settings.routes.links));
        let roots = Arc::new(Roots::new(root, second));
        let protection = Protection::new(Area::new(&roots, &settings.index, &settings.policies));
        let cache_bytes = u64::try_from(settings.cache_bytes).unwrap_or(u64::MAX);
        let files = Files { roots, protection, read_up_to: settings.memory_up_to.min(cache_bytes) };
        let watch = (settings.watched_folders > 0).then(|| FolderWatch::new(settings.watched_folders));
        let encoded = Arc::new(EncodedCache::new(settings.codings.cache_bytes));
        let digests = Arc::new(EncodedCache::new(MOST_DIGESTS));
        Site { id, alive: Arc::default(), settings, files, remarks: None, watch, encoded, digests }
    }
}
