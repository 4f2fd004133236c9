//! Making a workbench: folders, processors, signals, descriptors.

use std::fs;
use std::path::Path;

use tenfold_sys::{lifecycle, limits};

use crate::plan::RunPlan;
use crate::trial::{TrialSite, Workbench};

/// The folder of configurations and error output, in the folder of a run.
pub const KEPT: &str = "subjects";

/// Makes the workbench of a run.
///
/// # Errors
/// What the system said.
pub fn make(plan: &RunPlan, program: &Path, output: &Path) -> Result<Workbench, String> {
    let kept = output.join(KEPT);
    fs::create_dir_all(&kept).map_err(|error| format!("cannot create {}: {error}", kept.display()))?;
    let kept = kept.canonicalize().map_err(|error| format!("cannot resolve {}: {error}", kept.display()))?;
    lifecycle::install_worker_signals().map_err(|error| format!("cannot catch signals: {error}"))?;
    limits::raise_descriptors().map_err(|error| format!("cannot raise the limit of descriptors: {error}"))?;
    Ok(Workbench {
        program: program.to_owned(),
        site: TrialSite::new()?,
        kept,
        server_processors: plan.server_processors.clone(),
        client_processors: plan.client_processors.clone(),
    })
}
