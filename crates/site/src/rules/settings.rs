//! The settings of a site.

use crate::rules::codings::Codings;
use crate::rules::policy::{Listing, Policies};
use crate::rules::routes::Routes;

/// The size up to which copying from memory is no slower than `sendfile(2)`, which costs another call but
/// less per byte. `bench/compare.py --engines epoll,epoll:sendfile,uring,uring:sendfile 16k 24k 32k 48k`
/// shows the crossover; docs/explanation/senders/auto.md has measurements.
pub const MEMORY_UP_TO: u64 = 32 * 1024;

/// The source of entity tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TagFrom {
    /// Modification time, to the nanosecond, and size.
    #[default]
    Time,
    /// The content of the file.
    Content,
}

/// The settings of a site. Bounds apply to each worker, whether it is a thread or a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The index files of a directory, in the order in which they are tried. Default: `index.html`.
    pub index: Vec<String>,
    /// The policies of paths. Default: none.
    pub policies: Policies,
    /// The routing of paths. Default: each path leads to the file of its name.
    pub routes: Routes,
    /// The largest file that is cached in memory, in bytes. With 0, every response reads the open file by the
    /// configured sender. Default: [`MEMORY_UP_TO`].
    pub memory_up_to: u64,
    /// Bytes of cached responses, including the overhead of the cache. A further sixteenth is for absent
    /// files. Default: 32 MiB.
    pub cache_bytes: usize,
    /// The most cached responses, and the most cached absences. Default: 4096.
    pub cache_entries: usize,
    /// The most ranges in a request. Beyond it, the whole file is sent. Default: 64.
    pub max_ranges: usize,
    /// The most cached open files. Files in responses are open in addition. Default: 256.
    pub open_files: usize,
    /// The encodings that are offered. Default: none.
    pub codings: Codings,
    /// The listing of a folder without an index, unless a rule changes it. Default: none.
    pub listing: Listing,
    /// Whether the 404 of such a folder explains how to enable listings. Default: no.
    pub explain_listing: bool,
    /// The most names in a listing. Default: 10,000.
    pub listing_entries: usize,
    /// Whether listed folders are also archives. Default: no.
    pub archives: bool,
    /// The name of the root in listings and archives. Default: `Files`.
    pub root_name: String,
    /// The source of entity tags. Default: time and size.
    pub tags: TagFrom,
    /// The largest file that is read for its tag, in bytes. Default: 64 MiB.
    pub tags_up_to: u64,
    /// The most folders that each process watches for changes. Default: 0, which watches none.
    pub watched_folders: usize,
}

impl Settings {
    /// Returns the paths of rules about passwords. Rules with stars are omitted, because they do not name a
    /// single folder.
    pub fn paths_of_auth(&self) -> Vec<String> {
        let paths =
            self.policies.of_auth().filter_map(|(paths, _)| Some(paths.without_stars()?.0.to_owned()));
        paths.collect()
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            index: vec!["index.html".to_owned()],
            policies: Policies::default(),
            routes: Routes::default(),
            memory_up_to: MEMORY_UP_TO,
            cache_bytes: 32 * 1024 * 1024,
            cache_entries: 4096,
            max_ranges: 64,
            open_files: 256,
            codings: Codings::default(),
            listing: Listing::Off,
            explain_listing: false,
            listing_entries: 10_000,
            archives: false,
            root_name: "Files".to_owned(),
            tags: TagFrom::Time,
            tags_up_to: 64 << 20,
            watched_folders: 0,
        }
    }
}
