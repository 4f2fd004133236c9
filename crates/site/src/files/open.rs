//! What the file system has for a path.

use std::fs::File;
use std::io;

use tenfold_http::OpenFile;
use tenfold_http::negotiate::Coding;
use tenfold_sys::errno;
use tenfold_sys::file::{self, Facts, FileError, Kind, Root};

use crate::files::protection::Guard;
use crate::representation::encodings::Alternatives;
use crate::representation::variant::{Form, Opened, Resource};
use crate::respond::listing::Listing;
use crate::rules::policy::Effective;
use crate::rules::precheck::Way;
use crate::{Settings, Site};

/// Why a path is answered with something else than a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// 404.
    NotFound,
    /// 403: it may not be read, or it is a device, a FIFO or a socket.
    Forbidden,
    /// 301: it is a directory that was asked for as a file.
    Directory,
    /// It is a directory without an index, and this is shown of it.
    Listed(Listing),
    /// 503, for this reason of the system.
    Exhausted(i32),
    /// 500, for this reason of the system.
    Failed(i32),
}

/// A name beneath the root.
#[derive(Debug)]
pub(crate) struct Wanted {
    name: String,
    /// What it means when a directory has this name.
    directory: Absence,
}

impl Wanted {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// A file and nothing else.
    pub(crate) fn file(name: &str) -> Wanted {
        Wanted::file_or(name, Absence::NotFound)
    }

    /// A file, and what it means when a directory has its name.
    pub(crate) fn file_or(name: &str, directory: Absence) -> Wanted {
        Wanted { name: name.to_owned(), directory }
    }

    /// What has the name now. Nothing is opened: opening a device or a FIFO does something to it.
    pub(crate) fn look(&self, root: &Root) -> Result<Facts, Absence> {
        count_visit();
        self.servable(root.look(&self.name)?)
    }

    fn open(&self, root: &Root) -> Result<(File, Facts), Absence> {
        count_visit();
        let (file, facts) = root.open_file(&self.name)?;
        Ok((file, self.servable(facts)?))
    }

    fn servable(&self, facts: Facts) -> Result<Facts, Absence> {
        match facts.kind {
            Kind::File => Ok(facts),
            Kind::Directory => Err(self.directory),
            Kind::Special => Err(Absence::Forbidden),
        }
    }
}

/// A file that was found.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) resource: Resource,
    /// False where it changed while it was read: then it is sent through its handle this once, so that one
    /// version goes out or the connection ends.
    pub(crate) keep: bool,
}

/// What it means that nothing was found on this way: nothing, or that a directory is listed, where it is
/// there without an index and `here` says so.
pub(crate) fn without_index(way: &Way, here: &Effective, site: &Site) -> Absence {
    let listing = here.policy.listing.unwrap_or(site.settings.listing);
    if listing == Listing::Off || way.rewritten.is_some() || !way.path.asks_for_directory() {
        return Absence::NotFound;
    }
    count_visit();
    match site.root.look(way.path.relative()) {
        Ok(Facts { kind: Kind::Directory, .. }) => Absence::Listed(listing),
        Ok(_) => Absence::NotFound,
        Err(error) => error.into(),
    }
}

/// A file that was opened, and read where it is small.
pub(crate) struct Found {
    pub(crate) facts: Facts,
    pub(crate) opened: Opened,
    /// Who may have it.
    pub(crate) guard: Guard,
    /// As that of [`Loaded`].
    pub(crate) keep: bool,
}

/// Opens what is wanted and finds out who may have it, and reads it where it is small.
pub(crate) fn open(site: &Site, wanted: &Wanted) -> Result<Found, Absence> {
    // Between both, another file may be given the name.
    const TRIES: usize = 8;
    for _ in 0..TRIES {
        wanted.look(&site.root)?;
        let (file, facts) = wanted.open(&site.root)?;
        if let Some(guard) = site.protection.guard(&wanted.name, &facts)? {
            return take_in(file, facts, guard, &site.settings);
        }
    }
    Err(Absence::Exhausted(errno::EAGAIN))
}

fn take_in(file: File, facts: Facts, guard: Guard, settings: &Settings) -> Result<Found, Absence> {
    let size = usize::try_from(facts.size).unwrap_or(usize::MAX);
    let small = facts.size <= settings.memory_up_to && size <= settings.cache_bytes;
    let bytes = if small { read(&file, size, &facts)? } else { None };
    let keep = !small || bytes.is_some();
    let opened = match bytes {
        Some(bytes) => Opened::Read(bytes),
        None => Opened::File(OpenFile { file, size: facts.size }),
    };
    Ok(Found { facts, opened, guard, keep })
}

/// Loads what is wanted, and what is offered beside it, as the body of responses with this status, of which
/// holds what `here` says.
pub(crate) fn load(site: &Site, wanted: &Wanted, status: u16, here: &Effective) -> Result<Loaded, Absence> {
    let Found { facts, opened, guard, keep } = open(site, wanted)?;
    let (coding, modified) = (Coding::Identity, facts.modified);
    let form = Form { coding, negotiated: false, modified, here, guard: &guard };
    let others = match status {
        200 => Alternatives::find(site, &wanted.name, &facts, form),
        _ => None,
    };
    let form = Form { negotiated: others.is_some(), ..form };
    let resource = Resource::new(status, &wanted.name, facts, opened, form).beside(others);
    Ok(Loaded { resource, keep })
}

/// Whether the name still has this version of a file, and what is offered beside it. Where that can not be
/// seen for want of descriptors, it is believed: an old answer is better than none.
pub(crate) fn is_still(site: &Site, wanted: &Wanted, resource: &Resource) -> bool {
    is_still_as(wanted.look(&site.root), site, wanted, resource)
}

/// The same of a name that was looked at.
pub(crate) fn is_still_as(
    looked: Result<Facts, Absence>,
    site: &Site,
    wanted: &Wanted,
    resource: &Resource,
) -> bool {
    match looked {
        Ok(facts) => {
            resource.is_still(&facts)
                && is_guarded_by(site, &wanted.name, &facts, resource.guard())
                && resource.stands_beside(site, &wanted.name, &facts)
        }
        Err(absence) => matches!(absence, Absence::Exhausted(_)),
    }
}

/// Whether the file with these facts, found as `name`, has this guard. As above, want of descriptors is no reason to
/// doubt it.
pub(crate) fn is_guarded_by(site: &Site, name: &str, facts: &Facts, guard: &Guard) -> bool {
    match site.protection.guard(name, facts) {
        Ok(found) => found.as_ref() == Some(guard),
        Err(absence) => matches!(absence, Absence::Exhausted(_)),
    }
}

/// All of a file, where it was the same before and after.
fn read(file: &File, size: usize, before: &Facts) -> Result<Option<Vec<u8>>, Absence> {
    let bytes = file::read_whole(file, size)?;
    let after = file::facts(file)?;
    Ok(bytes.filter(|_| after == *before))
}

impl From<FileError> for Absence {
    fn from(error: FileError) -> Absence {
        match error {
            FileError::Absent => Absence::NotFound,
            FileError::Forbidden => Absence::Forbidden,
            FileError::Exhausted(errno) => Absence::Exhausted(errno),
            FileError::System(errno) => Absence::Failed(errno),
        }
    }
}

impl From<io::Error> for Absence {
    fn from(error: io::Error) -> Absence {
        Absence::Failed(error.raw_os_error().unwrap_or_default())
    }
}

/// Counts the visits to the file system, for the tests that say there is none.
fn count_visit() {
    #[cfg(test)]
    VISITS.set(VISITS.get() + 1);
}

#[cfg(test)]
thread_local! {
    /// Visits of this thread to the file system.
    pub(crate) static VISITS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::SystemTime;

    #[test]
    fn h51_a_file_that_changes_while_it_is_read_is_not_taken_for_one_version() {
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
