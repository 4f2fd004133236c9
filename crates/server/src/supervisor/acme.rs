//! The process that obtains and renews a certificate, as the supervisor sees it: it begins when workers serve, which
//! answer the challenges of the authority, and it tells the supervisor of each new certificate.

#[cfg_attr(not(feature = "acme"), path = "acme/absent.rs")]
mod client;
mod task;

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tenfold_sys::process::{self, Fork, Pid, WaitStatus};
use tenfold_sys::seccomp::REPORT_WORDS;
use tenfold_sys::shared::SharedRows;
use tenfold_tls::certificates::facts::KeyId;
use tenfold_tls::challenges::{ChallengeBoard, MAX_BYTES};

use super::forked;
use super::tickets::shared_bytes;
use crate::config::parse::units::shown_duration;
use crate::config::resolve::certificates::AcmeTask;
use crate::diagnostics::{debug, warning};
use crate::sandbox;
use task::ClientTask;

/// The pause before a process that ended is replaced, and before a certificate is taken up that could not be.
pub(super) const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause before a process is replaced: each end soon after the start doubles it.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// A process that lived this long and ended is replaced after the shortest pause.
const LIVED: Duration = Duration::from_secs(60);

/// The process, as the supervisor knows it.
pub(super) struct AcmeProcess {
    /// None in other processes.
    memory: Option<AcmeMemory>,
    /// The certificate that it obtains.
    task: Option<Arc<AcmeTask>>,
    pub(super) pid: Option<Pid>,
    began: Instant,
    /// Ends in a row, each soon after the start.
    failures: u32,
    /// When it is started.
    pub(super) again: Option<Instant>,
    /// A byte comes from it for each new certificate.
    news: Option<UnixStream>,
    /// When a new certificate is taken up.
    pub(super) take_up: Option<Instant>,
    /// The earliest time of the next one: this process decides how often it reports.
    pub(super) not_before: Instant,
}

/// The memory that it shares.
#[derive(Clone)]
struct AcmeMemory {
    /// From which workers read the responses to challenges.
    board: ChallengeBoard,
    /// In which its sandbox reports: the call that ended it, and how many were refused.
    reports: Arc<SharedRows>,
}

impl AcmeProcess {
    /// A client that has not started.
    ///
    /// # Errors
    /// There is no memory.
    pub(super) fn new() -> Result<AcmeProcess, String> {
        let failed = |error| format!("cannot share responses to challenges: {error}");
        let board = ChallengeBoard::new(shared_bytes(MAX_BYTES).map_err(failed)?);
        let reports = Arc::new(SharedRows::new(2, REPORT_WORDS).map_err(failed)?);
        let memory = Some(AcmeMemory { board, reports });
        let (began, not_before, failures) = (Instant::now(), Instant::now(), 0);
        let (task, pid, again, news, take_up) = Default::default();
        Ok(AcmeProcess { memory, task, pid, began, failures, again, news, take_up, not_before })
    }

    /// Returns the place of the responses to challenges, for a worker.
    pub(super) fn board(&self) -> Option<ChallengeBoard> {
        self.memory.as_ref().map(|memory| memory.board.clone())
    }

    /// Obtains this certificate from now on, or none. The process of another one ends: it goes on where it was. With
    /// `is_missing` another process looks at the folder immediately, because the present one may sleep for an hour.
    pub(super) fn follow(&mut self, task: Option<Arc<AcmeTask>>, is_missing: bool) {
        if self.task == task && !is_missing {
            return;
        }
        self.end();
        self.task = task;
        self.again = self.task.is_some().then(Instant::now);
    }

    /// Ends the process, which may be interrupted at any point.
    pub(super) fn end(&mut self) {
        (self.task, self.again, self.take_up, self.news) = (None, None, None, None);
        process::end_children(self.pid.take());
    }

    /// System calls that the sandbox has refused in this and former processes.
    pub(super) fn refused_calls(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.reports.row(1)[0].load(Ordering::Relaxed))
    }

    pub(super) fn is(&self, pid: Pid) -> bool {
        self.pid == Some(pid)
    }

    pub(super) fn lost(&mut self, end: WaitStatus) {
        self.hear();
        (self.pid, self.news) = (None, None);
        let Some(memory) = &self.memory else { return };
        let why = sandbox::end_of(memory.reports.row(0), end);
        self.failures = if self.began.elapsed() >= LIVED { 0 } else { self.failures.saturating_add(1) };
        let pause = PAUSE.saturating_mul(1 << self.failures.saturating_sub(1).min(12)).min(LONGEST_PAUSE);
        warning!(
            "the process that obtains certificates {why}; another takes its place in {}",
            shown_duration(pause)
        );
        self.again = Some(Instant::now() + pause);
    }

    /// When there is something to do.
    pub(super) fn by(&self) -> Option<Instant> {
        let again = self.again.filter(|_| self.pid.is_none());
        [again, self.take_up].into_iter().flatten().min()
    }

    /// The descriptor to wait for.
    pub(super) fn news(&self) -> Option<BorrowedFd<'_>> {
        self.news.as_ref().filter(|_| self.take_up.is_none()).map(AsFd::as_fd)
    }

    /// Closes what is the supervisor's alone, in another process. One that could write responses to challenges could
    /// obtain certificates.
    pub(super) fn forget(&mut self) {
        (self.news, self.memory) = (None, None);
    }

    /// Reads whether there is a new certificate.
    pub(super) fn hear(&mut self) {
        let Some(news) = &mut self.news else { return };
        match news.read(&mut [0; 64]) {
            Ok(0) => self.news = None,
            Ok(_) => {
                let not_before = self.not_before;
                self.take_up.get_or_insert_with(|| Instant::now().max(not_before));
            }
            Err(_) => {}
        }
    }

    /// Makes the process. Returns its work in it, and `None` in the supervisor.
    pub(super) fn fork(&mut self, known: Vec<KeyId>) -> io::Result<Option<impl FnOnce() + use<>>> {
        let (Some(task), Some(memory)) = (self.task.clone(), self.memory.clone()) else { return Ok(None) };
        let supervisor = process::own();
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        match process::fork()? {
            Fork::Parent(pid) => {
                debug!("certificates are obtained by process {pid}");
                (self.pid, self.news, self.again) = (Some(pid), Some(ours), None);
                self.began = Instant::now();
                Ok(None)
            }
            Fork::Child => {
                let (AcmeMemory { board, reports }, news) = (memory, theirs);
                // Used until this process ends.
                let reports: &'static Arc<SharedRows> = Box::leak(Box::new(reports));
                Ok(Some(move || {
                    let work = ClientTask { task: &task, board, reports, known, news, supervisor };
                    forked::end_with("cannot obtain certificates", || client::obtain(work))
                }))
            }
        }
    }
}
