//! The access log: where it goes, and how lines get there.
//!
//! [`combined`] writes a line, [`Writer`] collects those of a worker and hands them to the system in whole
//! lines. The supervisor opens the [`Log`]; on USR1 it makes the new file, and workers open that by its path.

pub(crate) mod combined;
mod sink;
mod writer;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use tenfold_sys::user::User;

use crate::settings::LogTarget;
pub(crate) use writer::{Fields, Writer};

/// An access log that is open, or none.
#[derive(Debug, Default)]
pub(crate) struct Log(Option<Open>);

#[derive(Debug)]
struct Open {
    file: File,
    /// Where to open it anew; none for standard output.
    path: Option<PathBuf>,
}

impl Log {
    /// Opens what `target` names, for workers that are `owner`.
    ///
    /// # Errors
    /// What the system says, with the path.
    pub(crate) fn open(target: &LogTarget, owner: Option<&User>) -> Result<Log, String> {
        let open = match target {
            LogTarget::Off => None,
            LogTarget::Output => {
                let output = io::stdout().as_fd().try_clone_to_owned();
                let file = output.map_err(|error| format!("can not write to standard output: {error}"))?;
                Some(Open { file: file.into(), path: None })
            }
            LogTarget::File(path) => {
                let wrong = |error| format!("can not open the access log {}: {error}", path.display());
                let path = std::path::absolute(path).map_err(wrong)?;
                Some(Open { file: make(&path, owner).map_err(wrong)?, path: Some(path) })
            }
        };
        Ok(Log(open))
    }

    /// Makes the file anew where its name is free, and takes it from now on.
    ///
    /// # Errors
    /// What the system says, with the path; the old one is kept then.
    pub(crate) fn reopen(&mut self, owner: Option<&User>) -> Result<(), String> {
        let Some(Open { file, path: Some(path) }) = &mut self.0 else { return Ok(()) };
        *file = make(path, owner)
            .map_err(|error| format!("can not open the access log {} again: {error}", path.display()))?;
        Ok(())
    }
}

fn make(path: &Path, owner: Option<&User>) -> io::Result<File> {
    // Who may read it is told whom this site's visitors are, so others may not.
    let file = File::options().append(true).create(true).mode(0o640).open(path)?;
    if let Some(owner) = owner {
        fchown(&file, Some(owner.id), Some(owner.group))?;
    }
    Ok(file)
}
