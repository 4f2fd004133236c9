//! The manual. The build script packs it into the binary; the server unpacks it into a private folder for the workers.

mod archive;

use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flate2::read::DeflateDecoder;
use tenfold_sys::user;

use crate::config::values::Settings;
use crate::diagnostics::warning;
use crate::status::place::RuntimeFolder;

/// The name of the manual beneath the root: `/book/`.
pub(crate) const NAME: &str = "book";

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/book.deflate"));

/// The start of a page's line with a link to another page of the demonstration.
const ASIDE: &str = "<a class=\"aside\"";

/// The start of the names of private folders.
const PREFIX: &str = "tenfold-book-";

/// The time in which a new folder must be locked.
const YOUNG: Duration = Duration::from_secs(60);

/// The most folders of one process: a reload may create another while the former is in use.
const MOST_FOLDERS: u32 = 64;

/// The unpacked manual. The folder is removed when the last generation that serves it ends.
#[derive(Debug)]
pub(crate) struct Book {
    /// Only the user who started the server can enter it. Workers reach the folder inside by an open descriptor.
    private: PathBuf,
    /// Whether pages link to other pages of the demonstration.
    demonstration: bool,
    /// The process that removes the folder: a forked worker must not.
    owner: u32,
    /// The folder, locked while a process uses it. An unlocked folder is left over from a killed server.
    _lock: File,
}

impl Book {
    /// The manual, if `settings` request it. `former` is that of the previous configuration.
    pub(crate) fn of(settings: &Settings, former: Option<&Arc<Book>>) -> Result<Option<Arc<Book>>, String> {
        if !settings.serves_book() {
            return Ok(None);
        }
        if settings.root.join(NAME).exists() {
            warning!(
                "book on hides {}: the manual is at /{NAME}/; rename that folder, or set book off",
                settings.root.join(NAME).display()
            );
        }
        let demonstration = settings.is_demonstration();
        match former.filter(|former| former.demonstration == demonstration) {
            Some(former) => Ok(Some(Arc::clone(former))),
            None => Book::unpack(demonstration)
                .map(|book| Some(Arc::new(book)))
                .map_err(|why| format!("{why}, or set book off")),
        }
    }

    /// Unpacks the manual, with or without links to the demonstration.
    pub(crate) fn unpack(demonstration: bool) -> Result<Book, String> {
        let places = RuntimeFolder::find();
        let failed = |path: &Path, error: io::Error| {
            format!("cannot unpack the manual into {}: {error}; make room there", path.display())
        };
        // If another user took that name, a folder of another name is as private.
        let temporary = std::env::temp_dir();
        let place = places.open().unwrap_or_else(|error| {
            warning!("the manual is unpacked in {}, not in its usual folder: {error}", temporary.display());
            &temporary
        });
        remove_abandoned(place);
        let private = make_private(place).map_err(|error| failed(place, error))?;
        let lock = lock(&private).map_err(|error| failed(&private, error))?;
        // From here on, a failure removes the folder.
        let book = Book { private, demonstration, owner: std::process::id(), _lock: lock };
        book.fill().map_err(|error| failed(&book.private, error))?;
        Ok(book)
    }

    /// The folder with an entry called [`NAME`], to serve as a second root.
    pub(crate) fn root(&self) -> PathBuf {
        self.private.join("root")
    }

    fn fill(&self) -> io::Result<()> {
        let mut archive = String::new();
        DeflateDecoder::new(PACKED).read_to_string(&mut archive)?;
        folder_for_reading(&self.root())?;
        folder_for_reading(&self.root().join(NAME))?;
        for file in archive::unpack(&archive) {
            let (path, text) = file.ok_or(ErrorKind::InvalidData)?;
            let path = self.root().join(NAME).join(path);
            let folder = path.parent().ok_or(ErrorKind::InvalidData)?;
            folder_for_reading(folder)?;
            let kept = |line: &&str| self.demonstration || !line.starts_with(ASIDE);
            let text: String = text.split_inclusive('\n').filter(kept).collect();
            let mut file = File::create_new(&path)?;
            file.write_all(text.as_bytes())?;
            file.set_permissions(Permissions::from_mode(0o644))?;
        }
        Ok(())
    }
}

impl Drop for Book {
    fn drop(&mut self) {
        if self.owner == std::process::id()
            && let Err(error) = fs::remove_dir_all(&self.private)
        {
            warning!("cannot remove the folder of the manual, {}: {error}", self.private.display());
        }
    }
}

/// Makes a private folder. Fails if the name exists, also as a link.
fn make_private(place: &Path) -> io::Result<PathBuf> {
    let names = (0..MOST_FOLDERS).map(|number| format!("{PREFIX}{}-{number}", std::process::id()));
    for name in names {
        let path = place.join(name);
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Locks a folder for this process and those that it forks (`man 2 flock`).
fn lock(folder: &Path) -> io::Result<File> {
    let file = File::open(folder)?;
    file.try_lock()?;
    Ok(file)
}

/// Removes the folders that killed servers of this user have left in `place`. Ignores errors.
fn remove_abandoned(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        // A new folder may not be locked yet.
        let is_old =
            |facts: &Metadata| facts.modified().is_ok_and(|made| made.elapsed().is_ok_and(|age| age > YOUNG));
        let is_own = |facts: &Metadata| facts.is_dir() && facts.uid() == user::own();
        if is_named
            && entry.metadata().is_ok_and(|facts| is_own(&facts) && is_old(&facts))
            && lock(&entry.path()).is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Makes a folder that workers can read, and missing folders above it, whatever the umask is.
fn folder_for_reading(path: &Path) -> io::Result<()> {
    let missing: Vec<_> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    missing.into_iter().rev().try_for_each(|folder| {
        DirBuilder::new().create(folder)?;
        fs::set_permissions(folder, Permissions::from_mode(0o755))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn an_archive_gives_back_its_files_and_a_malformed_one_is_noticed() {
        let files = [("a b.html", "x 1\ny"), ("c", ""), ("d/e.css", "\u{e9}")];
        let files: BTreeMap<_, _> = files.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
        let archive = archive::pack(&files);
        let back = archive::unpack(&archive).map(|file| file.expect("it is whole"));
        assert!(back.eq(files.iter().map(|(path, text)| (path.as_str(), text.as_str()))));
        for wrong in ["a", "a 5\nxy", "a x\n", "a 1\n\u{e9}"] {
            assert_eq!(archive::unpack(wrong).collect::<Vec<_>>(), [None], "{wrong:?}");
        }
    }

    #[test]
    fn folders_of_killed_servers_are_removed_and_folders_in_use_stay() {
        let place = std::env::temp_dir().join(format!("tenfold-manuals-{}", std::process::id()));
        let folders = ["left", "used", "young"].map(|name| place.join(format!("{PREFIX}{name}")));
        folders
            .iter()
            .for_each(|folder| fs::create_dir_all(folder.join("root")).expect("a temporary folder"));
        fs::create_dir(place.join("another")).expect("our own folder");
        let age = |folder: &Path| {
            let old = std::time::SystemTime::now() - 2 * YOUNG;
            File::open(folder).and_then(|folder| folder.set_modified(old)).expect("our own folder");
        };
        [&folders[0], &folders[1], &place.join("another")].into_iter().for_each(|folder| age(folder));
        let used = lock(&folders[1]).expect("nobody has it");
        remove_abandoned(&place);
        let there = folders.each_ref().map(|folder| folder.exists());
        assert_eq!((there, place.join("another").exists()), ([false, true, true], true));
        drop(used);
        fs::remove_dir_all(place).expect("our own folder");
    }

    #[test]
    fn the_folder_is_private_whole_and_removed_at_the_end() {
        for demonstration in [false, true] {
            let book = Book::unpack(demonstration).expect("a folder can be made");
            let (private, pages) = (book.private.clone(), book.root().join(NAME));
            assert_eq!(fs::metadata(&private).expect("it was made").permissions().mode() & 0o777, 0o700);
            let page =
                fs::read_to_string(pages.join("explanation/models/epoll.html")).expect("the page is there");
            assert!(page.ends_with("</html>\n") && pages.join("site.css").is_file());
            assert_eq!(page.contains("media.html"), demonstration);
            drop(book);
            assert!(!private.exists());
        }
    }
}
