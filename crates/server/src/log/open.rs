//! The access log as the supervisor opens it, and the paths beneath which workers write.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use tenfold_sys::user::SystemUser;

use crate::config::values::Settings;
use crate::config::values::log::{LogTarget, Manner, Mode};
use crate::log::file;

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

/// The log, and its folder if rotation creates new files there. The folder of a stream, such as `/dev`, is not
/// included.
pub(crate) fn paths_of(log: &Log) -> impl Iterator<Item = &Path> {
    log.path().into_iter().chain(folder_of_log(log))
}

fn folder_of_log(log: &Log) -> Option<&Path> {
    log.regular().map(|(path, _)| folder_of(path))
}

/// Returns how the location of the log weakens the sandbox, if the kernel restricts files.
pub(crate) fn weakness(log: &Log) -> Option<&'static str> {
    is_whole_system(folder_of_log(log)?).then_some(
        "the access log is in /, so the sandbox lets workers write to every file that their user may write to; put \
         the log into a folder of its own",
    )
}

fn is_whole_system(folder: &Path) -> bool {
    folder.canonicalize().is_ok_and(|folder| folder.parent().is_none())
}

/// The folder of a file; the working folder for a bare name.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::config::parse::given::GivenSettings;

    use super::*;

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

    fn log_at(path: &Path) -> Log {
        let flags = [("access-log", vec![path.display().to_string()])].into();
        let settings = GivenSettings { flags, ..GivenSettings::default() }.resolve().expect("legal");
        Log::open(&settings, None).expect("it can be written")
    }

    #[test]
    fn h79_only_a_log_that_is_a_file_opens_its_folder_to_workers() {
        assert_eq!(paths_of(&log_at(Path::new("/dev/null"))).collect::<Vec<_>>(), [Path::new("/dev/null")]);
        let folder = std::env::temp_dir().join(format!("tenfold-log-folder-{}", std::process::id()));
        fs::create_dir(&folder).expect("a temporary folder can be made");
        let file = folder.join("access.log");
        let log = log_at(&file);
        assert_eq!(paths_of(&log).collect::<Vec<_>>(), [&file, &folder]);
        assert_eq!(weakness(&log), None);
        assert!(is_whole_system(
            &folder.ancestors().map(|_| "..").fold(folder.clone(), |path, up| path.join(up))
        ));
        fs::remove_dir_all(&folder).expect("it is ours");
        assert_eq!(paths_of(&Log::default()).count(), 0);
    }
}
