//! Log rotation. Only the supervisor renames, so that it happens once.
//!
//! The name of the old file gets the day of its last lines. The workers open the new file on USR1; until then they write
//! to the old file.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tenfold_sys::location::Location;

use crate::config::values::log::Rotate;
use crate::diagnostics::day;
use crate::diagnostics::{error, info};
use crate::supervisor::generation::{Generation, Stage};

/// The interval of checks.
const TICK: Duration = Duration::from_secs(1);
/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(60);
/// The most files of one day.
const MOST_FILES: u32 = 100_000;

/// The time in which workers turn to the new file after a rotation.
const TURN: Duration = Duration::from_millis(200);

/// The last rotation, and the next checks.
#[derive(Debug, Default)]
pub(crate) struct LogFiles {
    look: Option<Instant>,
    /// The next check of rotated files; `None` if nothing has changed since the last one.
    pub(crate) archive: Option<Instant>,
    /// The number of written lines at that time.
    lines: u64,
    /// The day of the lines in the file, once known.
    day: Option<u64>,
}

impl LogFiles {
    /// Plans a check of rotated files: one was added, or the settings have changed.
    pub(crate) fn check_archive(&mut self) {
        self.archive = Some(Instant::now() + TURN);
    }

    /// The time of the next check; `None` if the log is not rotated.
    pub(crate) fn by(&self, newest: &Generation, began: Instant) -> Option<Instant> {
        let wanted = newest.settings.log_rotate != Rotate::Off && newest.stage == Stage::Serving;
        wanted.then(|| self.look.unwrap_or(began))
    }

    /// Rotates the log of `newest` if it is due. Returns whether the log must be reopened.
    pub(crate) fn rotate(&mut self, newest: &Generation, lines: u64, now: Instant) -> bool {
        self.look = Some(now + TICK);
        let Some((path, facts)) = newest.log.regular() else { return false };
        let today = unix_seconds(SystemTime::now());
        // An existing file has the day of its last change.
        let last = facts.modified().map_or(today, unix_seconds);
        let of = *self.day.get_or_insert(day::number(last));
        let daily = newest.settings.log_rotate == Rotate::Daily;
        let due = match newest.settings.log_rotate {
            Rotate::Off => false,
            Rotate::Size(most) => facts.len() >= most,
            Rotate::Lines(most) => lines.saturating_sub(self.lines) >= most,
            Rotate::Daily => of < day::number(today),
        };
        if !due {
            return false;
        }
        (self.day, self.lines) = (Some(day::number(today)), lines);
        if facts.len() == 0 {
            return false;
        }
        // The first lines of a new day may precede this check.
        let named = if daily { day::of_number(of) } else { day::of(last) };
        match move_away(path, &named) {
            Ok(to) => {
                info!("the access log goes on in a new file; the old one is {}", to.display());
                true
            }
            Err(why) => {
                error!("{why}; the access log goes on in the same file");
                self.look = Some(now + PAUSE);
                false
            }
        }
    }
}

/// Appends the day to the name of the file at `path`, and a number from the second file of that day on. Replaces no
/// existing name.
fn move_away(path: &Path, day: &str) -> Result<PathBuf, String> {
    let wrong = |error: &io::Error| format!("cannot rename {} to the day {day}: {error}", path.display());
    let location = Location::find(path).map_err(|error| wrong(&error))?;
    let own = path.file_name().unwrap_or(OsStr::new(""));
    for number in 1..MOST_FILES {
        let mut name = own.to_owned();
        name.push(format!(".{day}"));
        if number > 1 {
            name.push(format!(".{number}"));
        }
        match location.rename(&name) {
            Ok(()) => return Ok(path.with_file_name(name)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(wrong(&error)),
        }
    }
    Err(format!("there are too many files {}.{day}", path.display()))
}

fn unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tenfold_testkit::folder::TempFolder;

    use super::*;

    #[test]
    fn a_file_is_moved_to_its_day_and_never_over_another() {
        let folder = TempFolder::new("rotate");
        let path = folder.at("access.log");
        let names: Vec<_> = ["a", "b", "c"]
            .iter()
            .map(|content| {
                fs::write(&path, content).expect("our own folder");
                let to = move_away(&path, "2026-11-21").expect("it can be renamed");
                assert_eq!(fs::read_to_string(&to).expect("it is there"), *content);
                to.file_name().expect("a name").to_string_lossy().into_owned()
            })
            .collect();
        assert_eq!(names, ["access.log.2026-11-21", "access.log.2026-11-21.2", "access.log.2026-11-21.3"]);
        symlink("absent", folder.at("access.log.2026-11-22")).expect("our own folder");
        fs::write(&path, "d").expect("our own folder");
        let to = move_away(&path, "2026-11-22").expect("it can be renamed");
        assert!(to.ends_with("access.log.2026-11-22.2"), "a link keeps its name: {}", to.display());
        assert!(move_away(&path, "2026-11-21").is_err(), "there is nothing to move");
    }
}
