//! The accounts process: receives queries and replies to them. Two pools of threads, for quick replies and for hashes,
//! have a bounded queue each.

mod pulse;

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tenfold_accounts::passwords::GREATEST_MEMORY;
use tenfold_accounts::store::url::DatabaseUrl;
use tenfold_accounts::{Accounts, Query, Reply};
use tenfold_sys::lifecycle::{self, Phase, PhaseWatch};
use tenfold_sys::task;
use tenfold_sys::user::SystemUser;
use tenfold_sys::wait::{self, Reported};

use super::channel::{AccountsServer, Answerer};
use super::database;
use crate::admission::places::{AddressPlace, AddressPlaces};
use crate::config::values::bounds::{DATABASE_CONNECTIONS, HASH_QUEUE, HASH_THREADS};
use crate::config::values::members::MembersSettings;
use crate::diagnostics::error;
use crate::sandbox::apart::report_start;
use pulse::ThreadPulse;

/// The most waiting queries without a password.
const QUEUE: usize = 1024;
/// The niceness of hashing relative to serving (`man 2 nice`): against one busy thread, a hash gets about a quarter of a
/// processor. With 19 it gets a seventieth, and the thread waits for that share after each statement of the database:
/// against four busy programs, a login took five seconds.
const NICE: i32 = 5;
/// The pause after a receive that failed for lack of memory or descriptors.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest time of a query without a password: several statements, each with the deadline of its database. If every
/// thread takes longer, the pool hangs, and the supervisor gets no heartbeat.
const LONGEST: Duration = Duration::from_secs(120);
/// The same for queries with a password: several hashes more, on a busy machine.
const LONGEST_HASHING: Duration = Duration::from_secs(300);
/// The memory of each thread: its stack, and the rows that it reads.
const EACH_THREAD: u64 = 8 << 20;
/// The memory of each waiting query.
const EACH_FORM: u64 = 16 << 10;
/// The memory of everything else. Clients of databases keep a whole reply of any length.
const REPLIES: u64 = 512 << 20;
/// The longest interval between heartbeats to the supervisor.
const BEAT: Duration = Duration::from_secs(2);

/// The resources of the process.
pub(crate) struct AccountsTask<'w> {
    pub(crate) settings: &'w MembersSettings,
    pub(crate) url: &'w DatabaseUrl,
    /// The user that this process has become, if it was started as root.
    pub(crate) user: Option<&'w SystemUser>,
    /// Whether to create a missing database: only at the start of the server, so that a moved file is not replaced.
    pub(crate) create: bool,
    pub(crate) server: &'w AccountsServer,
    /// Counts the heartbeats for the supervisor: the process waits for queries.
    pub(crate) beats: &'w AtomicU64,
}

/// The most bytes that the process allocates: for each hashing thread its memory and a stored hash of the greatest cost,
/// for waiting forms, and for replies. If a database sends more, the process ends and is replaced.
pub(crate) fn most_memory(settings: &MembersSettings) -> u64 {
    let (hashing, threads) = (HASH_THREADS as u64, DATABASE_CONNECTIONS as u64);
    let hashes = hashing * (settings.memory + GREATEST_MEMORY);
    let forms = (HASH_QUEUE + QUEUE) as u64 * EACH_FORM;
    hashes + (hashing + threads) * EACH_THREAD + forms + REPLIES
}

/// Opens the accounts, reports the result to `ready`, and replies to queries until the process is stopped.
pub(crate) fn serve(work: &AccountsTask<'_>, ready: UnixStream) -> Result<(), String> {
    let AccountsTask { settings, beats, server, .. } = *work;
    let opened = database::open_accounts((work.url, DATABASE_CONNECTIONS), work.create, work.user, settings);
    let accounts = Arc::new(report_start(opened, ready)?);
    let failed = |error| format!("cannot begin a thread: {error}");
    let on = |name, width, queue, niceness| start(name, (width, queue), &accounts, niceness);
    let (quick, busy) = on("accounts", DATABASE_CONNECTIONS, QUEUE, 0).map_err(failed)?;
    let (hashing, busy_hashing) = on("hashing", HASH_THREADS, HASH_QUEUE, NICE).map_err(failed)?;
    let watch = PhaseWatch::new().map_err(|error| format!("cannot watch for signals: {error}"))?;
    let mut room = AccountsServer::room();
    // The throttle does not count right passwords, so an address could otherwise fill the queue with them.
    let forms = AddressPlaces::of(HASH_QUEUE);
    loop {
        if !hangs(&busy, &busy_hashing, Instant::now()) {
            beats.fetch_add(1, Ordering::Relaxed);
        }
        // The phase is checked after each wait.
        let reported = wait::for_input(&[server.as_fd(), watch.event().as_fd()], Some(BEAT));
        let asked = reported.map_or(Reported::default(), |all| all[0]);
        // Draining workers still send queries; the supervisor stops this process after they have ended.
        if lifecycle::phase() == Phase::Stopping || asked.hung_up {
            return Ok(());
        }
        watch.event().clear();
        match (asked.any, server.next(&mut room)) {
            (_, Ok(Some(question))) => {
                let (request, answer) = question.apart();
                let client = request.hashing_client();
                let queue = if client.is_some() { &hashing } else { &quick };
                let place = client.filter(|_| settings.throttle).map(|client| forms.take(&client.address));
                if matches!(place, Some(None)) {
                    answer.answer(&Reply::Throttled { after: 1 });
                } else if let Err(
                    TrySendError::Full((_, answer, _)) | TrySendError::Disconnected((_, answer, _)),
                ) = queue.try_send((request, answer, place.flatten()))
                {
                    answer.answer(&Reply::Unavailable);
                }
            }
            (true, Err(error)) if error.kind() != ErrorKind::WouldBlock => {
                complain(&format!("cannot receive a question: {error}"));
                thread::sleep(PAUSE);
            }
            (_, Ok(None) | Err(_)) => {}
        }
    }
}

/// Whether all threads of a pool hang.
fn hangs(quick: &ThreadPulse, hashing: &ThreadPulse, now: Instant) -> bool {
    quick.all_longer_than(LONGEST, now) || hashing.all_longer_than(LONGEST_HASHING, now)
}

type QueuedQuery = (Query, Answerer, Option<AddressPlace>);

fn start(
    name: &str,
    (width, queue): (usize, usize),
    accounts: &Arc<Accounts>,
    niceness: i32,
) -> std::io::Result<(SyncSender<QueuedQuery>, Arc<ThreadPulse>)> {
    let (sender, receiver) = sync_channel(queue);
    let receiver = Arc::new(Mutex::new(receiver));
    let busy = Arc::new(ThreadPulse::new(width, Instant::now()));
    for number in 0..width {
        let (receiver, accounts, busy) = (receiver.clone(), accounts.clone(), busy.clone());
        thread::Builder::new().name(format!("{name}-{number}")).spawn(move || {
            // On Linux this affects only the calling thread. After a failure, hashing has the usual priority.
            let _ = task::lower_priority(niceness);
            loop {
                let waiting = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok((request, answer, place)) = waiting else { return };
                busy.begin(number, Instant::now());
                // A panic is reported by its hook. The dropped answer ends the client's wait.
                let _ = catch_unwind(AssertUnwindSafe(|| work(request, answer, place, &accounts)));
                busy.end(number);
            }
        })?;
    }
    Ok((sender, busy))
}

fn work(request: Query, answer: Answerer, place: Option<AddressPlace>, accounts: &Accounts) {
    let answered = accounts.answer(request);
    // The client may send its next form after the reply.
    drop(place);
    match answered {
        Ok(answered) => answer.answer(&answered),
        Err(why) => {
            complain(&why.to_string());
            answer.answer(&Reply::Unavailable);
        }
    }
}

/// Logs errors of the database, at most once a second.
fn complain(why: &str) {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let second = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    if LAST.swap(second, Ordering::Relaxed) != second {
        error!("accounts: {why}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h77_a_pool_of_hashes_that_hangs_is_noticed() {
        let start = Instant::now();
        let (quick, hashing) = (ThreadPulse::new(1, start), ThreadPulse::new(1, start));
        hashing.begin(0, start);
        assert!(!hangs(&quick, &hashing, start + LONGEST_HASHING), "a hash may take long");
        assert!(hangs(&quick, &hashing, start + LONGEST_HASHING + Duration::from_secs(1)));
        hashing.end(0);
        quick.begin(0, start);
        assert!(hangs(&quick, &hashing, start + LONGEST + Duration::from_secs(1)));
    }
}
