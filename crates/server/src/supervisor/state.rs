//! The state of the supervisor, and its report.

use std::collections::BTreeSet;
use std::time::Instant;

use tenfold_sys::process::Pid;
use tenfold_sys::signal::Signals;
use tenfold_sys::socket::ListenAddress;
use tenfold_sys::user::SystemUser;

use super::children::Children;
use super::generation::all::Generations;
use super::generation::tickets::TicketRotation;
use super::generation::{Generation, Stage};
use super::log::rotation::LogFiles;
use super::sockets::control::ControlSocket;
use super::sockets::listeners::Sockets;
use super::sockets::notify::ServiceManager;
use super::upgrade::Upgrades;
use crate::config::parse::given::GivenSettings;
use crate::diagnostics;
use crate::status::report::{CertificateReport, DiagnosticsReport, Numbers, StatusReport, WorkerReport};
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
    pub(crate) serve: Serve,
    /// The user of the workers, if the server was started as root.
    pub(crate) user: Option<SystemUser>,
    /// The limit of open files.
    pub(crate) descriptors: u64,
    pub(crate) began: Instant,
    /// None in a child.
    pub(crate) signals: Option<Signals>,
    pub(crate) sockets: Sockets,
    pub(crate) control: Option<ControlSocket>,
    pub(crate) manager: ServiceManager,
    pub(crate) children: Children,
    pub(crate) generations: Generations,
    pub(crate) upgrades: Upgrades,
    pub(crate) log: LogFiles,
    /// None in a child.
    pub(crate) tickets: Option<TicketRotation>,
    pub(crate) leaving: Option<Leaving>,
    pub(crate) failed: bool,
}

/// The stage of leaving.
pub(crate) enum Leaving {
    /// Workers finish their work, until this time at the latest.
    Draining { by: Option<Instant> },
    /// Workers were asked to stop, and are killed at this time.
    Stopping { by: Instant },
    /// Workers were killed.
    Killed,
}

impl Leaving {
    /// The time of the next step.
    pub(crate) fn by(&self) -> Option<Instant> {
        match self {
            Leaving::Draining { by } => *by,
            Leaving::Stopping { by } => Some(*by),
            Leaving::Killed => None,
        }
    }
}

impl Supervisor {
    /// The report of `tenfold status`.
    pub(crate) fn report(&self) -> StatusReport {
        let mut total = self.generations.past_sums();
        let mut workers = Vec::new();
        for generation in &self.generations.all {
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
        let observed = self.children.admin.as_ref().map(|_| total.observed());
        let mut total = Numbers::of(&total);
        let mut signing = self.generations.all.iter().filter_map(|generation| generation.signing.as_ref());
        let by_signing: u64 = signing.clone().map(|signing| signing.child.refused_calls()).sum();
        let refused = self.children.refused_calls().saturating_add(by_signing);
        total.refused_calls = total.refused_calls.saturating_add(refused);
        let serves = |generation: &Generation| generation.stage == Stage::Serving;
        let is_stuck = |generation: &Generation| generation.seen().iter().any(|worker| worker.is_late);
        let is_served =
            self.generations.all.iter().any(|generation| serves(generation) && !is_stuck(generation));
        let newest = self.generations.all.last();
        let plan = newest.map(|newest| &newest.config.plan);
        let hosts = newest.into_iter().flat_map(|newest| &newest.settings.hosts).flat_map(|host| &host.names);
        StatusReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            process: std::process::id(),
            uptime_seconds: self.began.elapsed().as_secs(),
            generation: self.generations.count,
            draining: self.leaving.is_some(),
            ready: self.leaving.is_none() && is_served,
            stuck: self.generations.stuck(),
            reloads: self.generations.reloads.clone(),
            upgrades: self.upgrades.counts.clone(),
            restarts: self.generations.restarts(),
            listen: self.sockets.addresses().iter().map(ListenAddress::to_string).collect(),
            engine: plan.map(|plan| plan.engine.to_string()).unwrap_or_default(),
            topology: plan.map(|plan| plan.topology.to_string()).unwrap_or_default(),
            send: plan.map(|plan| plan.sender.to_string()).unwrap_or_default(),
            accounts: self.children.accounts.as_ref().map(|accounts| accounts.child.report()),
            observed,
            signing: signing.next_back().map(|signing| signing.child.report()),
            certificates: newest.map(certificates).unwrap_or_default(),
            hosts: hosts.map(|name| name.as_str().to_owned()).collect(),
            diagnostics: diagnostics::latest().map(DiagnosticsReport::of).unwrap_or_default(),
            total,
            workers,
        }
    }
}

/// The certificates of a generation, in the order of their ends, with different first names.
fn certificates(generation: &Generation) -> Vec<CertificateReport> {
    let pairs = generation.config.certificates.iter().flat_map(|certificates| &certificates.pairs);
    let mut all: Vec<_> = pairs.map(|pair| CertificateReport::of(pair.chain.facts())).collect();
    all.sort_by_key(|certificate| certificate.expires_unix_seconds);
    let mut names = BTreeSet::new();
    all.retain(|certificate| names.insert(certificate.name().to_owned()));
    all
}

/// The memory that a process occupies, in bytes (`man 5 proc_pid_status`).
fn memory_of(pid: Pid) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
