//! Rotated files of the access log: the oldest are removed, the others compressed by a process for each. A file is
//! compressed when no process has it open for writing any more, so that no line is lost.

mod compress;
pub(super) mod job;
pub(super) mod names;

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Instant;

use tenfold_sys::folder::{self, OpenFolder};
use tenfold_sys::process::{self, Fork};
use tenfold_sys::user;

use self::job::{Job, LONG_PAUSE, PART, with};
use self::names::{RotatedFile, beyond, list, uncompressed};
use super::generation::Stage;
use super::state::Supervisor;
use crate::diagnostics::{debug, error, warning};

/// The most files that a look complains about one by one.
const MOST_COMPLAINTS: usize = 10;

impl Supervisor {
    /// The time of the next look at rotated files.
    pub(super) fn archive_by(&self) -> Option<Instant> {
        let newest = self.generations.last().filter(|newest| newest.stage == Stage::Serving)?;
        let wanted = newest.settings.log_compress || newest.settings.log_keep.is_some();
        self.archive.due.filter(|_| wanted && self.leaving.is_none() && self.archive.job.is_none())
    }

    /// Removes the oldest files, and begins to compress the oldest of the others.
    pub(super) fn look_after_archive(&mut self) {
        if self.archive_by().is_none_or(|by| by > Instant::now()) {
            return;
        }
        self.archive.due = None;
        let Some(newest) = self.generations.last() else { return };
        let Some((path, _)) = newest.log.regular() else { return };
        let (path, keep, compresses) =
            (path.to_owned(), newest.settings.log_keep, newest.settings.log_compress);
        let mut complaints = Vec::new();
        let archived = list(&path).and_then(|mut files| {
            let (folder, _) = OpenFolder::around(&path)?;
            let found = files.len();
            files.retain(|file| self.has_made(&folder, &file.name));
            if let others @ 1.. = found - files.len() {
                complaints.push(format!(
                    "{others} names of rotated files in the folder of {} are no files of the server, and stay",
                    path.display()
                ));
            }
            let old = keep.map_or(&[][..], |keep| beyond(&files, keep));
            complaints.extend(old.iter().filter_map(|file| remove(&folder, file).err()));
            let left = &files[old.len()..];
            if compresses { self.compress_first(&path, left, &mut complaints) } else { Ok(()) }
        });
        complaints.iter().take(MOST_COMPLAINTS).for_each(|why| warning!("{why}"));
        if let more @ 1.. = complaints.len().saturating_sub(MOST_COMPLAINTS) {
            warning!("{more} more rotated files of {} stay as they are", path.display());
        }
        if let Err(error) = archived {
            error!("cannot look after the rotated files of {}: {error}", path.display());
            self.archive.due = Some(Instant::now() + LONG_PAUSE);
        }
    }

    /// Whether it is a file of root, of the workers or of this process's user, with one name. Names that others make are
    /// neither counted nor removed.
    fn has_made(&self, folder: &OpenFolder, name: &OsStr) -> bool {
        let users = [0, user::own(), self.user.as_ref().map_or(0, |user| user.id)];
        let facts = folder.look(name).and_then(|found| found.metadata());
        facts.is_ok_and(|facts| facts.is_file() && facts.nlink() == 1 && users.contains(&facts.uid()))
    }

    /// Begins to compress the first of `files` that can be.
    fn compress_first(
        &mut self,
        path: &Path,
        files: &[RotatedFile],
        complaints: &mut Vec<String>,
    ) -> io::Result<()> {
        let (folder, _) = OpenFolder::around(path)?;
        for RotatedFile { name, .. } in uncompressed(files) {
            match self.files_of(&folder, name) {
                Ok((from, to)) => return self.begin_job(folder, name, from, &to),
                Err(error) => {
                    complaints
                        .push(format!("cannot compress {}: {error}; it stays as it is", name.display()));
                }
            }
        }
        Ok(())
    }

    /// Opens the file, and creates the one for its compressed form, with the same owner and mode. The folder may be
    /// another user's, who could put any file of root's there.
    fn files_of(&self, folder: &OpenFolder, name: &OsStr) -> io::Result<(File, File)> {
        let from = folder.read(name)?;
        let facts = from.metadata()?;
        let owner = self.user.as_ref().map_or_else(user::own, |user| user.id);
        if !facts.is_file() || facts.nlink() != 1 || facts.uid() != owner {
            return Err(io::Error::other(format!("it is not a file of user {owner} with one name")));
        }
        let part = with(name, PART);
        let to = match folder.create(&part) {
            // A server that was killed has left it.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                folder.remove(&part)?;
                folder.create(&part)?
            }
            created => created?,
        };
        to.set_permissions(Permissions::from_mode(facts.mode() & 0o777))?;
        // A server that was not started as root may not be allowed to call it.
        let created = to.metadata()?;
        if (created.uid(), created.gid()) != (facts.uid(), facts.gid()) {
            folder::give(&to, facts.uid(), facts.gid())?;
        }
        Ok((from, to))
    }

    fn begin_job(&mut self, folder: OpenFolder, name: &OsStr, from: File, to: &File) -> io::Result<()> {
        let (supervisor, size) = (process::own(), from.metadata()?.len());
        match process::fork() {
            Ok(Fork::Parent(process)) => {
                debug!("{} is compressed by process {process}", name.display());
                self.archive.job = Some(Job { process, folder, name: name.to_owned(), from, size });
                Ok(())
            }
            Ok(Fork::Child) => {
                self.accounts = None;
                self.forget();
                compress::run_and_exit(&from, to, self.user.as_ref(), supervisor)
            }
            Err(error) => {
                folder.remove(&with(name, PART))?;
                Err(error)
            }
        }
    }
}

/// Removes a file that is beyond the kept ones.
///
/// # Errors
/// In words: the system refuses.
fn remove(folder: &OpenFolder, file: &RotatedFile) -> Result<(), String> {
    let name = file.name.display();
    folder.remove(&file.name).map_err(|error| format!("cannot remove the rotated log {name}: {error}"))?;
    debug!("{name} was removed (log-keep)");
    Ok(())
}
