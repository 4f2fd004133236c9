//! The load of one machine as a task of an agent.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tenfold_agents::TaskPipe;
use tenfold_sys::lifecycle;
use tenfold_sys::shared::SharedRows;

use crate::error::LoadError;
use crate::measure::record::Record;
use crate::plan::LoadPlan;
use crate::plan::io::ChosenIo;
use crate::report::environment::{self, Environment};
use crate::run::live::{self, LiveCounters};
use crate::run::workers::{self, Course};
use crate::run::{check_descriptors, find};

/// The name of the task.
pub const LOAD_TASK: &str = "load";
/// The interval of reports during a run.
const REPORT: Duration = Duration::from_millis(250);

/// A message to the task.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToTask {
    /// Prepare for runs of this plan.
    Plan(Box<LoadPlan>),
    /// Run.
    Run {
        /// The number of the run, from 1.
        number: u32,
        /// The time of its begin in nanoseconds of the agent's monotonic clock.
        at: u64,
    },
}

/// A message of the task.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromTask {
    /// The machine, before the plan.
    Here(Environment),
    /// It is prepared.
    Ready(ChosenIo),
    /// The counters of the run.
    Progress(LiveCounters),
    /// The run has ended.
    Done {
        /// Its number.
        number: u32,
        /// The time at which it began, by the agent's monotonic clock.
        begun: u64,
        /// The measurements.
        record: Box<Record>,
    },
}

/// Makes the load of a controller's plan on this machine. See [`tenfold_agents::Task`].
pub fn task(pipe: &mut TaskPipe) -> Result<(), String> {
    let failed = |attempt: &str, error: std::io::Error| format!("cannot {attempt}: {error}");
    lifecycle::install_worker_signals().map_err(|error| failed("install signal handlers", error))?;
    pipe.send(&FromTask::Here(environment::find()))?;
    let Some(message) = pipe.receive()? else { return Ok(()) };
    let ToTask::Plan(plan) = message else { return Err("the plan of the run is missing".to_owned()) };
    let said = |error: LoadError| error.to_string();
    let io = plan.choose_io().map_err(said)?;
    check_descriptors(&plan).map_err(said)?;
    let targets = find(&plan).map_err(said)?;
    let means = io.means;
    pipe.send(&FromTask::Ready(io))?;
    while let Some(message) = pipe.receive()? {
        let ToTask::Run { number, at } = message else { return Err("there is a plan already".to_owned()) };
        let mut reported = Instant::now();
        let watch = &mut |rows: &SharedRows| {
            if reported.elapsed() >= REPORT {
                reported = Instant::now();
                // Without the controller, the agent ends this process.
                let _ = pipe.send(&FromTask::Progress(live::sums(rows)));
            }
        };
        let (begun, record) =
            workers::run(&plan, &targets, means, Course { begin: Some(at), watch }).map_err(said)?;
        pipe.send(&FromTask::Done { number, begun, record: Box::new(record) })?;
    }
    Ok(())
}
