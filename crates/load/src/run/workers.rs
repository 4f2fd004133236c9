//! The workers of a run: threads in one or several processes.

use std::io::{self, Read, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use tenfold_sys::clock;
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::process::{self, Fork, Pid};
use tenfold_sys::shared::SharedRows;
use tenfold_sys::signal::Signal;

use crate::error::{LoadError, failed};
use crate::measure::record::Record;
use crate::plan::LoadPlan;
use crate::plan::io::IoBackend;
use crate::worker::{self, EpollBackend, Share, Targets, UringBackend};

/// Nanoseconds from the start of the workers to the common start of the run.
const LEAD: u64 = 5_000_000;
/// The same with several processes, for each process.
const LEAD_OF_PROCESS: u64 = 20_000_000;
/// The interval between updates of the live display.
const UPDATE: Duration = Duration::from_millis(100);

/// The plan, its targets and its I/O.
#[derive(Clone, Copy)]
struct WorkerSetup<'a> {
    plan: &'a LoadPlan,
    targets: &'a Targets,
    means: IoBackend,
}

/// The start of a run, in nanoseconds of the monotonic clock, and the observer of its counters.
pub(crate) struct Course<'a> {
    /// The time at which the workers begin; `None`: as soon as they all can.
    pub(crate) begin: Option<u64>,
    /// Is called about every 100 ms with the counters of the workers.
    pub(crate) watch: &'a mut dyn FnMut(&SharedRows),
}

/// Runs all workers of this machine to their end. Returns the time at which they began, and their record.
pub(crate) fn run(
    plan: &LoadPlan,
    targets: &Targets,
    means: IoBackend,
    course: Course<'_>,
) -> Result<(u64, Record), LoadError> {
    let work = WorkerSetup { plan, targets, means };
    let rows = SharedRows::new(plan.workers_here() as usize, worker::LIVE_COUNTERS)
        .map_err(|error| failed("allocate shared memory for the workers", &error))?;
    let lead = if plan.processes == 1 { LEAD } else { LEAD_OF_PROCESS * u64::from(plan.processes) };
    let soonest = clock::monotonic() + lead;
    let begin = course.begin.map_or(soonest, |begin| begin.max(soonest));
    let record = match plan.processes {
        1 => threads(work, (0, begin), &rows, || (course.watch)(&rows))?,
        _ => processes(work, begin, &rows, course.watch)?,
    };
    Ok((begin, record))
}

/// Returns the nanoseconds that the workers of this machine need from their start to a common begin.
pub(crate) fn lead(plan: &LoadPlan) -> u64 {
    LEAD + LEAD_OF_PROCESS * u64::from(plan.processes)
}

/// Runs the threads of process `process`.
fn threads(
    WorkerSetup { plan, targets, means }: WorkerSetup<'_>,
    (process, begin): (u32, u64),
    rows: &SharedRows,
    mut update: impl FnMut(),
) -> Result<Record, LoadError> {
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for number in 0..plan.threads {
            let sender = sender.clone();
            let index = process * plan.threads + number;
            let first = plan.part.map_or(0, |part| part.first);
            let work = move || {
                let share = Share::new(plan, targets, first + index, begin);
                let row = rows.row(index as usize);
                let result = match means {
                    IoBackend::Epoll => worker::run::<EpollBackend>(&share, row),
                    IoBackend::Uring => worker::run::<UringBackend>(&share, row),
                };
                // The receiver is gone if another worker has failed.
                let _ = sender.send(result);
            };
            thread::Builder::new()
                .name(format!("load-{index}"))
                .spawn_scoped(scope, work)
                .map_err(|error| failed("start a thread", &error))?;
        }
        drop(sender);
        let mut all = Record::default();
        loop {
            match receiver.recv_timeout(UPDATE) {
                Ok(result) => all.add(result.map_err(|error| failed("wait for connections", &error))?),
                Err(RecvTimeoutError::Timeout) => update(),
                Err(RecvTimeoutError::Disconnected) => return Ok(all),
            }
        }
    })
}

fn processes(
    work: WorkerSetup<'_>,
    begin: u64,
    rows: &SharedRows,
    watch: &mut dyn FnMut(&SharedRows),
) -> Result<Record, LoadError> {
    let parent = process::own();
    let (sender, receiver) = mpsc::channel();
    let mut children: Vec<Pid> = Vec::new();
    let mut pipes = Vec::new();
    for number in 0..work.plan.processes {
        let (reader, writer) = io::pipe().map_err(|error| failed("create a pipe", &error))?;
        match fork_without_threads().map_err(|error| failed("start a process", &error))? {
            Fork::Child => {
                drop((reader, pipes));
                // Without its parent, the process has no reader.
                let alive = process::end_with(parent, Signal::Kill).unwrap_or(true);
                let result = threads(work, (number, begin), rows, || {});
                let sent = alive && write_record(writer, &result.map_err(|wrong| wrong.to_string())).is_ok();
                std::process::exit(i32::from(!sent));
            }
            Fork::Parent(pid) => {
                children.push(pid);
                pipes.push(reader);
            }
        }
    }
    let readers: Vec<_> = pipes
        .into_iter()
        .map(|pipe| {
            let sender = sender.clone();
            thread::spawn(move || sender.send(read_record(pipe)).is_ok())
        })
        .collect();
    drop(sender);
    let result = gather(&receiver, &children, rows, watch);
    for reader in readers {
        let _ = reader.join();
    }
    while let Ok(Some(_)) = process::reap() {}
    result
}

fn gather(
    receiver: &mpsc::Receiver<Result<Record, String>>,
    children: &[Pid],
    rows: &SharedRows,
    watch: &mut dyn FnMut(&SharedRows),
) -> Result<Record, LoadError> {
    let (mut all, mut stopped) = (Record::default(), false);
    let mut failure = None;
    loop {
        match receiver.recv_timeout(UPDATE) {
            Ok(Ok(record)) => all.add(record),
            Ok(Err(why)) => failure = failure.or(Some(why)),
            Err(RecvTimeoutError::Timeout) => watch(rows),
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if (lifecycle::phase() != Phase::Serving || failure.is_some()) && !stopped {
            stopped = true;
            children.iter().for_each(|child| process::send_signal(*child, Signal::Interrupt));
        }
    }
    failure.map_or(Ok(all), |why| Err(LoadError::Failed(why)))
}

/// Forks without other threads. A joined thread disappears from the process a moment later.
fn fork_without_threads() -> io::Result<Fork> {
    for _ in 0..50 {
        if process::threads()? == 1 {
            break;
        }
        thread::sleep(Duration::from_millis(2));
    }
    process::fork()
}

fn write_record(mut pipe: io::PipeWriter, result: &Result<Record, String>) -> io::Result<()> {
    let bytes = serde_json::to_vec(result).map_err(io::Error::other)?;
    pipe.write_all(&bytes)
}

fn read_record(mut pipe: io::PipeReader) -> Result<Record, String> {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes).map_err(|error| format!("cannot read the results of a process: {error}"))?;
    serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Err("a generator process ended before it sent its results".into()))
}
