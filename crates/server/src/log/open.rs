//! The access log as the supervisor opens it.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use tenfold_sys::user::SystemUser;

use super::file;
use crate::config::values::Settings;
use crate::config::values::log::{LogTarget, Manner, Mode};

/// An open access log, or no log.
#[derive(Debug, Default)]
pub(crate) struct Log(pub(super) Option<Open>);

#[derive(Debug)]
pub(super) struct Open {
    pub(super) file: File,
    /// The path to reopen; `None` for standard output.
    pub(super) path: Option<PathBuf>,
    pub(super) manner: Manner,
}

impl Open {
    /// Writes each line immediately if the log is a terminal. A user at a terminal expects the line of a request
    /// immediately, and cannot read at a rate at which separate writes would be expensive.
    fn at_once_on_a_terminal(mut self) -> Open {
        if self.manner.mode == Mode::Buffered && self.file.is_terminal() {
            self.manner.mode = Mode::Sync;
        }
        self
    }
}

/// Checks that [`Log::open`] would succeed. Creates nothing.
pub(crate) fn check(settings: &Settings, owner: Option<&SystemUser>) -> Result<(), String> {
    let LogTarget::File(path) = &settings.access_log else { return Ok(()) };
    file::check(path, owner).map_err(|why| format!("cannot open the access log {}: {why}", path.display()))
}

impl Log {
    /// Opens the access log of `settings` for workers that run as `owner`.
    pub(crate) fn open(settings: &Settings, owner: Option<&SystemUser>) -> Result<Log, String> {
        let manner = settings.log.clone();
        let open = match &settings.access_log {
            LogTarget::Off => None,
            LogTarget::Output => {
                let output = io::stdout().as_fd().try_clone_to_owned();
                let file = output.map_err(|error| format!("cannot write to standard output: {error}"))?;
                Some(Open { file: file.into(), path: None, manner })
            }
            LogTarget::File(path) => {
                let wrong = |why: String| format!("cannot open the access log {}: {why}", path.display());
                let path = std::path::absolute(path).map_err(|error| wrong(error.to_string()))?;
                Some(Open { file: file::make(&path, owner).map_err(wrong)?, path: Some(path), manner })
            }
        };
        Ok(Log(open.map(Open::at_once_on_a_terminal)))
    }

    /// Reopens the path, creating a missing file, and writes there from now on. Returns whether the log has a path. On
    /// an error, the old file stays in use.
    pub(crate) fn reopen(&mut self, owner: Option<&SystemUser>) -> Result<bool, String> {
        let Some(Open { file, path: Some(path), .. }) = &mut self.0 else { return Ok(false) };
        *file = file::make(path, owner)
            .map_err(|why| format!("cannot open the access log {} again: {why}", path.display()))?;
        Ok(true)
    }

    /// Returns the path to reopen; `None` for standard output and without a log.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.0.as_ref()?.path.as_deref()
    }

    /// The path and the metadata of the log, if it is a regular file, which can be renamed.
    pub(crate) fn regular(&self) -> Option<(&Path, std::fs::Metadata)> {
        let Open { file, path, .. } = self.0.as_ref()?;
        let facts = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some((path.as_deref()?, facts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse::given::GivenSettings;

    fn mode(log: &str, mode: &str) -> Mode {
        let flags =
            [("access-log", log), ("log-mode", mode)].map(|(key, value)| (key, vec![value.to_owned()]));
        let settings =
            GivenSettings { flags: flags.into(), ..GivenSettings::default() }.resolve().expect("legal");
        Log::open(&settings, None).expect("a device").0.expect("a log").manner.mode
    }

    #[test]
    fn a_line_is_written_at_once_only_to_a_terminal() {
        // Opening this file returns the controlling end of a new pseudoterminal (`man 4 pts`).
        assert_eq!(mode("/dev/ptmx", "buffered"), Mode::Sync);
        assert_eq!(mode("/dev/ptmx", "async"), Mode::Async);
        assert_eq!(mode("/dev/null", "buffered"), Mode::Buffered);
    }
}
