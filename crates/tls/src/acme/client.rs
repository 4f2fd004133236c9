//! The loop of the process that obtains and renews a certificate, one step at a time.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::attempts::AttemptHistory;
use super::authority;
use super::dns;
use super::error::AcmeError;
use super::order::Attempt;
use super::refusal::{OrderError, RefusedName};
use super::renewal::{self, RenewalWindow};
use super::settings::{AcmeSettings, Validation};
use super::stored::{self, StoredCertificate};
use super::transport::take_demanded_wait;
use crate::certificates::facts::KeyId;
use crate::challenges::{ChallengeBoard, PendingChallenges};
use crate::state::{FolderLock, StateFolder};

/// The bound of an attempt, without the programs that change DNS records.
const ATTEMPT: Duration = Duration::from_secs(15 * 60);

/// The longest wait between two steps, because another server may change the folder.
const MAX_WAIT: Duration = Duration::from_secs(3600);

/// The wait while another server holds the lock.
const LOCKED: Duration = Duration::from_secs(30);

/// The most orders of an attempt: each order omits the names that the authority refused in former orders.
const MAX_ORDERS: usize = 10;

/// Seconds between two requests for the renewal window (RFC 9773 §4.3 suggests six hours).
const WINDOW_AGE: i64 = 6 * 3600;

/// An event for the server to handle or log.
#[derive(Debug)]
pub enum AcmeEvent {
    /// The folder has a new certificate, which workers should get.
    Changed(StoredCertificate),
    /// An attempt failed. The site keeps its present certificate.
    Failed {
        /// The failed step and its reason.
        error: AcmeError,
        /// The time until the next attempt.
        retry: Duration,
    },
}

/// A name that the authority refused. The other names get a certificate without it.
#[derive(Debug)]
pub struct RefusedEvent {
    /// The refused name.
    pub name: String,
    /// The authority's reason.
    pub error: AcmeError,
    /// The time until the next attempt for this name.
    pub retry: Duration,
}

/// The result of a step.
#[derive(Debug)]
pub struct AcmeStep {
    /// The names that the authority refused.
    pub refused: Vec<RefusedEvent>,
    /// The event of the step, if any.
    pub event: Option<AcmeEvent>,
    /// The time until the next step.
    pub wait: Duration,
}

/// The state of the process between steps.
pub struct AcmeClient {
    settings: AcmeSettings,
    folder: StateFolder,
    board: ChallengeBoard,
    runtime: Runtime,
    known: Option<KeyId>,
    window: Option<RenewalWindow>,
    /// The second since 1970 of the last request for the window.
    asked: Option<i64>,
    /// The results of the last attempts, kept in memory because a full disk may not keep them.
    attempts: AttemptHistory,
}

impl AcmeClient {
    /// Returns a client. `known` is the server's present certificate.
    pub fn new(
        settings: AcmeSettings,
        folder: StateFolder,
        board: ChallengeBoard,
        known: Option<&StoredCertificate>,
    ) -> io::Result<AcmeClient> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        let known = known.map(|stored| stored.chain.facts().key_id());
        // A process that died during a validation left its responses.
        let _ = board.publish(&PendingChallenges::default());
        let attempts = AttemptHistory::load(&folder);
        Ok(AcmeClient { settings, folder, board, runtime, known, window: None, asked: None, attempts })
    }

    /// Runs the next step, and returns the wait until the following step. It never fails: an unavailable,
    /// slow or faulty authority and a full disk are events.
    pub fn step(&mut self) -> AcmeStep {
        let now = unix_now();
        // An unreadable stored certificate is replaced.
        let stored = stored::load(&self.folder).ok().flatten();
        if let Some(changed) = self.changed(stored.as_ref()) {
            return changed;
        }
        self.ask_for_window(stored.as_ref(), now);
        let due = self.due(stored.as_ref(), now);
        if now < due {
            return wait(Duration::from_secs((due - now).unsigned_abs()));
        }
        // After a success, a name without a certificate need not wait.
        if due != i64::MIN || self.attempts.has_failed() {
            let backoff = self.attempts.wait(now);
            if !backoff.is_zero() {
                return wait(backoff);
            }
        }
        match self.folder.lock() {
            Ok(Some(lock)) => self.attempt(&lock, now),
            Ok(None) => wait(LOCKED),
            Err(error) => self.failed(AcmeError::new("lock the state folder", error), now, None),
        }
    }

    fn changed(&mut self, stored: Option<&StoredCertificate>) -> Option<AcmeStep> {
        let stored = stored.filter(|stored| Some(stored.chain.facts().key_id()) != self.known)?;
        self.known = Some(stored.chain.facts().key_id());
        (self.window, self.asked) = (None, None);
        // The server that obtained it saved the results of its attempts.
        self.attempts = AttemptHistory::load(&self.folder);
        Some(step(Some(AcmeEvent::Changed(stored.clone())), Duration::ZERO))
    }

    /// Returns the second at which the next certificate is due, for the names that can be ordered or for a
    /// refused name.
    fn due(&self, stored: Option<&StoredCertificate>, now: i64) -> i64 {
        let names = self.attempts.orderable(&self.settings.names, now);
        let due = match stored.map(|stored| stored.chain.facts()) {
            _ if names.is_empty() => i64::MAX,
            Some(facts) if stored::covers_all(facts, &names) => renewal::due(facts, self.window),
            _ => i64::MIN,
        };
        self.attempts.next_refused(&self.settings.names, now).map_or(due, |next| next.min(due))
    }

    /// Requests the renewal window from time to time. If that fails, the last window stays.
    fn ask_for_window(&mut self, stored: Option<&StoredCertificate>, now: i64) {
        let is_fresh = self.asked.is_some_and(|asked| (0..WINDOW_AGE).contains(&(now - asked)));
        let Some(stored) = stored.filter(|_| !is_fresh) else { return };
        self.asked = Some(now);
        let asking = authority::renewal_window(&self.settings, &self.folder, &stored.chain);
        if let Ok(Ok(window)) = self.runtime.block_on(async { timeout(ATTEMPT, asking).await }) {
            self.window = window;
        }
    }

    fn attempt(&mut self, lock: &FolderLock, now: i64) -> AcmeStep {
        let stored = stored::load(&self.folder).ok().flatten();
        // Another server may have renewed it before this one got the lock.
        if let Some(changed) = self.changed(stored.as_ref()) {
            return changed;
        }
        // Another request, such as for the renewal window, may have left one.
        let _ = take_demanded_wait();
        let mut refused = Vec::new();
        for _ in 0..MAX_ORDERS {
            let names = self.attempts.orderable(&self.settings.names, now);
            // Only the names that the authority refused were due.
            if !refused.is_empty() && self.due(stored.as_ref(), now) > now {
                return AcmeStep { refused, ..wait(Duration::ZERO) };
            }
            match self.order(lock, &names, stored.as_ref(), now) {
                Ok(obtained) => {
                    self.attempts.accept(&names);
                    self.attempts.succeed(now, obtained.chain.facts().not_after);
                    self.attempts.save(&self.folder, lock);
                    let attempts = self.attempts.clone();
                    let changed = self.changed(Some(&obtained));
                    self.attempts = attempts;
                    return AcmeStep { refused, ..changed.unwrap_or(step(None, LOCKED)) };
                }
                // An order needs at least one name.
                Err(OrderError::Refused(now_refused)) if now_refused.len() < names.len() => {
                    refused.extend(now_refused.into_iter().map(|name| self.refuse(name, now)));
                    self.attempts.save(&self.folder, lock);
                }
                Err(OrderError::Refused(all)) => {
                    let reasons: Vec<_> =
                        all.iter().map(|it| format!("{}: {}", it.name, it.reason)).collect();
                    let error = AcmeError::new("validate the names", reasons.join("; "));
                    return AcmeStep { refused, ..self.failed(error, now, Some(lock)) };
                }
                Err(OrderError::Failed(error)) => {
                    return AcmeStep { refused, ..self.failed(error, now, Some(lock)) };
                }
            }
        }
        let error = AcmeError::new("obtain a certificate", "the authority refused names in every order");
        AcmeStep { refused, ..self.failed(error, now, Some(lock)) }
    }

    /// Orders a certificate for these names.
    fn order(
        &self,
        lock: &FolderLock,
        names: &[String],
        stored: Option<&StoredCertificate>,
        now: i64,
    ) -> Result<StoredCertificate, OrderError> {
        let (settings, folder, board) = (&self.settings, &self.folder, &self.board);
        let attempt = Attempt { settings, names, folder, lock, board, now };
        let bound = bound(settings);
        let obtained = self.runtime.block_on(async { timeout(bound, attempt.obtain(stored)).await });
        obtained.unwrap_or_else(|_| {
            let reason = format!("it took longer than {} s", bound.as_secs());
            Err(AcmeError::new("obtain a certificate", reason).into())
        })
    }

    fn refuse(&mut self, refused: RefusedName, now: i64) -> RefusedEvent {
        let retry = self.attempts.refuse(&refused.name, now);
        let error = AcmeError::new(&format!("obtain a certificate for {}", refused.name), refused.reason);
        RefusedEvent { name: refused.name, error, retry }
    }

    fn failed(&mut self, error: AcmeError, now: i64, lock: Option<&FolderLock>) -> AcmeStep {
        self.attempts.fail(now);
        self.attempts.delay(now, take_demanded_wait());
        if let Some(lock) = lock {
            self.attempts.save(&self.folder, lock);
        }
        let retry = self.attempts.wait(now);
        step(Some(AcmeEvent::Failed { error, retry }), retry.min(MAX_WAIT))
    }

    /// Revokes the stored certificate (RFC 8555 §7.6) and removes it, so that the next step obtains another
    /// certificate.
    pub fn revoke(&mut self) -> Result<(), AcmeError> {
        let lock = self.folder.lock().map_err(AcmeError::at("lock the state folder"))?;
        let lock =
            lock.ok_or_else(|| AcmeError::new("lock the state folder", "another server has the lock"))?;
        let stored = stored::load(&self.folder)?;
        let stored = stored.ok_or_else(|| AcmeError::new("revoke the certificate", "there is none"))?;
        let revoking = authority::revoke(&self.settings, &self.folder, &lock, &stored.chain);
        let revoked = self.runtime.block_on(async { timeout(ATTEMPT, revoking).await });
        revoked.map_err(AcmeError::at("revoke the certificate"))??;
        stored::remove(&self.folder, &lock)
    }
}

/// Returns the bound of an attempt. Programs that change DNS records run sequentially, to set and to clear
/// each record.
fn bound(settings: &AcmeSettings) -> Duration {
    match settings.validation {
        Validation::Dns01 { .. } => ATTEMPT + dns::TIMEOUT * 2 * settings.names.len() as u32,
        Validation::TlsAlpn01 | Validation::Http01 => ATTEMPT,
    }
}

fn wait(time: Duration) -> AcmeStep {
    step(None, time.min(MAX_WAIT))
}

fn step(event: Option<AcmeEvent>, wait: Duration) -> AcmeStep {
    AcmeStep { refused: Vec::new(), event, wait }
}

fn unix_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
