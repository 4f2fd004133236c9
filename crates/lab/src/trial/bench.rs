//! The workbench of a run: folders, processors, signals, descriptors.

use std::fs::{self, DirBuilder};
use std::net::Ipv4Addr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tenfold_load::LoadPlan;
use tenfold_rounds::log::LineLog;
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::{limits, user};

use crate::experiment::served::ServedSite;
use crate::plan::RunPlan;
use crate::trial::site::TrialSite;

/// The folder of configurations and error output, in the folder of a run.
pub const KEPT: &str = "subjects";

/// Opens the access log of the server on a file, given the `log-mode`.
pub type OpenLog = fn(&str, &Path) -> Result<Box<dyn LineLog>, String>;

/// Makes the plan of a load from the words of a command line of `tenfold`.
pub type LoadPlanOf = fn(&[String]) -> Result<LoadPlan, String>;

/// The server program that contains the laboratory.
#[derive(Clone, Debug)]
pub struct OwnServer {
    /// Its path. Trials start it as server and as load generator.
    pub program: PathBuf,
    /// Its access log.
    pub open_log: OpenLog,
    /// The plan of a load by its command line.
    pub load_plan: LoadPlanOf,
}

/// The programs, processors and folders of all trials.
#[derive(Debug)]
pub struct Workbench {
    /// The server that runs the laboratory.
    pub own: OwnServer,
    /// The files that subjects serve.
    pub site: TrialSite,
    /// A user's folder to serve instead. Trials never write to it.
    pub served: Option<ServedSite>,
    /// The folder of configurations and error output of subjects.
    pub kept: PathBuf,
    /// The address that subjects listen on.
    pub address: Ipv4Addr,
    /// Processors of servers; empty if nothing is pinned.
    pub server_processors: Vec<usize>,
    /// Processors of clients.
    pub client_processors: Vec<usize>,
    /// The time at which the run ends, complete or not.
    pub until: Option<Instant>,
}

/// The time after the end of a run in which the last trial may end.
const LAST: Duration = Duration::from_secs(1);

impl Workbench {
    /// The longest wait for a step of a trial: `most`, but not beyond the end of the run.
    pub(crate) fn patience(&self, most: Duration) -> Duration {
        let left = |until: Instant| until.saturating_duration_since(Instant::now()) + LAST;
        self.until.map_or(most, |until| most.min(left(until)))
    }

    /// The folder that Tenfold serves.
    pub(crate) fn root(&self) -> &Path {
        self.served.as_ref().map_or(self.site.folder(), |served| &served.root)
    }
}

/// Whether a signal asked this process to stop.
pub fn interrupted() -> bool {
    lifecycle::phase() != Phase::Serving
}

/// Makes the workbench of a machine whose controller keeps the run. Its folder is removed with it.
pub(super) fn far(own: OwnServer, address: Ipv4Addr, processors: Vec<usize>) -> Result<Workbench, String> {
    let site = TrialSite::new()?;
    let kept = site.scratch().join(KEPT);
    DirBuilder::new()
        .mode(0o755)
        .create(&kept)
        .map_err(|error| format!("cannot create {}: {error}", kept.display()))?;
    prepare()?;
    Ok(Workbench {
        own,
        site,
        served: None,
        kept,
        address,
        server_processors: processors,
        client_processors: Vec::new(),
        until: None,
    })
}

/// Catches signals, and raises the limit of descriptors.
pub(super) fn prepare() -> Result<(), String> {
    lifecycle::install_worker_signals().map_err(|error| format!("cannot catch signals: {error}"))?;
    limits::raise_descriptors().map_err(|error| format!("cannot raise the limit of descriptors: {error}"))?;
    Ok(())
}

/// Makes the workbench of a run that ends at `until`.
pub fn make(
    plan: &RunPlan,
    own: &OwnServer,
    output: &Path,
    until: Option<Instant>,
) -> Result<Workbench, String> {
    let kept = output.join(KEPT);
    // A link may lead elsewhere, and another user could change files in a writable folder.
    let made = match fs::symlink_metadata(&kept) {
        Ok(found) if found.is_dir() && found.uid() == user::own() && found.mode() & 0o022 == 0 => Ok(()),
        _ => DirBuilder::new().mode(0o755).create(&kept),
    };
    made.map_err(|error| format!("cannot create {}: {error}", kept.display()))?;
    let kept = kept.canonicalize().map_err(|error| format!("cannot resolve {}: {error}", kept.display()))?;
    prepare()?;
    Ok(Workbench {
        own: own.clone(),
        site: TrialSite::new()?,
        served: plan.served.clone(),
        kept,
        address: plan.machines.as_ref().map_or(Ipv4Addr::LOCALHOST, |machines| machines.address),
        server_processors: plan.server_processors.clone(),
        client_processors: plan.client_processors.clone(),
        until,
    })
}
