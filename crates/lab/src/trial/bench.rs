//! Making a workbench: folders, processors, signals, descriptors.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tenfold_rounds::log::LineLog;
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::{limits, user};

use crate::experiment::served::ServedSite;
use crate::plan::RunPlan;
use crate::trial::site::TrialSite;

/// The folder of configurations and error output, in the folder of a run.
pub const KEPT: &str = "subjects";

/// Opens the access log of this server in a mode on a file.
pub type OpenLog = fn(&str, &Path) -> Result<Box<dyn LineLog>, String>;

/// The server that runs the laboratory, as its trials use it.
#[derive(Clone, Debug)]
pub struct OwnServer {
    /// Its program, which is started again as a server and as a load generator.
    pub program: PathBuf,
    /// Its access log.
    pub open_log: OpenLog,
}

/// Programs, processors and folders that all trials share.
#[derive(Debug)]
pub struct Workbench {
    /// The server that runs the laboratory.
    pub own: OwnServer,
    /// The files that subjects serve.
    pub site: TrialSite,
    /// A folder of the user, which this server serves instead. It is never written to.
    pub served: Option<ServedSite>,
    /// The folder of configurations and error output of subjects.
    pub kept: PathBuf,
    /// Processors of servers; empty if nothing is pinned.
    pub server_processors: Vec<usize>,
    /// Processors of clients.
    pub client_processors: Vec<usize>,
    /// The time at which the run ends, even if trials are missing.
    pub until: Option<Instant>,
}

/// The time beyond the end of a run in which a trial that was begun can end.
const LAST: Duration = Duration::from_secs(1);

impl Workbench {
    /// The longest wait for a step of a trial: `most`, and less before the end of the run.
    pub(crate) fn patience(&self, most: Duration) -> Duration {
        let left = |until: Instant| until.saturating_duration_since(Instant::now()) + LAST;
        self.until.map_or(most, |until| most.min(left(until)))
    }

    /// The folder that this server serves.
    pub(crate) fn root(&self) -> &Path {
        self.served.as_ref().map_or(self.site.folder(), |served| &served.root)
    }
}

/// Whether a signal asked this process to stop.
pub fn interrupted() -> bool {
    lifecycle::phase() != Phase::Serving
}

/// Makes the workbench of a run, which may have to end at a time.
///
/// # Errors
/// The system's reason for the step that failed.
pub fn make(
    plan: &RunPlan,
    own: &OwnServer,
    output: &Path,
    until: Option<Instant>,
) -> Result<Workbench, String> {
    let kept = output.join(KEPT);
    // A link may lead elsewhere, and another user could exchange files in a folder.
    let made = match fs::symlink_metadata(&kept) {
        Ok(found) if found.is_dir() && found.uid() == user::own() && found.mode() & 0o022 == 0 => Ok(()),
        _ => DirBuilder::new().mode(0o755).create(&kept),
    };
    made.map_err(|error| format!("cannot create {}: {error}", kept.display()))?;
    let kept = kept.canonicalize().map_err(|error| format!("cannot resolve {}: {error}", kept.display()))?;
    lifecycle::install_worker_signals().map_err(|error| format!("cannot catch signals: {error}"))?;
    limits::raise_descriptors().map_err(|error| format!("cannot raise the limit of descriptors: {error}"))?;
    Ok(Workbench {
        own: own.clone(),
        site: TrialSite::new()?,
        served: plan.served.clone(),
        kept,
        server_processors: plan.server_processors.clone(),
        client_processors: plan.client_processors.clone(),
        until,
    })
}
