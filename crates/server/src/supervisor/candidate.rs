//! The child that runs the program of an upgrade, to check the configuration with it.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tenfold_sys::process::{self, Pid};
use tenfold_sys::signal;

use super::handover::{Program, check_variable, ready_line};

/// The time in which a new program must check the configuration.
pub(super) const LATEST_CHECK: Duration = Duration::from_secs(6);

/// The upgrade that was asked for.
#[derive(Debug, Default)]
pub(super) struct Upgrade {
    pub(super) asked: bool,
    pub(super) check: Option<Check>,
}

/// A child that runs the new program.
#[derive(Debug)]
pub(super) struct Check {
    pid: Pid,
    by: Instant,
    answer: UnixStream,
    file: Option<ProgramFile>,
}

/// The identity of a program's file: device and inode, size, and the time of the last change.
type ProgramFile = (u64, u64, u64, i64, i64);

fn file_at(path: &OsStr) -> Option<ProgramFile> {
    let facts = fs::metadata(path).ok()?;
    Some((facts.dev(), facts.ino(), facts.size(), facts.ctime(), facts.ctime_nsec()))
}

impl Check {
    /// Runs the program with the command line of this one.
    ///
    /// # Errors
    /// It cannot be run.
    pub(super) fn begin(program: &Program) -> io::Result<Check> {
        let (answer, theirs) = UnixStream::pair()?;
        answer.set_nonblocking(true)?;
        let (name_word, words) = program.arguments.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let (name, value) = check_variable();
        let file = file_at(&program.path);
        let mut command = Command::new(&program.path);
        command.arg0(name_word).args(words).env(name, value);
        signal::clear_mask(&mut command);
        let child = command.stdin(Stdio::null()).stdout(OwnedFd::from(theirs)).spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("it has no process"))?;
        Ok(Check { pid, by: Instant::now() + LATEST_CHECK, answer, file })
    }

    /// Whether the file at the path of `program` is still the one that ran.
    pub(super) fn is_of(&self, program: &Program) -> bool {
        self.file.is_some() && self.file == file_at(&program.path)
    }

    /// Whether the program reported that it could serve.
    pub(super) fn reports_ready(mut self) -> bool {
        let mut answer = vec![0; ready_line().len() + 1];
        matches!(self.answer.read(&mut answer), Ok(length) if answer[..length] == *ready_line().as_bytes())
    }
}

impl Upgrade {
    /// The time at which the check is given up.
    pub(super) fn by(&self) -> Option<Instant> {
        self.check.as_ref().map(|check| check.by)
    }

    /// Ends the child that checks.
    pub(super) fn end_check(&mut self) {
        process::end_children(self.check.take().map(|check| check.pid));
    }

    pub(super) fn is(&self, pid: Pid) -> bool {
        self.check.as_ref().is_some_and(|check| check.pid == pid)
    }
}
