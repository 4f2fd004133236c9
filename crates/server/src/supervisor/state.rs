//! The state of the supervisor, and the report that is made of it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

use tenfold_sys::process::Pid;
use tenfold_sys::signal::Signals;
use tenfold_sys::socket::ListenAddress;
use tenfold_sys::user::SystemUser;

use super::accounts::AccountsProcess;
use super::acme::AcmeProcess;
use super::address_rows::AddressRows;
use super::admin::AdminProcess;
use super::archive::job::Archive;
use super::control::ControlSocket;
use super::generation::{Generation, Stage};
use super::notify::ServiceManager;
use super::rotate::Rotation;
use super::signing::SigningProcess;
use super::sockets::Sockets;
use super::tickets::TicketRotation;
use super::upgrade::Upgrades;
use crate::config::parse::given::GivenSettings;
use crate::status::counters::{Counter, Sums};
use crate::status::numbers::Numbers;
use crate::status::report::{ReloadCounts, StatusReport, WorkerReport};
use crate::worker::null::NullResponse;

/// The command line of `tenfold serve`.
#[derive(Clone, Debug)]
pub(crate) struct Serve {
    pub(crate) given: GivenSettings,
    pub(crate) null: Option<NullResponse>,
    /// Whether the start shows a QR code.
    pub(crate) qr: bool,
}

/// The state of the supervisor.
pub(crate) struct Supervisor {
    pub(super) serve: Serve,
    /// The accounts process, if there are members.
    pub(super) accounts: Option<AccountsProcess>,
    pub(super) acme: AcmeProcess,
    pub(super) sockets: Sockets,
    pub(super) addresses: Vec<ListenAddress>,
    pub(super) user: Option<SystemUser>,
    pub(super) descriptors: u64,
    /// None in a worker only.
    pub(super) signals: Option<Signals>,
    pub(super) control: Option<ControlSocket>,
    /// The admin listener, if there is one.
    pub(super) admin: Option<AdminProcess>,
    pub(super) began: Instant,
    /// In the order of their starts; the last one serves or is starting.
    pub(super) generations: Vec<Generation>,
    /// The number of generations so far.
    pub(super) count: u32,
    pub(super) address_rows: AddressRows,
    /// The counters of generations that have ended.
    pub(super) past: Sums,
    /// Their restarts.
    pub(super) past_restarts: u64,
    /// Their workers that were stuck.
    pub(super) past_stuck: u64,
    pub(super) reloads: ReloadCounts,
    pub(super) leaving: Option<Leaving>,
    /// The time at which the listening sockets are shut down.
    pub(super) sockets_end: Option<Instant>,
    pub(super) reload_asked: bool,
    pub(super) rotation: Rotation,
    pub(super) upgrades: Upgrades,
    pub(super) archive: Archive,
    pub(super) root_looks: RootLooks,
    /// None in a worker only.
    pub(super) tickets: Option<TicketRotation>,
    pub(super) failed: bool,
    pub(super) manager: ServiceManager,
}

/// The stage of leaving.
pub(super) enum Leaving {
    /// Workers finish their work, until this time at the latest.
    Draining { by: Option<Instant> },
    /// Workers were asked to stop, and are killed at this time.
    Stopping { by: Instant },
    /// Workers were killed.
    Killed,
}

impl Leaving {
    /// The time of the next step.
    pub(super) fn by(&self) -> Option<Instant> {
        match self {
            Leaving::Draining { by } => *by,
            Leaving::Stopping { by } => Some(*by),
            Leaving::Killed => None,
        }
    }
}

impl Supervisor {
    /// The report; `admin` is the number of calls that the sandbox of an admin process has refused, if there is one.
    pub(super) fn report(&self, admin: Option<u64>) -> StatusReport {
        let mut total = self.past.clone();
        let mut workers = Vec::new();
        for generation in &self.generations {
            for seen in generation.seen() {
                total.add_sums(&seen.sums);
                workers.push(WorkerReport {
                    worker: seen.worker,
                    generation: generation.number,
                    process: seen.pid.map(|pid| pid.as_raw_nonzero().get()),
                    state: match (generation.stage, seen.pid) {
                        (_, Some(_)) if seen.is_late => "stuck",
                        (Stage::Serving, None) => "restarting",
                        (Stage::Starting, _) => "starting",
                        (Stage::Serving, _) => "serving",
                        (Stage::Retiring | Stage::Draining, _) => "draining",
                        (Stage::Failed, _) => "failed",
                    }
                    .to_owned(),
                    restarts: seen.restarts,
                    memory: seen.pid.and_then(memory_of),
                    share: None,
                    numbers: Numbers::of(&seen.sums),
                });
            }
        }
        let requests: f64 = workers.iter().map(|worker| worker.numbers.requests as f64).sum();
        for worker in workers.iter_mut().filter(|worker| worker.worker.is_some() && requests > 0.0) {
            worker.share = Some(worker.numbers.requests as f64 / requests);
        }
        let observed = admin.map(|_| total.observed());
        let mut total = Numbers::of(&total);
        let mut signing = self.generations.iter().filter_map(|generation| generation.signing.as_ref());
        let by_signing: u64 = signing.clone().map(SigningProcess::refused_calls).sum();
        let accounts = self.accounts.as_ref().map_or(0, AccountsProcess::refused_calls);
        let others = [self.acme.refused_calls(), admin.unwrap_or(0), by_signing];
        let refused = others.into_iter().fold(accounts, u64::saturating_add);
        total.refused_calls = total.refused_calls.saturating_add(refused);
        let serves = |generation: &Generation| generation.stage == Stage::Serving;
        let is_stuck = |generation: &Generation| generation.seen().iter().any(|worker| worker.is_late);
        let is_served = self.generations.iter().any(|generation| serves(generation) && !is_stuck(generation));
        let plan = self.generations.last().map(|newest| &newest.config.plan);
        StatusReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            process: std::process::id(),
            uptime_seconds: self.began.elapsed().as_secs(),
            generation: self.count,
            draining: self.leaving.is_some(),
            ready: self.leaving.is_none() && is_served,
            stuck: self.past_stuck + self.generations.iter().map(Generation::stuck).sum::<u64>(),
            reloads: self.reloads,
            upgrades: self.upgrades.counts.clone(),
            restarts: self.past_restarts + self.generations.iter().map(Generation::restarts).sum::<u64>(),
            listen: self.addresses.iter().map(ListenAddress::to_string).collect(),
            engine: plan.map(|plan| plan.engine.to_string()).unwrap_or_default(),
            topology: plan.map(|plan| plan.topology.to_string()).unwrap_or_default(),
            send: plan.map(|plan| plan.sender.to_string()).unwrap_or_default(),
            accounts: self.accounts.as_ref().map(AccountsProcess::seen),
            observed,
            signing: signing.next_back().map(SigningProcess::seen),
            total,
            workers,
        }
    }

    /// Lines written since the start of the server.
    pub(super) fn lines(&self) -> u64 {
        let mut sums = self.past.clone();
        self.generations
            .iter()
            .flat_map(|generation| generation.seen())
            .for_each(|seen| sums.add_sums(&seen.sums));
        Sums::of(&sums, Counter::Lines)
    }
}

/// The memory that a process occupies, in bytes (`man 5 proc_pid_status`).
fn memory_of(pid: Pid) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// The looks at the names of the roots.
#[derive(Default)]
pub(super) struct RootLooks {
    /// The time of the next look.
    pub(super) next: Option<Instant>,
    /// Consecutive attempts to serve new folders that failed.
    pub(super) failures: u32,
    /// The roots that were reported as missing.
    pub(super) missing: BTreeSet<PathBuf>,
}
