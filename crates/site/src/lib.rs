//! What a URL means: files beneath a root, with their types, validators and redirects, and what is said
//! where there is none.
//!
//! A [`Site`] is shared by all workers; each keeps what it has served in a store of its own, so that a hit
//! takes no lock and makes no system call. One request goes through the modules in this order:
//!
//! `path` reads the path · `store` answers from what this worker remembers, or else `resolve` asks the file
//! system beneath the root · `resource` writes a file's 200, 206, 304, 412 or 416, and `coded` chooses
//! where there are several codings of it · `message` writes everything that is no file. `hosts` chooses the
//! site, and `policy` says what holds at a path.

#![forbid(unsafe_code)]

mod cache;
mod files;
mod hosts;
mod representation;
mod respond;
mod rules;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use files::protection::{Area, Protection};
use respond::{message, store};
use rules::access::{Access, MEMBER, STRANGER};
use rules::precheck::Front;
use tenfold_http::{Head, Method, Out};
use tenfold_sys::file::Root;

use cache::encoded::Shelf;
pub use files::protection::MemberFolders;
use files::watch::Watch;
pub use hosts::{HostName, Hosts};
pub use representation::tags::TagFrom;
pub use respond::listing::Listing;
pub use respond::message::too_many_requests;
pub use respond::work::{Answered, Attempts, Finish, Need, Otherwise, User, Work};
pub use rules::cache_control::CacheControl;
pub use rules::codings::Codings;
pub use rules::cors::Cors;
pub use rules::error_pages::{ErrorPages, page_name};
pub use rules::fields::FieldEdit;
pub use rules::password::Hash;
pub use rules::path::{self, PathError, Shown, SitePath};
pub use rules::pattern::Pattern;
pub use rules::policy::{Policies, Policy, Rule};
pub use rules::realm::Realm;
pub use rules::redirect::{Redirect, Rewrite};
pub use rules::routes::{Routes, Slash};
pub use rules::settings::{MEMORY_UP_TO, Settings};
pub use rules::try_files::TryFile;

/// A folder as a site.
///
/// It is used by any number of threads and by processes forked later. Dropping it (a reload puts another
/// one in its place) frees what the workers keep for it, when they next meet a site that is new to them.
#[derive(Debug)]
pub struct Site {
    /// Tells the sites of a process apart, in the stores of its threads.
    id: u64,
    /// Stores hold a weak reference: they see that the site is gone.
    alive: Arc<()>,
    root: Arc<Root>,
    settings: Settings,
    /// What was compressed, for all threads.
    shelf: Arc<Shelf>,
    /// Digests of content, for all threads.
    tags: Arc<Shelf>,
    /// What changes on disk, where it is watched.
    watch: Option<Watch>,
    /// Which files are not for everybody, here and on other hosts.
    protection: Protection,
}

/// Bytes of memory for digests of content, of about 300 each.
const MOST_TAGS: usize = 4 << 20;

/// What was answered: two words, so that it is handed through the layers in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes of body that follow the head: what was promised, 0 for a HEAD.
    pub body: u64,
    /// The status code, and above it the error number.
    said: NonZeroU32,
}

impl Outcome {
    /// An answer with this status code, which is not 0, and so many bytes of body.
    #[inline]
    pub fn of(status: u16, body: u64) -> Outcome {
        let said = NonZeroU32::new(u32::from(status)).expect("a status code has three digits");
        Outcome { body, said }
    }

    /// The same because of what the system said (`man 3 errno`): for the log.
    fn because(self, errno: i32) -> Outcome {
        Outcome {
            said: self.said | (u32::from(u16::try_from(errno).unwrap_or_default()) << u16::BITS),
            ..self
        }
    }

    /// The status code.
    #[inline]
    pub fn status(&self) -> u16 {
        (self.said.get() & u32::from(u16::MAX)) as u16
    }

    /// The error number behind a 500 or a 503, where there is one.
    #[inline]
    pub fn failure(&self) -> Option<i32> {
        let errno = self.said.get() >> u16::BITS;
        (errno != 0).then_some(errno as i32)
    }
}

impl Site {
    /// The site in `root`. Nothing is read before it is asked for.
    pub fn new(mut root: Root, settings: Settings) -> Site {
        root.follow(settings.routes.links);
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let shelf = Arc::new(Shelf::new(settings.codings.kept));
        let tags = Arc::new(Shelf::new(MOST_TAGS));
        let watch = (settings.watched_folders > 0).then(|| Watch::new(settings.watched_folders));
        let root = Arc::new(root);
        let protection = Protection::new(Area::new(&root, &settings.index, &settings.policies));
        Site { id, alive: Arc::new(()), root, settings, shelf, tags, watch, protection }
    }

    /// Puts the whole response to `head` behind what is in `out`, or says what has to be done first. What is
    /// not in this worker's store is opened, and read where it is small, here and now.
    ///
    /// What is remembered is looked at again after a second: a file that was changed, replaced or removed
    /// is served as it is then.
    #[inline]
    pub fn respond(&self, head: &Head<'_>, out: &mut Out) -> Answered {
        self.respond_as(&STRANGER, head, out)
    }

    /// As [`Site::respond`], to a client that has logged in as a member.
    pub fn respond_to_member(&self, head: &Head<'_>, out: &mut Out) -> Answered {
        self.respond_as(&MEMBER, head, out)
    }

    fn respond_as(&self, access: &Access, head: &Head<'_>, out: &mut Out) -> Answered {
        match head.method {
            Method::Get | Method::Head => {
                // What comes back is two words; all that an answer can be takes a detour through memory.
                match store::with(self, |store| store.respond_from_memory(self, access, head, out)) {
                    Some(outcome) => outcome.into(),
                    None => store::with(self, |store| store.respond(self, access, head, out)),
                }
            }
            Method::Options => {
                if let Some(fields) = Front::of_options(self, head) {
                    out.add_fields(&fields);
                }
                message::options(head, out).into()
            }
            _ => store::with(self, |store| store.method_not_allowed(self, head, out)).into(),
        }
    }
}

#[cfg(test)]
mod tests;
