//! Opening the files beneath a root.

use std::fs::File;
use std::sync::Arc;

use tenfold_http::OpenFile;
use tenfold_sys::errno;
use tenfold_sys::file::{self, FileKind, FileStat};

use crate::files::absence::Absence;
use crate::files::protection::Protection;
use crate::files::roots::Roots;
use crate::reason::Reason;
use crate::rules::access::Guard;
use crate::rules::policy::Listing;
use crate::rules::precheck::Route;
use crate::rules::routes::Slash;
use crate::rules::settings::Settings;

/// The files beneath the roots of a site.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) roots: Arc<Roots>,
    /// Which requests may get each file.
    pub(crate) protection: Protection,
    /// The largest file that is read when it is opened.
    pub(crate) read_up_to: u64,
}

/// A name beneath the root.
#[derive(Debug)]
pub(crate) struct LookupName {
    name: String,
    /// The result if the name is a file; None: the file itself.
    file: Option<Absence>,
    /// The result if the name is a directory.
    directory: Absence,
    /// Whether every path leads to this file.
    pub(crate) fixed: bool,
}

impl LookupName {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A file; a directory of this name counts as absent.
    pub(crate) fn file(name: &str) -> LookupName {
        LookupName::file_or(name, Absence::NotFound(Reason::Unlisted))
    }

    /// A file, or `directory` if the name is a directory.
    pub(crate) fn file_or(name: &str, directory: Absence) -> LookupName {
        LookupName { name: name.to_owned(), file: None, directory, fixed: false }
    }

    /// An index whose existence leads to its folder with a slash at the end.
    pub(crate) fn index_elsewhere(name: &str) -> LookupName {
        LookupName { file: Some(Absence::Directory), ..LookupName::file(name) }
    }

    /// Marks the file as the same for every path.
    pub(crate) fn fixed(self) -> LookupName {
        LookupName { fixed: true, ..self }
    }

    /// Returns the facts of the file that has the name now, without opening it: opening a device or a FIFO
    /// has effects.
    pub(crate) fn look(&self, roots: &Roots) -> Result<FileStat, Absence> {
        count_visit();
        self.servable(roots.of(&self.name).look(&self.name)?)
    }

    fn open(&self, roots: &Roots) -> Result<(File, FileStat), Absence> {
        count_visit();
        let (file, facts) = roots.of(&self.name).open_file(&self.name)?;
        Ok((file, self.servable(facts)?))
    }

    fn servable(&self, facts: FileStat) -> Result<FileStat, Absence> {
        match facts.kind {
            FileKind::File => self.file.map_or(Ok(facts), Err),
            FileKind::Directory => Err(self.directory),
            FileKind::Special => Err(Absence::Forbidden(Reason::Special)),
        }
    }
}

/// The content of a file that was opened.
#[derive(Debug)]
pub(crate) enum Opened {
    /// The whole content, read from the file.
    Read(Vec<u8>),
    /// The content made by the server.
    Made(Arc<[u8]>),
    File(OpenFile),
}

/// A file that was opened; a small file was also read.
pub(crate) struct Found {
    pub(crate) facts: FileStat,
    pub(crate) opened: Opened,
    /// The credentials that the file requires.
    pub(crate) guard: Guard,
    /// Whether to cache the file. False if it changed while it was read: the response then reads from the
    /// open file, so that it has one version or the connection ends.
    pub(crate) keep: bool,
}

impl Files {
    /// Opens a file, determines its guard, and reads it if it is small.
    pub(crate) fn open(&self, wanted: &LookupName) -> Result<Found, Absence> {
        // The name may pass to another file between the two calls.
        const TRIES: usize = 8;
        for _ in 0..TRIES {
            wanted.look(&self.roots)?;
            let (file, facts) = wanted.open(&self.roots)?;
            if let Some(guard) = self.protection.guard(&wanted.name, &facts)? {
                return self.take_in(file, facts, guard);
            }
        }
        Err(Absence::Exhausted(errno::EAGAIN))
    }

    fn take_in(&self, file: File, facts: FileStat, guard: Guard) -> Result<Found, Absence> {
        let size = usize::try_from(facts.size).ok().filter(|_| facts.size <= self.read_up_to);
        let bytes = match size {
            Some(size) => read(&file, size, &facts)?,
            None => None,
        };
        let keep = size.is_none() || bytes.is_some();
        let opened = match bytes {
            Some(bytes) => Opened::Read(bytes),
            None => Opened::File(OpenFile::new(file, facts.size)),
        };
        Ok(Found { facts, opened, guard, keep })
    }

    /// Whether the file with these facts, found as `name`, has this guard. If descriptors are exhausted, the
    /// guard stays valid.
    pub(crate) fn is_guarded_by(&self, name: &str, facts: &FileStat, guard: &Guard) -> bool {
        match self.protection.guard(name, facts) {
            Ok(found) => found.as_ref() == Some(guard),
            Err(absence) => matches!(absence, Absence::Exhausted(_)),
        }
    }

    /// Returns the result for a route without a file, for the reason `why`. A directory without an index is listed in
    /// the format `listing`. If the settings explain listings, an unlisted directory has a result of its own.
    pub(crate) fn without_index(
        &self,
        route: &Route,
        why: Reason,
        listing: Listing,
        settings: &Settings,
    ) -> Absence {
        let looks = listing != Listing::Off || settings.explain_listing;
        let opened = route.rewritten.as_ref().unwrap_or(&route.path);
        let asks = opened.asks_for_directory() || settings.routes.slash != Slash::Add;
        if !looks || !asks {
            let is_either = opened.asks_for_directory() && why == Reason::NoFile;
            return Absence::NotFound(if is_either { Reason::NoIndex } else { why });
        }
        count_visit();
        let name = opened.relative();
        match self.roots.of(name).look(name) {
            Ok(FileStat { kind: FileKind::Directory, .. }) if listing == Listing::Off => Absence::Unlisted,
            Ok(FileStat { kind: FileKind::Directory, .. }) => Absence::Listed(listing),
            Ok(_) => Absence::NotFound(why),
            Err(error) => error.into(),
        }
    }
}

/// Reads a whole file; None if it changed meanwhile.
fn read(file: &File, size: usize, before: &FileStat) -> Result<Option<Vec<u8>>, Absence> {
    let bytes = file::read_whole(file, size)?;
    let after = file::facts(file)?;
    Ok(bytes.filter(|_| after == *before))
}

/// Counts accesses to the file system, for tests that expect none.
fn count_visit() {
    #[cfg(test)]
    VISITS.set(VISITS.get() + 1);
}

#[cfg(test)]
thread_local! {
    /// Accesses of this thread to the file system.
    pub(crate) static VISITS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::SystemTime;

    #[test]
    fn h51_a_file_that_changes_while_it_is_read_is_not_cached() {
        let path = std::env::temp_dir().join(format!("tenfold-resolve-{}", std::process::id()));
        let write = |bytes: &[u8]| fs::write(&path, bytes).expect("the temporary directory can be written");
        write(b"first");
        let file = File::open(&path).expect("it was just written");
        let before = file::facts(&file).expect("it is open");
        assert_eq!(read(&file, 5, &before), Ok(Some(b"first".to_vec())));
        write(b"other");
        let other_time = fs::File::options().write(true).open(&path);
        other_time.and_then(|file| file.set_modified(SystemTime::UNIX_EPOCH)).expect("the file is ours");
        assert_eq!(read(&file, 5, &before), Ok(None));
        write(b"longer than it was");
        assert_eq!(read(&file, 5, &before), Ok(None));
        write(b"less");
        assert_eq!(read(&file, 5, &before), Ok(None));
        fs::remove_file(&path).expect("the file is ours");
    }
}
