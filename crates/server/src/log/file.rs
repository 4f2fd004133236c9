//! The file of an access log: opened without waiting for anybody.
//!
//! Whoever opens a pipe to write waits until somebody reads it (`man 7 fifo`). The supervisor, which has signals to
//! hear and workers to replace, must not wait for that, nor must a worker: O_NONBLOCK makes it an error. Writing
//! waits for a pipe that is full all the same, so the flag is taken away again.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use tenfold_sys::user::User;

/// Opens the file, and gives it to `owner`, who has to open it again.
///
/// A name in a folder that others may write to can lead anywhere: only a file that has this one name, and
/// is reached without a link, changes hands. What a link leads to (`/dev/stdout`) is written to as it is.
///
/// # Errors
/// What the system says, and what to do where nobody reads a pipe.
pub(super) fn make(path: &Path, owner: Option<&User>) -> Result<File, String> {
    made(path, owner).map_err(|error| why(path, &error))
}

/// Opens the file that the supervisor has made, and given to whom workers are.
///
/// # Errors
/// What the system says, and what to do where nobody reads a pipe.
pub(super) fn open(path: &Path) -> Result<File, String> {
    at_once(File::options().append(true), OFlags::empty(), path).map_err(|error| why(path, &error))
}

fn made(path: &Path, owner: Option<&User>) -> io::Result<File> {
    // Who may read it is told whom this site's visitors are, so others may not.
    let mut options = File::options();
    options.append(true).create(true).mode(0o640);
    let Some(owner) = owner else { return at_once(&options, OFlags::empty(), path) };
    let file = match at_once(&options, OFlags::NOFOLLOW, path) {
        Err(error) if is(&error, Errno::LOOP) => return at_once(&options, OFlags::empty(), path),
        other => other?,
    };
    let facts = file.metadata()?;
    if facts.is_file() && facts.nlink() == 1 {
        fchown(&file, Some(owner.id), Some(owner.group))?;
    }
    Ok(file)
}

fn at_once(options: &OpenOptions, flags: OFlags, path: &Path) -> io::Result<File> {
    let flags = flags | OFlags::NONBLOCK;
    let file = options.clone().custom_flags(flags.bits() as i32).open(path)?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

fn why(path: &Path, error: &io::Error) -> String {
    let pipe = || fs::metadata(path).is_ok_and(|facts| facts.file_type().is_fifo());
    match is(error, Errno::NXIO) && pipe() {
        true => format!("nobody reads this pipe: {error}; start its reader, then try again"),
        false => error.to_string(),
    }
}

fn is(error: &io::Error, number: Errno) -> bool {
    error.raw_os_error() == Some(number.raw_os_error())
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn a_pipe_is_opened_when_somebody_reads_it_and_then_writing_waits() {
        let path = std::env::temp_dir().join(format!("tenfold-log-{}", std::process::id()));
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a temporary folder");
        for opened in [make(&path, None), open(&path)] {
            let why = opened.expect_err("nobody reads it");
            assert!(why.contains("nobody reads this pipe: No such device"), "{why}");
        }
        let _reader = File::options().read(true).write(true).open(&path).expect("it was just made");
        for opened in [make(&path, None), open(&path)] {
            let flags = fcntl_getfl(opened.expect("somebody reads it")).expect("it is open");
            assert!(!flags.contains(OFlags::NONBLOCK) && flags.contains(OFlags::APPEND), "{flags:?}");
        }
        fs::remove_file(&path).expect("our own file");
    }
}
