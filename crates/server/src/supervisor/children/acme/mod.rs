//! The process that obtains and renews a certificate. It begins when workers serve, because they answer the challenges
//! of the authority, and it sends the supervisor a byte for each new certificate.

#[cfg(feature = "acme")]
mod client;

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenfold_sys::process::WaitStatus;
use tenfold_tls::certificates::facts::KeyId;
use tenfold_tls::challenges::{ChallengeBoard, MAX_BYTES};

use super::child::Child;
use crate::config::resolve::certificates::AcmeTask;
use crate::supervisor::generation::tickets::shared_bytes;

/// The longest pause before a process is replaced: each early end doubles it.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// A process that lived this long did not end early.
const LIVED: Duration = Duration::from_secs(60);

/// The process and the certificate that it obtains.
pub(crate) struct AcmeProcess {
    pub(crate) child: Child,
    task: Option<Arc<AcmeTask>>,
    /// From which workers read the responses to challenges.
    board: ChallengeBoard,
    /// A byte comes from it for each new certificate.
    news: Option<UnixStream>,
    /// The time at which a new certificate is taken up.
    pub(crate) take_up: Option<Instant>,
    /// The earliest time of the next one: the process decides how often it reports.
    pub(crate) not_before: Instant,
}

impl AcmeProcess {
    /// A process that has not started.
    pub(crate) fn new() -> Result<AcmeProcess, String> {
        let board = shared_bytes(MAX_BYTES)
            .map_err(|error| format!("cannot share responses to challenges: {error}"))?;
        let child = Child::new("process that obtains certificates", None, None)?;
        Ok(AcmeProcess {
            child: child.later(LIVED, LONGEST_PAUSE),
            task: None,
            board: ChallengeBoard::new(board),
            news: None,
            take_up: None,
            not_before: Instant::now(),
        })
    }

    /// The responses to challenges, for a worker.
    pub(crate) fn board(&self) -> ChallengeBoard {
        self.board.clone()
    }

    /// Obtains this certificate from now on, or none. The process of another one ends and loses nothing. With
    /// `is_missing` another process looks at the folder immediately, because the present one may sleep for an hour.
    pub(crate) fn follow(&mut self, task: Option<Arc<AcmeTask>>, is_missing: bool) {
        if self.task == task && !is_missing {
            return;
        }
        self.end();
        self.task = task;
        self.child.plan(self.task.is_some().then(Instant::now));
    }

    /// Ends the process, which may be interrupted at any point.
    pub(crate) fn end(&mut self) {
        (self.task, self.take_up, self.news) = (None, None, None);
        self.child.plan(None);
        self.child.kill();
    }

    /// Notes the end of the process, and plans the next start unless the end was `expected`.
    pub(crate) fn on_exit(&mut self, end: WaitStatus, expected: bool) {
        self.read_news();
        self.news = None;
        self.child.on_exit(end, expected);
    }

    /// The time of the next action.
    pub(crate) fn by(&self) -> Option<Instant> {
        [self.child.by(), self.take_up].into_iter().flatten().min()
    }

    /// The descriptor to wait for.
    pub(crate) fn news(&self) -> Option<BorrowedFd<'_>> {
        self.news.as_ref().filter(|_| self.take_up.is_none()).map(AsFd::as_fd)
    }

    /// Reads whether there is a new certificate.
    pub(crate) fn read_news(&mut self) {
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

    /// Starts the process if it is due. `known` are the keys of the certificates that workers have.
    pub(crate) fn advance(&mut self, known: impl FnOnce() -> Vec<KeyId>, forget: impl FnOnce()) {
        let Some(task) = self.task.clone().filter(|_| self.child.is_due()) else { return };
        let (known, board) = (known(), self.board.clone());
        let prepare = || {
            forget();
            client::prepare(&task)
        };
        let started = self
            .child
            .start(prepare, |child, folder, news| client::obtain(child, &task, folder, board, &known, news));
        let started = started.and_then(|news| news.set_nonblocking(true).map(|()| news));
        self.news = self.child.on_start(started);
    }
}

/// A build without the feature. No settings ask for the client.
#[cfg(not(feature = "acme"))]
mod client {
    use std::os::unix::net::UnixStream;

    use tenfold_tls::certificates::facts::KeyId;
    use tenfold_tls::challenges::ChallengeBoard;

    use crate::config::resolve::certificates::AcmeTask;
    use crate::supervisor::children::child::Child;

    const ABSENT: &str = "this build lacks the feature acme";

    pub(crate) fn prepare(_: &AcmeTask) -> Result<(), String> {
        Err(ABSENT.into())
    }

    pub(crate) fn obtain(
        _: &Child,
        _: &AcmeTask,
        (): (),
        _: ChallengeBoard,
        _: &[KeyId],
        _: UnixStream,
    ) -> Result<(), String> {
        Err(ABSENT.into())
    }
}
