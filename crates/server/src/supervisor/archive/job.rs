//! The state of the work on rotated files, and the end of a file's compression.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use tenfold_sys::folder::OpenFolder;
use tenfold_sys::process::{self, Pid, WaitStatus};

use super::compress::STILL_WRITTEN;
use super::names::COMPRESSED;
use crate::diagnostics::{debug, error, warning};

/// The time in which workers turn to the new file after a rotation.
const TURN: Duration = Duration::from_millis(200);
/// The pauses before a file is looked at again that a worker has open. A `fork` that sends a large response has it for
/// long.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(64);
/// The pause after a failure, such as a full disk.
pub(super) const LONG_PAUSE: Duration = Duration::from_secs(600);
/// The suffix of a file that is being compressed.
pub(super) const PART: &str = ".gz.tmp";

/// The work on rotated files.
#[derive(Debug, Default)]
pub(in crate::supervisor) struct Archive {
    /// The time of the next look at them. None if nothing has changed since the last one.
    pub(super) due: Option<Instant>,
    /// The pause before the next attempt at a file that is still written.
    pause: Duration,
    pub(super) job: Option<Job>,
}

/// A file that is being compressed.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) process: Pid,
    pub(super) folder: OpenFolder,
    pub(super) name: OsString,
    pub(super) from: File,
    /// Its bytes at the begin.
    pub(super) size: u64,
}

impl Archive {
    /// Looks at the files soon: one was added, or the settings have changed.
    pub(in crate::supervisor) fn wake(&mut self) {
        (self.due, self.pause) = (Some(Instant::now() + TURN), FIRST_PAUSE);
    }

    pub(in crate::supervisor) fn is(&self, process: Pid) -> bool {
        self.job.as_ref().is_some_and(|job| job.process == process)
    }

    /// The process of a job has ended: its result takes the place of the original, or is removed.
    pub(in crate::supervisor) fn ended(&mut self, end: WaitStatus) {
        let Some(job) = self.job.take() else { return };
        let pause = match end {
            WaitStatus::Exited(0) => match job.finish() {
                Ok(()) => TURN,
                Err(error) => {
                    error!(
                        "cannot replace the rotated log {} by its compressed form: {error}",
                        job.name.display()
                    );
                    LONG_PAUSE
                }
            },
            WaitStatus::Exited(STILL_WRITTEN) => {
                debug!("{} is still written; it is compressed later", job.name.display());
                let pause = self.pause;
                self.pause = (pause * 2).min(LONGEST_PAUSE);
                pause
            }
            end => {
                warning!(
                    "{} was not compressed (the process {end}); the next attempt is in {LONG_PAUSE:?}",
                    job.name.display()
                );
                LONG_PAUSE
            }
        };
        job.discard();
        self.due = Some(Instant::now() + pause);
    }

    /// Ends the work, before the server ends.
    pub(in crate::supervisor) fn abandon(&mut self) {
        if let Some(job) = self.job.take() {
            process::end_children([job.process]);
            job.discard();
        }
    }
}

impl Job {
    fn finish(&self) -> io::Result<()> {
        if self.from.metadata()?.len() != self.size {
            return Err(io::Error::other("it has grown meanwhile"));
        }
        self.folder.rename(&with(&self.name, PART), &with(&self.name, COMPRESSED))?;
        self.folder.remove(&self.name)
    }

    fn discard(&self) {
        // After success it has another name.
        let _ = self.folder.remove(&with(&self.name, PART));
    }
}

/// A name with a suffix.
pub(super) fn with(name: &OsStr, suffix: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(suffix);
    name
}
