//! The files of the access log: [`rotation`] begins new ones, and [`archive`] removes old ones.

mod archive;
pub(crate) mod rotation;

use std::time::{Duration, Instant};

use tenfold_sys::signal::Signal;

use crate::diagnostics::error;
use crate::supervisor::generation::Stage;
use crate::supervisor::state::Supervisor;

/// The pause after a failure, such as a folder that cannot be read.
const PAUSE: Duration = Duration::from_secs(600);

impl Supervisor {
    /// The time of the next check of the log and its rotated files.
    pub(crate) fn log_by(&self) -> Option<Instant> {
        [self.rotation_by(), self.archive_by()].into_iter().flatten().min()
    }

    fn rotation_by(&self) -> Option<Instant> {
        let newest = self.generations.all.last().filter(|_| self.leaving.is_none())?;
        self.log.by(newest, self.began)
    }

    fn archive_by(&self) -> Option<Instant> {
        let newest = self.generations.all.last().filter(|newest| newest.stage == Stage::Serving)?;
        self.log.archive.filter(|_| newest.settings.log_keep.is_some() && self.leaving.is_none())
    }

    /// Rotates the log and removes its oldest files, if that is due.
    pub(crate) fn advance_log(&mut self) {
        let now = Instant::now();
        let is_due = |by: Option<Instant>| by.is_some_and(|by| by <= now);
        if is_due(self.rotation_by()) {
            let lines = self.generations.lines();
            let Some(newest) = self.generations.all.last() else { return };
            if self.log.rotate(newest, lines, now) {
                self.reopen_log();
                self.log.check_archive();
            }
        }
        if is_due(self.archive_by()) {
            self.log.archive = None;
            let Some(newest) = self.generations.all.last() else { return };
            let (Some((path, _)), Some(keep)) = (newest.log.regular(), newest.settings.log_keep) else {
                return;
            };
            if let Err(error) = archive::remove_oldest(path, keep, self.user.as_ref()) {
                error!("cannot remove rotated files of {}: {error}", path.display());
                self.log.archive = Some(now + PAUSE);
            }
        }
    }

    /// Opens the log by its path again, in every process. Returns whether the newest generation has the new file.
    pub(crate) fn reopen_log(&mut self) -> bool {
        let mut reopened = false;
        for generation in &mut self.generations.all {
            match generation.log.reopen(self.user.as_ref()) {
                Ok(has_path) => {
                    generation.signal(Signal::Reopen);
                    reopened = has_path;
                }
                Err(why) => {
                    error!("{why}; lines still go to the old file");
                    reopened = false;
                }
            }
        }
        self.signal_former(Signal::Reopen);
        reopened
    }
}
