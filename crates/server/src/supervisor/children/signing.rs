//! The process that has the keys of certificates: one for each generation, begun before its workers, and killed after
//! the last of them. The supervisor opens the files of keys and never reads them.

use std::io;
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
use tenfold_sys::process::WaitStatus;
use tenfold_sys::signal::Signal;
use tenfold_sys::user::SystemUser;
use tenfold_sys::wait;
use tenfold_tls::certificates::files::KeyFile;
use tenfold_tls::signing::keys::{HeldKeys, tell_lost};
use tenfold_tls::signing::remote::{AnswerPath, SigningClient};

use super::child::HeartbeatBounds;
use super::child::{Child, LATEST_START};
use super::privileges;
use crate::config::resolve::ResolvedConfig;
use crate::config::values::Settings;
use crate::diagnostics::error;
use crate::sandbox;
use crate::sandbox::apart::report_start;

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

/// The pair of sockets between a worker and the process.
struct SigningPair {
    worker: UnixDatagram,
    signer: UnixDatagram,
}

/// The signing process of a generation.
pub(crate) struct SigningProcess {
    pub(crate) child: Child,
    keys: Vec<KeyFile>,
    /// By the place of the worker. Both ends stay open, so that a successor serves the same workers.
    places: Vec<Vec<SigningPair>>,
    path: AnswerPath,
    /// Whether the generation has ended.
    ending: bool,
}

/// The ends of one worker.
pub(crate) struct WorkerEnds {
    sockets: Vec<UnixDatagram>,
    path: AnswerPath,
}

impl WorkerEnds {
    /// Returns the client of a worker with this plan.
    pub(crate) fn client(self, plan: &Plan) -> Result<Arc<SigningClient>, String> {
        let patience = if plan.blocking() { PATIENCE } else { PATIENCE_OF_LOOP };
        SigningClient::new(self.sockets, patience, self.path)
            .map_err(|error| format!("cannot connect to the signing process: {error}"))
    }
}

impl SigningProcess {
    /// Begins the process of a configuration and waits until it has read the keys, until `by` at the latest; `None` without
    /// keys. `forget` drops, in the new process, the state of the supervisor.
    pub(crate) fn begin(
        settings: &Settings,
        config: &mut ResolvedConfig,
        workers: Option<&SystemUser>,
        by: Instant,
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
        let mut signing = SigningProcess {
            child: Child::new("signing process", user.as_ref(), Some(HEARTBEAT))?,
            keys,
            places: pairs(&config.plan).map_err(failed)?,
            path: if config.plan.engine == Engine::Fork { AnswerPath::Stream } else { AnswerPath::Pair },
            ending: false,
        };
        let ready = signing.start(forget).map_err(failed)?;
        signing.child.wait_until_ready(&ready, by)?;
        Ok(Some(signing))
    }

    fn start(&mut self, forget: impl FnOnce()) -> io::Result<UnixStream> {
        let SigningProcess { child, keys, places, .. } = self;
        let prepare = || {
            forget();
            Ok(())
        };
        child.start(prepare, |child, (), ready| serve(child, keys, places, ready))
    }

    /// Replaces the process if it hangs or has ended.
    pub(crate) fn advance(&mut self, forget: impl FnOnce()) {
        self.child.check_heartbeat();
        if !self.ending && self.child.is_due() {
            // Nothing waits for the report: the process itself reports problems.
            let started = self.start(forget);
            self.child.on_start(started);
        }
    }

    /// The time of the next action.
    pub(crate) fn by(&self) -> Option<Instant> {
        self.child.by().filter(|_| !self.ending)
    }

    /// Takes the ends of one worker; all others are closed, and so are the files of keys.
    pub(crate) fn into_ends(mut self, place: usize) -> WorkerEnds {
        let pairs = self.places.swap_remove(place);
        WorkerEnds { sockets: pairs.into_iter().map(|pair| pair.worker).collect(), path: self.path }
    }

    /// The files of its keys.
    pub(crate) fn keys(&self) -> &[KeyFile] {
        &self.keys
    }

    /// Notes the end of the process. Handshakes that wait for it begin again.
    pub(crate) fn on_exit(&mut self, end: WaitStatus, expected: bool) {
        let expected = expected || self.ending;
        self.child.on_exit(end, expected);
        if !expected {
            self.places.iter().flatten().for_each(|pair| tell_lost(&pair.signer));
        }
    }

    /// Kills the process, which has nothing to save. Returns whether it is gone.
    pub(crate) fn end(&mut self) -> bool {
        if !self.ending {
            self.ending = true;
            self.places.clear();
            self.child.signal(Signal::Kill);
        }
        self.child.pid().is_none()
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

/// Reads the keys, reports to `ready` that it has them, and signs until a signal ends the process.
fn serve(
    child: &Child,
    keys: &mut Vec<KeyFile>,
    places: &mut Vec<Vec<SigningPair>>,
    ready: UnixStream,
) -> Result<(), String> {
    if let Some(process) = child.sandbox() {
        sandbox::confine_signing(process)?;
    }
    let sockets = places.drain(..).flatten().map(|pair| pair.signer);
    let started = read(&std::mem::take(keys)).and_then(|keys| start(&Arc::new(keys), sockets));
    report_start(started, ready)?;
    let watch = PhaseWatch::new().map_err(|error| format!("cannot watch for signals: {error}"))?;
    // Workers that drain still shake hands; the supervisor kills this process after their end.
    while lifecycle::phase() != Phase::Stopping {
        watch.event().clear();
        child.beats().fetch_add(1, Ordering::Relaxed);
        let _ = wait::for_input(&[watch.event().as_fd()], Some(BEAT));
    }
    Ok(())
}

fn read(files: &[KeyFile]) -> Result<HeldKeys, String> {
    let keys: Result<Vec<_>, _> = files.iter().map(KeyFile::read).collect();
    keys.map(HeldKeys::new)
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
