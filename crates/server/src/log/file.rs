//! The file of an access log: opened without waiting for the reader of a pipe, and never through a planted link.
//!
//! Opening a pipe for writing waits for a reader (`man 7 fifo`). Neither the supervisor, which handles signals and
//! replaces workers, nor a worker may wait for that: with O_NONBLOCK, a missing reader is an error. The flag stays set,
//! because a worker cannot clear it in its sandbox. [`super::sink`] waits for room in a full pipe.
//!
//! A folder that another user may write to can hold a link to any file, and the supervisor is root. So no file is
//! created through a link, and a link is followed only to a pipe or a character device, such as `/dev/stdout`.
//! [`Location`] decides about links on the way to the folder.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, fchown};
use std::path::Path;

use tenfold_sys::errno;
use tenfold_sys::folder::OpenFolder;
use tenfold_sys::location::Location;
use tenfold_sys::user::SystemUser;

/// The mode of a new file. Its lines contain addresses of visitors, so other users cannot read it.
const MODE: u32 = 0o640;

/// Opens the file or creates it, and makes `owner` its owner, who must reopen it.
pub(super) fn make(path: &Path, owner: Option<&SystemUser>) -> Result<File, String> {
    made(path, owner).map_err(|error| why(path, &error))
}

/// Opens the file that the supervisor created for the user of workers.
pub(super) fn open(path: &Path) -> Result<File, String> {
    opened(path, None).map(|(file, _)| file).map_err(|error| why(path, &error))
}

/// Checks that [`make`] would succeed. Creates nothing.
pub(super) fn check(path: &Path, owner: Option<&SystemUser>) -> Result<(), String> {
    if fs::symlink_metadata(path).is_ok() {
        let allowed = opened(path, None).and_then(|(file, location)| expect_given(&file, &location, owner));
        return allowed.map_err(|error| why(path, &error));
    }
    let allowed = OpenFolder::around(path).and_then(|(folder, _)| folder.allows_new_files());
    allowed.map_err(|error| why(path, &error))
}

fn made(path: &Path, owner: Option<&SystemUser>) -> io::Result<File> {
    let (file, location) = opened(path, Some(MODE))?;
    expect_given(&file, &location, owner)?;
    if let Some(owner) = owner
        && file.metadata()?.is_file()
    {
        fchown(&file, Some(owner.id), Some(owner.group))?;
    }
    Ok(file)
}

/// Checks that `owner` may get the file: no other user linked or moved it to this name.
fn expect_given(file: &File, location: &Location, owner: Option<&SystemUser>) -> io::Result<()> {
    let Some(owner) = owner else { return Ok(()) };
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    location.expect_only_name_of(file)?;
    location.expect_not_moved(file, owner.id)
}

/// Returns the file, and the location of its name.
fn opened(path: &Path, create: Option<u32>) -> io::Result<(File, Location)> {
    let location = Location::find(path)?;
    let (file, location) = match location.append(create) {
        Err(error) if is(&error, errno::ELOOP) => {
            let location = location.follow()?;
            let file = location.append(None)?;
            if !is_stream(&file.metadata()?) {
                return Err(refused(
                    "it is a link to a file; name the file itself, or - for standard output",
                ));
            }
            (file, location)
        }
        file => (file?, location),
    };
    let facts = file.metadata()?;
    if !facts.is_file() && !is_stream(&facts) {
        return Err(refused("it is neither a file nor a pipe nor a character device; name one"));
    }
    Ok((file, location))
}

/// Whether the file is a stream: a pipe, a terminal, `/dev/null`.
fn is_stream(facts: &Metadata) -> bool {
    facts.file_type().is_fifo() || facts.file_type().is_char_device()
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

fn why(path: &Path, error: &io::Error) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() && error.kind() == io::ErrorKind::NotFound {
        return format!("there is no folder {}; create it, or name another file", folder.display());
    }
    if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_some() {
        let folder = folder.display();
        return format!(
            "{error}; give the user that starts the server write access to {folder}, or name another file"
        );
    }
    let pipe = || fs::metadata(path).is_ok_and(|facts| facts.file_type().is_fifo());
    match is(error, errno::ENXIO) && pipe() {
        true => format!("no process reads this pipe: {error}; start its reader, then try again"),
        false => error.to_string(),
    }
}

fn is(error: &io::Error, number: i32) -> bool {
    error.raw_os_error() == Some(number)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{lchown, symlink};
    use std::path::PathBuf;

    use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_getfl, mknodat};

    use super::*;

    /// A temporary folder, removed with its content.
    struct ScratchFolder(PathBuf);

    impl ScratchFolder {
        fn new(name: &str) -> ScratchFolder {
            let path = std::env::temp_dir().join(format!("tenfold-log-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a temporary folder");
            ScratchFolder(path)
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for ScratchFolder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// The user of this process, as the user of workers.
    fn ourselves() -> SystemUser {
        let name = "ourselves".to_owned();
        SystemUser {
            name,
            id: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
            groups: Vec::new(),
        }
    }

    #[test]
    fn h75_nothing_is_made_or_written_through_a_link() {
        let folder = ScratchFolder::new("links");
        fs::write(folder.at("victim"), "kept").expect("our own folder");
        symlink("victim", folder.at("to-file")).expect("our own folder");
        symlink("to-file", folder.at("to-link")).expect("our own folder");
        symlink("absent", folder.at("to-nothing")).expect("our own folder");
        for owner in [None, Some(ourselves())] {
            for name in ["to-file", "to-link"] {
                for opened in [make(&folder.at(name), owner.as_ref()), open(&folder.at(name))] {
                    let why = opened.expect_err("it leads to a file");
                    assert!(why.contains("it is a link to a file; name the file itself"), "{name}: {why}");
                }
            }
            assert!(
                make(&folder.at("to-nothing"), owner.as_ref()).is_err(),
                "a file was made through a link"
            );
        }
        assert!(!folder.at("absent").exists());
        assert_eq!(fs::read_to_string(folder.at("victim")).expect("our own file"), "kept");
    }

    #[test]
    fn h75_a_link_to_a_pipe_or_a_device_is_followed() {
        let folder = ScratchFolder::new("streams");
        mknodat(CWD, folder.at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("our own folder");
        let _reader =
            File::options().read(true).write(true).open(folder.at("pipe")).expect("it was just made");
        for (name, target) in [("to-pipe", "pipe"), ("to-null", "/dev/null")] {
            symlink(target, folder.at(name)).expect("our own folder");
            make(&folder.at(name), Some(&ourselves())).unwrap_or_else(|why| panic!("{name}: {why}"));
            open(&folder.at(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
        }
        let (_reader, writer) = io::pipe().expect("descriptors");
        let as_stdout = format!("/proc/self/fd/{}", writer.as_raw_fd());
        symlink(as_stdout, folder.at("to-stdout")).expect("our own folder");
        make(&folder.at("to-stdout"), Some(&ourselves())).expect("the system's link to an open pipe");
    }

    #[test]
    fn h75_a_folder_is_not_reached_by_another_users_link() {
        let folder = ScratchFolder::new("folders");
        fs::create_dir(folder.at("real")).expect("our own folder");
        symlink("real", folder.at("ours")).expect("our own folder");
        make(&folder.at("ours/log"), None).expect("a link of this process's user");
        assert!(folder.at("real/log").is_file());
        symlink("real", folder.at("theirs")).expect("our own folder");
        // Only root can give a link away.
        if lchown(folder.at("theirs"), Some(12_345), None).is_err() {
            return;
        }
        let why = make(&folder.at("theirs/other"), None).expect_err("it may lead anywhere");
        assert!(why.contains("theirs is a link of user 12345, who may lead it anywhere"), "{why}");
        assert!(!folder.at("real/other").exists());
        symlink("/dev/null", folder.at("null")).expect("our own folder");
        lchown(folder.at("null"), Some(12_345), None).expect("it could be done before");
        make(&folder.at("null"), None).expect_err("a link of another user leads to a device");
    }

    #[test]
    fn h75_a_second_name_of_a_file_is_not_given_away() {
        let folder = ScratchFolder::new("names");
        fs::write(folder.at("victim"), "kept").expect("our own folder");
        fs::hard_link(folder.at("victim"), folder.at("log")).expect("our own folder");
        let why = make(&folder.at("log"), Some(&ourselves())).expect_err("it may be anybody's");
        assert!(why.contains("it has several names"), "{why}");
    }

    #[test]
    fn h75_a_moved_file_is_not_given_away() {
        let folder = ScratchFolder::new("moved");
        let log = folder.at("log");
        let other = SystemUser { id: 12_345, ..ourselves() };
        fs::write(&log, "kept").expect("our own folder");
        // Only root can give a folder away.
        if lchown(&folder.0, Some(other.id), None).is_err() {
            return;
        }
        for opened in [make(&log, Some(&other)).map(drop), check(&log, Some(&other))] {
            let why = opened.expect_err("the owner of the folder can have moved it there");
            assert!(why.contains("it belongs to user 0, and others can move files to its folder"), "{why}");
        }
        fs::write(&log, "").expect("our own file");
        check(&log, Some(&other)).expect("it tells nothing");
        make(&log, Some(&other)).expect("it tells nothing");
        fs::write(&log, "a line").expect("root can write it");
        make(&log, Some(&other)).expect("it belongs to the workers");
    }

    #[test]
    fn a_missing_folder_is_named_and_a_check_makes_nothing() {
        let folder = ScratchFolder::new("check");
        for opened in [make(&folder.at("none/log"), None).map(drop), check(&folder.at("none/log"), None)] {
            let why = opened.expect_err("there is no such folder");
            assert!(why.contains("there is no folder ") && why.contains("none; create it"), "{why}");
        }
        check(&folder.at("log"), None).expect("it could be made");
        assert!(!folder.at("log").exists());
        fs::write(folder.at("log"), "kept").expect("our own folder");
        check(&folder.at("log"), None).expect("it can be written");
        check(&folder.at("log/more"), None).expect_err("its folder is a file");
    }

    #[test]
    fn a_pipe_is_opened_when_somebody_reads_it() {
        let path = std::env::temp_dir().join(format!("tenfold-log-{}", std::process::id()));
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a temporary folder");
        for opened in [make(&path, None), open(&path)] {
            let why = opened.expect_err("nobody reads it");
            assert!(why.contains("no process reads this pipe: No such device"), "{why}");
        }
        let _reader = File::options().read(true).write(true).open(&path).expect("it was just made");
        for opened in [make(&path, None), open(&path)] {
            let flags = fcntl_getfl(opened.expect("somebody reads it")).expect("it is open");
            assert!(flags.contains(OFlags::NONBLOCK | OFlags::APPEND), "{flags:?}");
        }
        fs::remove_file(&path).expect("our own file");
    }
}
