//! A configuration and the processes that serve it.

mod advance;
pub(crate) mod all;
pub(crate) mod end_bound;
mod leave;
pub(crate) mod pages;
mod pulses;
pub(crate) mod reload;
mod retirement;
mod roots;
mod stuck;
pub(crate) mod tickets;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenfold_accounts::web::Web;
use tenfold_engine::Topology;
use tenfold_site::Remarks;
use tenfold_sys::file::Root;
use tenfold_sys::landlock;
use tenfold_sys::process::{self, Pid, WaitStatus};
use tenfold_sys::seccomp::REPORT_WORDS;
use tenfold_sys::shared::SharedRows;
use tenfold_sys::signal::Signal;
use tenfold_sys::user::SystemUser;

use crate::admission::Addresses;
use crate::config::resolve::ResolvedConfig;
use crate::config::resolve::certificates::RunningTls;
use crate::config::values::Settings;
use crate::diagnostics::{error, warning};
use crate::log::open;
use crate::log::open::Log;
use crate::sandbox;
use crate::status::counters::{self, Sums};
use crate::supervisor::book::Book;
use crate::supervisor::children::child::Restart;
use crate::supervisor::children::child::{CANNOT_SERVE, LIVED};
use crate::supervisor::children::signing::SigningProcess;
use crate::supervisor::generation::end_bound::EndBound;
use crate::supervisor::generation::pulses::Pulses;
use crate::supervisor::upgrade::former::FormerWorkers;
use crate::worker::shared::Gate;

/// The pauses before a worker that ended early is started again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A worker that cannot serve after this time is considered to hang.
const LATEST_START: Duration = Duration::from_secs(30);

/// The stage of a generation's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its workers are starting.
    Starting,
    /// All workers serve; one that dies is replaced.
    Serving,
    /// Another serves in its place; its connections end one by one.
    Retiring,
    /// The server leaves, or too many generations retire.
    Draining,
    /// Its start failed.
    Failed,
}

/// A configuration and the processes that serve it.
pub(crate) struct Generation {
    pub(crate) number: u32,
    pub(crate) stage: Stage,
    pub(crate) settings: Settings,
    pub(crate) config: ResolvedConfig,
    /// The folders of the site, of each host and of the manual; empty with `--null`.
    pub(crate) roots: Vec<Root>,
    /// The manual, if it is served.
    pub(crate) book: Option<Arc<Book>>,
    pub(crate) log: Log,
    pub(crate) rows: SharedRows,
    /// Opened when all workers can serve.
    pub(crate) gate: Gate,
    /// A row for each process, in which its sandbox reports.
    pub(crate) reports: SharedRows,
    /// The remarks that its workers have made.
    pub(crate) remarks: SharedRows,
    /// The table in which its processes count addresses; `None` if nothing is counted.
    pub(crate) addresses: Option<Arc<Addresses>>,
    /// The lane of its first process in the table of addresses.
    pub(crate) lane: usize,
    /// The pages of members, if there are members.
    pub(crate) web: Option<Arc<Web>>,
    /// The process that has its keys; `None`: workers have them, or there are none.
    pub(crate) signing: Option<SigningProcess>,
    /// The bound of its end, if too many configurations followed.
    pub(crate) ends: Option<EndBound>,
    pub(crate) pulses: Pulses,
    pub(crate) workers: Vec<WorkerPlace>,
}

/// The place of a worker process, and its present process.
pub(crate) struct WorkerPlace {
    pub(crate) pid: Option<Pid>,
    restart: Restart,
    restarts: u64,
    /// The time at which its process was killed because of a stuck loop.
    pub(crate) killed: Option<Instant>,
    /// The number of such processes.
    pub(crate) stuck: u64,
}

/// A worker for `tenfold status`.
pub(crate) struct WorkerView {
    /// The number of the worker process or thread, from 1; `None` for the thread that accepts for the others.
    pub(crate) worker: Option<usize>,
    pub(crate) pid: Option<Pid>,
    pub(crate) restarts: u64,
    /// Whether its loop has not turned for long.
    pub(crate) is_late: bool,
    pub(crate) sums: Sums,
}

impl Generation {
    /// Opens the files of a configuration.
    pub(crate) fn open(
        number: u32,
        settings: Settings,
        config: ResolvedConfig,
        user: Option<&SystemUser>,
        null: bool,
        former: Option<&Generation>,
    ) -> Result<Generation, String> {
        let (roots, log, book) = match null {
            true => (Vec::new(), Log::default(), None),
            false => {
                let (mut roots, log) = (open_roots(&settings)?, Log::open(&settings, user)?);
                let book = Book::of(&settings, former.and_then(|former| former.book.as_ref()))?;
                if let Some(book) = &book {
                    roots.push(Root::open(&book.root()).map_err(|error| error.to_string())?);
                }
                (roots, log, book)
            }
        };
        if sandbox::CONFINES && landlock::is_available() {
            open::weakness(&log).into_iter().for_each(|weakness| warning!("{weakness}"));
        }
        let has_members = !null && settings.members.accounts.is_some();
        let web = has_members.then(|| pages::load(&settings).map(Arc::new)).transpose()?;
        let words = if settings.admin.is_some() { counters::OBSERVED_WORDS } else { counters::WORDS };
        let rows = SharedRows::new(config.plan.counted_threads(), words)
            .map_err(|error| format!("cannot allocate memory for counters: {error}"))?;
        let reports = SharedRows::new(config.plan.processes(), REPORT_WORDS)
            .map_err(|error| format!("cannot allocate memory for reports: {error}"))?;
        let remarks = SharedRows::new(1, Remarks::WORDS)
            .map_err(|error| format!("cannot allocate memory for remarks: {error}"))?;
        let gate = Gate::new().map_err(|error| format!("cannot allocate memory for a gate: {error}"))?;
        let now = Instant::now();
        let place = || WorkerPlace {
            pid: None,
            restart: Restart::new(LIVED, FIRST_PAUSE, LONGEST_PAUSE, now),
            restarts: 0,
            killed: None,
            stuck: 0,
        };
        let workers = (0..config.plan.processes()).map(|_| place()).collect();
        let pulses = Pulses::new(rows.rows(), now);
        let (stage, addresses, lane) = (Stage::Starting, None, 0);
        Ok(Generation {
            number,
            stage,
            settings,
            config,
            roots,
            book,
            log,
            rows,
            gate,
            reports,
            remarks,
            addresses,
            lane,
            web,
            signing: None,
            ends: None,
            pulses,
            workers,
        })
    }

    /// Its certificates, with the files of their keys.
    pub(crate) fn running_tls(&self) -> Option<RunningTls> {
        let certificates = self.config.certificates.clone()?;
        let keys = self.signing.as_ref().map_or_else(Vec::new, |signing| signing.keys().to_vec());
        Some(RunningTls { certificates, keys })
    }

    /// The places that need a process now.
    pub(crate) fn missing(&self, now: Instant) -> Vec<usize> {
        if !matches!(self.stage, Stage::Starting | Stage::Serving) {
            return Vec::new();
        }
        let due = |worker: &WorkerPlace| worker.pid.is_none() && worker.restart.is_due(now);
        // The first worker starts before the others, so that a common failure is reported only once.
        let first_alone = self.stage == Stage::Starting && !counters::is_ready(self.rows.row(0));
        let places = if first_alone { 1 } else { self.workers.len() };
        (0..places).filter(|place| due(&self.workers[*place])).collect()
    }

    /// The time of the next start of a process.
    pub(crate) fn again(&self) -> Option<Instant> {
        match self.stage {
            Stage::Starting | Stage::Serving => {
                self.workers.iter().filter_map(|worker| worker.restart.by()).min()
            }
            Stage::Retiring | Stage::Draining | Stage::Failed => None,
        }
    }

    pub(crate) fn place_of(&self, pid: Pid) -> Option<usize> {
        self.workers.iter().position(|worker| worker.pid == Some(pid))
    }

    pub(crate) fn on_start(&mut self, place: usize, pid: Pid) {
        let worker = &mut self.workers[place];
        worker.pid = Some(pid);
        worker.restart.on_start(Instant::now());
    }

    /// The system could not start a process.
    pub(crate) fn on_failed_start(&mut self, place: usize) {
        match self.stage {
            Stage::Starting => self.fail(),
            _ => self.workers[place].restart.postpone(Instant::now()),
        }
    }

    /// Handles the end of the process at `place`; `expected` if it was asked to end.
    pub(crate) fn on_exit(&mut self, place: usize, end: WaitStatus, expected: bool) {
        let rows = self.rows_of(place);
        let worker = &mut self.workers[place];
        let Some(pid) = worker.pid.take() else { return };
        let is_stuck = worker.killed.take().is_some() && end == WaitStatus::Killed(9);
        rows.for_each(|row| counters::settle(self.rows.row(row)));
        if let Some(addresses) = &self.addresses {
            addresses.settle(self.lane + place);
        }
        let name = format!("worker {} (process {pid})", place + 1);
        let why = match sandbox::end_of(self.reports.row(place), end) {
            _ if is_stuck => "was killed by the supervisor, because it was stuck".to_owned(),
            why => why,
        };
        match self.stage {
            _ if expected => {
                if end != WaitStatus::Exited(0) && end != WaitStatus::Killed(9) {
                    warning!("{name} {why}");
                }
            }
            Stage::Starting => {
                if end != WaitStatus::Exited(CANNOT_SERVE) {
                    error!("{name} {why} before it served");
                }
                self.fail();
            }
            Stage::Serving => {
                worker.restarts += 1;
                let pause = worker.restart.on_exit(Instant::now());
                match pause.is_zero() {
                    true => warning!("{name} {why}; another takes its place"),
                    false => {
                        warning!("{name} {why}; another takes its place in {} ms", pause.as_millis() + 1)
                    }
                }
            }
            Stage::Retiring | Stage::Draining | Stage::Failed => {
                if end != WaitStatus::Exited(0) {
                    warning!("{name} {why} while it drained");
                }
            }
        }
    }

    /// The counter rows of the process at `place`.
    pub(crate) fn rows_of(&self, place: usize) -> std::ops::Range<usize> {
        match self.config.plan.topology {
            Topology::ReuseportProcesses => place..place + 1,
            _ => 0..self.rows.rows(),
        }
    }

    /// Whether all of its workers can serve.
    pub(crate) fn is_ready(&self) -> bool {
        let all_there = self.workers.iter().all(|worker| worker.pid.is_some());
        all_there && (0..self.rows.rows()).all(|row| counters::is_ready(self.rows.row(row)))
    }

    /// Whether a worker has not begun to serve in time.
    pub(crate) fn is_late(&self) -> bool {
        self.workers.iter().any(|worker| worker.pid.is_some() && worker.restart.age() > LATEST_START)
    }

    /// Whether it has ended. The signing process ends after the last worker.
    pub(crate) fn is_gone(&mut self) -> bool {
        matches!(self.stage, Stage::Retiring | Stage::Draining | Stage::Failed)
            && self.workers.iter().all(|worker| worker.pid.is_none())
            && self.signing.as_mut().is_none_or(SigningProcess::end)
    }

    /// Ends the generation because its start failed.
    pub(crate) fn fail(&mut self) {
        self.stage = Stage::Failed;
        self.signal(Signal::Interrupt);
    }

    /// Ends the generation because a worker hangs. Kills that worker, which follows no other signal.
    pub(crate) fn fail_late(&mut self) {
        self.fail();
        for (place, worker) in self.workers.iter().enumerate() {
            let serves = self.rows_of(place).all(|row| counters::is_ready(self.rows.row(row)));
            if let Some(pid) = worker.pid.filter(|_| !serves) {
                process::send_signal(pid, Signal::Kill);
            }
        }
    }

    /// Retires its workers, because another generation serves. Idle connections stay open until their next response or
    /// their deadline: a request may be on its way.
    pub(crate) fn retire(&mut self) {
        if matches!(self.stage, Stage::Starting | Stage::Serving) {
            self.stage = Stage::Retiring;
            self.signal(Signal::Retire);
        }
    }

    /// Lets its workers finish their work, close idle connections, and end.
    pub(crate) fn drain(&mut self) {
        if matches!(self.stage, Stage::Starting | Stage::Serving | Stage::Retiring) {
            self.stage = Stage::Draining;
            self.signal(Signal::Quit);
        }
    }

    /// Sends a signal to all of its processes.
    pub(crate) fn signal(&self, signal: Signal) {
        self.workers.iter().filter_map(|worker| worker.pid).for_each(|pid| process::send_signal(pid, signal));
    }

    /// Its processes, for another program in this one.
    pub(crate) fn to_former(&self) -> FormerWorkers {
        let number = |pid: Pid| pid.as_raw_nonzero().get();
        FormerWorkers {
            workers: self.workers.iter().filter_map(|worker| worker.pid).map(number).collect(),
            helpers: self.signing.iter().filter_map(|signing| signing.child.pid()).map(number).collect(),
            ends: None,
        }
    }

    /// The number of workers that replaced a dead one.
    pub(crate) fn restarts(&self) -> u64 {
        self.workers.iter().map(|worker| worker.restarts).sum()
    }

    /// Returns its workers and their counters.
    pub(crate) fn seen(&self) -> Vec<WorkerView> {
        let apart = self.config.plan.topology == Topology::ReuseportProcesses;
        // The accepting thread, if there is one, comes first.
        let first = self.rows.rows() - self.config.plan.workers.min(self.rows.rows());
        (0..self.rows.rows())
            .map(|place| {
                let worker = &self.workers[if apart { place } else { 0 }];
                let mut sums = Sums::default();
                sums.add(self.rows.row(place));
                let number = (place >= first).then(|| place - first + 1);
                let is_late = self.pulses.is_late(place, Instant::now());
                WorkerView { worker: number, pid: worker.pid, restarts: worker.restarts, is_late, sums }
            })
            .collect()
    }

    /// Returns its final counters, with all connections ended.
    pub(crate) fn sums_without_connections(&self) -> Sums {
        let mut sums = Sums::default();
        for row in 0..self.rows.rows() {
            counters::settle(self.rows.row(row));
            sums.add(self.rows.row(row));
        }
        sums
    }
}

impl Generation {
    /// The roots whose names are checked. A name on a network file system is not checked, because the call waits for the
    /// other machine. The folder of the manual has no other name.
    pub(crate) fn named_roots(&self) -> impl Iterator<Item = &Root> {
        let sites = self.roots.len() - usize::from(self.book.is_some());
        self.roots[..sites].iter().filter(|root| !root.is_remote())
    }

    /// Whether there is a root whose name is checked.
    pub(crate) fn follows_names(&self) -> bool {
        self.named_roots().next().is_some()
    }
}

/// The folder of the site, and that of each host.
pub(crate) fn open_roots(settings: &Settings) -> Result<Vec<Root>, String> {
    let of_hosts = settings.hosts.iter().map(|host| host.root.as_ref().unwrap_or(&settings.root));
    let all = std::iter::once(&settings.root).chain(of_hosts);
    all.map(|path| Root::open(path).map_err(|error| error.to_string())).collect()
}
