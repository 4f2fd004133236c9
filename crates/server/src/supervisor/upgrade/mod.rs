//! USR2: another program in this process. A child checks the configuration with the new program. Then the supervisor
//! executes it and passes its sockets; the old workers serve until the new ones do.

mod execute;
pub(crate) mod former;
pub(crate) mod handover;

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tenfold_sys::process::{self, Pid};
use tenfold_sys::signal;

use self::former::FormerWorkers;
use self::handover::{Handover, check_environment};
use crate::diagnostics::{error, info};
use crate::status::report::UpgradeCounts;

/// The time in which a new program must check the configuration.
const LATEST_CHECK: Duration = Duration::from_secs(6);

/// The upgrades of this process.
pub(crate) struct Upgrades {
    /// The path of this program. A file to which it leads later is the program of an upgrade.
    program: PathBuf,
    /// The command line, including the name of the program.
    arguments: Vec<OsString>,
    pub(crate) asked: bool,
    /// The child that runs the new program, and the time by which it must have ended.
    check: Option<(Pid, Instant)>,
    pub(crate) counts: UpgradeCounts,
    /// From the former program, until this one serves.
    pub(crate) handover: Option<Box<Handover>>,
    /// Workers of former programs.
    pub(crate) former: Vec<FormerWorkers>,
}

impl Upgrades {
    pub(crate) fn new(handover: Option<Box<Handover>>) -> Upgrades {
        let state = handover.as_ref().map(|handover| &handover.state);
        Upgrades {
            program: state.map_or_else(handover::own_path, |state| state.program.clone().into()),
            arguments: state.map_or_else(|| env::args_os().collect(), |state| state.arguments.clone()),
            asked: false,
            check: None,
            counts: state.map(|state| state.upgrades.clone()).unwrap_or_default(),
            former: state.map(|state| state.former.clone()).unwrap_or_default(),
            handover,
        }
    }

    fn begin_check(&mut self, port: Option<u16>) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        command.args(self.arguments.iter().skip(1)).envs(check_environment(port)).stdin(Stdio::null());
        signal::clear_mask(&mut command);
        let failed = |why| format!("cannot run {}: {why}", self.program.display());
        let child = command.spawn().map_err(failed)?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        self.check = pid.map(|pid| (pid, Instant::now() + LATEST_CHECK));
        Ok(())
    }

    /// The time at which the check is ended.
    pub(crate) fn by(&self) -> Option<Instant> {
        self.check.map(|(_, by)| by)
    }

    fn end_check(&mut self) {
        process::end_children(self.check.take().map(|(pid, _)| pid));
    }

    pub(crate) fn is_check(&self, pid: Pid) -> bool {
        self.check.is_some_and(|(check, _)| check == pid)
    }

    /// Reports and counts the upgrade to this program, when its first generation serves. Returns whether there was one.
    pub(crate) fn finish(&mut self) -> bool {
        let Some(handover) = self.handover.take() else { return false };
        if let Some(why) = &handover.state.failure {
            self.counts.failed(why);
            error!("{why}; the old program serves again, and counters begin again");
            return true;
        }
        self.counts.succeeded += 1;
        let which = match &self.counts.same_file {
            Some(path) => format!("the same program again: {path} is the file that ran before"),
            None => "the new program".to_owned(),
        };
        let version = env!("CARGO_PKG_VERSION");
        info!("serving with {which}, version {version}; the old workers drain, and counters begin again");
        true
    }
}
