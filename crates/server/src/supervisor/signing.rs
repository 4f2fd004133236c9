//! The process that has the keys of certificates, as the supervisor sees it: one for each generation, begun before its
//! workers, replaced when it dies, and killed when no worker is left. The supervisor opens the files of keys and never
//! reads them.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use tenfold_engine::{Engine, Plan};
use tenfold_sys::lifecycle::{self, Phase, PhaseWatch};
use tenfold_sys::messages;
use tenfold_sys::process::{self, Fork, Pid, WaitStatus};
use tenfold_sys::seccomp::REPORT_WORDS;
use tenfold_sys::shared::SharedRows;
use tenfold_sys::signal::Signal;
use tenfold_sys::user::SystemUser;
use tenfold_sys::wait;
use tenfold_tls::certificates::files::KeyFile;
use tenfold_tls::signing::keys::{HeldKeys, tell_lost};
use tenfold_tls::signing::remote::{AnswerPath, SigningClient};

use super::forked;
use super::heartbeat::{HeartbeatBounds, HeartbeatWatch};
use super::privileges;
use crate::config::resolve::ResolvedConfig;
use crate::config::values::Settings;
use crate::diagnostics::{debug, error, warning};
use crate::sandbox;
use crate::sandbox::apart::read_to_end;
use crate::status::report::SigningReport;

/// The time in which a process must have read its keys.
const LATEST_START: Duration = Duration::from_secs(30);
/// The most bytes of its first report.
const LONGEST_START: usize = 64 * 1024;
const READY: &str = "ready";
/// A process that lived this long and died is replaced immediately, and so is the first one that did not.
const LIVED: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_secs(1);
/// The time in which a signature must come if its wait delays one connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time if it delays a loop. A handshake that has waited in vain waits without the loop. A process that was stopped
/// costs this time once, and again while its successor starts.
const PATIENCE_OF_LOOP: Duration = Duration::from_millis(50);

/// The interval of heartbeats, by the main thread.
const BEAT: Duration = Duration::from_secs(1);
/// Handshakes wait for a process that was stopped, so it is replaced sooner than clients give up.
const HEARTBEAT: HeartbeatBounds =
    HeartbeatBounds { latest_start: LATEST_START, look: Duration::from_millis(1500), looks: 2 };

/// Places in the second row of the reports.
const REFUSED: usize = 0;
const BEATS: usize = 1;

/// The pair of sockets between a worker and the process.
struct SigningPair {
    worker: UnixDatagram,
    signer: UnixDatagram,
}

/// The signing process of a generation.
pub(super) struct SigningProcess {
    keys: Vec<KeyFile>,
    /// Its user, if the server was started as root.
    user: Option<SystemUser>,
    /// By the place of the worker. Both ends stay open, so that a successor serves the same workers.
    places: Vec<Vec<SigningPair>>,
    path: AnswerPath,
    /// The call that ended it; then the number of refused ones, and the heartbeats.
    reports: Arc<SharedRows>,
    sandbox: bool,
    pid: Option<Pid>,
    began: Instant,
    again: Option<Instant>,
    watch: HeartbeatWatch,
    replaced: u64,
    /// Consecutive early deaths.
    failures: u32,
    /// Whether the generation has ended.
    ending: bool,
}

/// The ends of one worker.
pub(super) struct WorkerEnds {
    sockets: Vec<UnixDatagram>,
    path: AnswerPath,
}

impl WorkerEnds {
    /// Returns the client of a worker with this plan.
    ///
    /// # Errors
    /// The system refuses timeouts or random bytes.
    pub(super) fn client(self, plan: &Plan) -> Result<Arc<SigningClient>, String> {
        let patience = if plan.blocking() { PATIENCE } else { PATIENCE_OF_LOOP };
        SigningClient::new(self.sockets, patience, self.path)
            .map_err(|error| format!("cannot connect to the signing process: {error}"))
    }
}

impl SigningProcess {
    /// Begins the process of a configuration and waits until it has read the keys; `None` if there are none for it.
    /// `forget` drops in it the resources of the supervisor.
    ///
    /// # Errors
    /// A message about the system, or about a key.
    pub(super) fn begin(
        settings: &Settings,
        config: &mut ResolvedConfig,
        workers: Option<&SystemUser>,
        forget: impl FnOnce(),
    ) -> Result<Option<SigningProcess>, String> {
        let Some(keys) = config.keys.take() else {
            let pairs = config.certificates.as_ref().map_or(0, |certificates| certificates.pairs.len());
            return match settings.tls_key_isolation && pairs > 0 {
                true => Err("the files of the keys are no longer open; reload the configuration".into()),
                false => Ok(None),
            };
        };
        let keys = Arc::into_inner(keys).ok_or("another configuration has the files of the keys")?;
        let user = workers.map(privileges::signing_user).transpose()?;
        let failed = |error: io::Error| format!("cannot start the signing process: {error}");
        let reports = SharedRows::new(2, REPORT_WORDS).map_err(failed)?;
        let mut signing = SigningProcess {
            keys,
            user,
            places: pairs(&config.plan).map_err(failed)?,
            path: if config.plan.engine == Engine::Fork { AnswerPath::Stream } else { AnswerPath::Pair },
            reports: Arc::new(reports),
            sandbox: settings.sandbox,
            pid: None,
            began: Instant::now(),
            again: None,
            watch: HeartbeatWatch::new(HEARTBEAT, Instant::now()),
            replaced: 0,
            failures: 0,
            ending: false,
        };
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        signing.fork(theirs, forget).map_err(failed)?;
        let heard = read_to_end(&ours, LONGEST_START, Instant::now() + LATEST_START);
        match heard.as_deref().map(String::from_utf8_lossy).as_deref() {
            Ok(READY) => Ok(Some(signing)),
            Ok("") => Err("the signing process ended before it read the keys".into()),
            Ok(why) => Err(why.to_owned()),
            Err(_) => {
                signing.end();
                Err(format!("the signing process does not read the keys within {LATEST_START:?}"))
            }
        }
    }

    /// Makes the process; `forget` drops in it what is the supervisor's alone.
    pub(super) fn fork(&mut self, ready: UnixStream, forget: impl FnOnce()) -> io::Result<()> {
        let supervisor = process::own();
        self.reports.row(1)[BEATS].store(0, Ordering::Relaxed);
        match process::fork()? {
            Fork::Parent(pid) => {
                debug!("the keys are in process {pid}");
                let now = Instant::now();
                (self.pid, self.began, self.again) = (Some(pid), now, None);
                self.watch = HeartbeatWatch::new(HEARTBEAT, now);
                Ok(())
            }
            Fork::Child => {
                forget();
                forked::end_with("signing process", || self.serve(supervisor, ready))
            }
        }
    }

    /// Reads the keys, reports to `ready` that it has them, and signs until a signal ends it.
    fn serve(&mut self, supervisor: Pid, mut ready: UnixStream) -> Result<(), String> {
        if !privileges::give_up(self.user.as_ref(), supervisor)? {
            return Err("the supervisor is gone".into());
        }
        if self.sandbox {
            // Used until this process ends.
            let reports: &'static Arc<SharedRows> = Box::leak(Box::new(self.reports.clone()));
            let (name, refused) = ("signing process".to_owned(), &reports.row(1)[REFUSED]);
            sandbox::confine_signing(sandbox::Process { name, row: reports.row(0), refused })?;
        }
        let sockets = self.places.drain(..).flatten().map(|pair| pair.signer);
        let started = read(&std::mem::take(&mut self.keys)).and_then(|keys| start(&Arc::new(keys), sockets));
        let said = started.as_ref().map_or_else(|why| why.as_str(), |()| READY);
        let heard = ready.write_all(said.as_bytes());
        drop(ready);
        match (started, heard) {
            (Ok(()), _) => {}
            // The supervisor reports it.
            (Err(_), Ok(())) => return Err(String::new()),
            (Err(why), Err(_)) => return Err(why),
        }
        let watch = PhaseWatch::new().map_err(|error| format!("cannot watch for signals: {error}"))?;
        // Workers that drain still shake hands; the supervisor kills this process when they are gone.
        while lifecycle::phase() != Phase::Stopping {
            watch.event().clear();
            self.reports.row(1)[BEATS].fetch_add(1, Ordering::Relaxed);
            let _ = wait::for_input(&[watch.event().as_fd()], Some(BEAT));
        }
        Ok(())
    }

    /// Takes the ends of one worker; all others are closed, and so are the files of keys.
    pub(super) fn into_ends(mut self, place: usize) -> WorkerEnds {
        let pairs = self.places.swap_remove(place);
        WorkerEnds { sockets: pairs.into_iter().map(|pair| pair.worker).collect(), path: self.path }
    }

    /// The files of its keys.
    pub(super) fn keys(&self) -> &[KeyFile] {
        &self.keys
    }

    /// Its user, if the server was started as root.
    pub(super) fn user(&self) -> Option<&SystemUser> {
        self.user.as_ref()
    }

    /// The process's part of `tenfold status`.
    pub(super) fn seen(&self) -> SigningReport {
        SigningReport { process: self.pid.map(|pid| pid.as_raw_nonzero().get()), replaced: self.replaced }
    }

    /// System calls that the sandbox has refused.
    pub(super) fn refused_calls(&self) -> u64 {
        self.reports.row(1)[REFUSED].load(Ordering::Relaxed)
    }

    pub(super) fn pid(&self) -> Option<Pid> {
        self.pid
    }

    pub(super) fn is(&self, pid: Pid) -> bool {
        self.pid == Some(pid)
    }

    /// The time of the next start.
    pub(super) fn again(&self) -> Option<Instant> {
        self.again
    }

    /// The time of the next action for the process.
    pub(super) fn by(&self) -> Option<Instant> {
        self.again.or(self.pid.map(|_| self.watch.by()))
    }

    /// Kills the process if it sends no heartbeat. A successor replaces it after its end.
    pub(super) fn look_after(&mut self, now: Instant) {
        let Some(pid) = self.pid else { return };
        if self.watch.hangs(self.reports.row(1)[BEATS].load(Ordering::Relaxed), now) {
            warning!("the signing process (process {pid}) hangs and is killed");
            process::send_signal(pid, Signal::Kill);
        }
    }

    /// Delays the next start, because the system could not start a process.
    pub(super) fn postpone(&mut self) {
        self.again = Some(Instant::now() + PAUSE);
    }

    /// The process has ended: handshakes that wait for it begin again, and another process takes its place.
    pub(super) fn lost(&mut self, end: WaitStatus, expected: bool) {
        self.pid = None;
        if expected || self.ending {
            return;
        }
        let why = sandbox::end_of(self.reports.row(0), end);
        warning!("the signing process {why}; another takes its place");
        self.places.iter().flatten().for_each(|pair| tell_lost(&pair.signer));
        self.failures = if self.began.elapsed() >= LIVED { 0 } else { self.failures + 1 };
        let pause = if self.failures > 1 { PAUSE } else { Duration::ZERO };
        self.again = Some(Instant::now() + pause);
        self.replaced += 1;
    }

    /// Kills the process, which has nothing to save. Returns whether it is gone.
    pub(super) fn end(&mut self) -> bool {
        if !self.ending {
            (self.ending, self.again) = (true, None);
            self.places.clear();
            if let Some(pid) = self.pid {
                process::send_signal(pid, Signal::Kill);
            }
        }
        self.pid.is_none()
    }
}

/// One pair for each worker process. The threads or processes of a single one share as many as there are processors.
fn pairs(plan: &Plan) -> io::Result<Vec<Vec<SigningPair>>> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let each = if plan.processes() > 1 { 1 } else { processors };
    let pair = || {
        let (worker, signer) = messages::pair()?;
        Ok(SigningPair { worker: worker.into(), signer: signer.into() })
    };
    (0..plan.processes()).map(|_| (0..each).map(|_| pair()).collect()).collect()
}

fn read(files: &[KeyFile]) -> Result<HeldKeys, String> {
    let keys: Result<Vec<_>, _> = files.iter().map(KeyFile::read).collect();
    keys.map(HeldKeys::new).map_err(|finding| finding.to_string())
}

/// Starts a thread for each socket. If one of them cannot go on, the process ends and is replaced.
fn start(keys: &Arc<HeldKeys>, sockets: impl Iterator<Item = UnixDatagram>) -> Result<(), String> {
    for (number, socket) in sockets.enumerate() {
        let keys = Arc::clone(keys);
        let serve = move || match catch_unwind(AssertUnwindSafe(|| keys.serve(&socket))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                error!("signing process: cannot receive a request: {error}");
                std::process::exit(1);
            }
            Err(_) => std::process::exit(101),
        };
        let started = thread::Builder::new().name(format!("signing-{number}")).spawn(serve);
        started.map_err(|error| format!("cannot start a thread: {error}"))?;
    }
    Ok(())
}
