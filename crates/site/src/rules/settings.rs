//! The settings of a site.

use crate::rules::codings::Codings;
use crate::rules::policy::{Listing, Policies};
use crate::rules::routes::Routes;

/// Bytes up to which a copy out of memory costs no more than `sendfile(2)`: it saves a call, and each byte costs
/// it more. `bench/compare.py --engines epoll,epoll:sendfile,uring,uring:sendfile 16k 24k 32k 48k` shows where
/// they meet; docs/explanation/senders/auto.md has measurements.
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

/// Settings of a site. The bounds hold per worker: per thread of a process, and per process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The files that stand for their directory, beneath it, in the order in which they are tried. Default
    /// `index.html`.
    pub index: Vec<String>,
    /// The policies of paths. Default: none.
    pub policies: Policies,
    /// The routing of paths. Default: each path to the file of its name.
    pub routes: Routes,
    /// Bytes up to which a file is read once and answered from memory. 0 answers every file through its
    /// handle, so that an explicit sender does what it says. Default [`MEMORY_UP_TO`].
    pub memory_up_to: u64,
    /// Bytes of cached responses, with the overhead of the cache. A sixteenth as much is set aside for absent
    /// files. Default 32 MiB.
    pub cache_bytes: usize,
    /// Cached responses, and the same number of absent files. Default 4096.
    pub cache_entries: usize,
    /// Ranges that one request may ask for. Past it the whole file is sent. Default 64.
    pub max_ranges: usize,
    /// Files that are kept open. One more stays open as long as a client receives it. Default 256.
    pub open_files: usize,
    /// The encodings of its files that are offered. Default none.
    pub codings: Codings,
    /// The listing of a folder without an index, unless a rule changes it. Default: none.
    pub listing: Listing,
    /// Whether the 404 of such a folder tells how to list it. Default: no.
    pub explain_listing: bool,
    /// Names that are read of such a folder. Default 10,000.
    pub listing_entries: usize,
    /// The source of entity tags. Default: time and size.
    pub tags: TagFrom,
    /// Bytes up to which a file is read for its tag. Default 64 MiB.
    pub tags_up_to: u64,
    /// Folders that are watched for changes, of each process; 0 watches none (the default).
    pub watched_folders: usize,
}

impl Settings {
    /// The paths of rules about passwords. Rules whose paths have stars are left out: no single folder is theirs.
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
            tags: TagFrom::Time,
            tags_up_to: 64 << 20,
            watched_folders: 0,
        }
    }
}
