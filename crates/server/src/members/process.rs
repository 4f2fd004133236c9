//! The process of the accounts: it takes questions at the door and answers them on threads, some for what is known
//! soon and few for hashes, each behind a queue that ends.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::nice;
use tenfold_accounts::{Accounts, Reply};
use tenfold_sys::lifecycle::{self, Phase, Watch};

use super::door::{Answerer, Inside};
use crate::diagnostics::error;
use crate::settings::members::Members;

/// Questions without a password that wait.
const QUEUE: usize = 1024;
/// How much more willing hashing is to wait than serving (`man 2 nice`).
const NICE: i32 = 19;

/// Opens the accounts, says so to `ready`, and answers until it is told to stop.
///
/// # Errors
/// In words: the accounts can not be opened, or the system gives no threads.
pub(crate) fn serve(
    settings: &Members,
    url: &tenfold_accounts::store::url::Url,
    inside: &Inside,
    mut ready: UnixStream,
) -> Result<(), String> {
    let opened = Accounts::open(url, settings.connections, settings.policy());
    let said = opened.as_ref().map_or_else(|why| why.as_str(), |_| READY);
    let heard = ready.write_all(said.as_bytes());
    drop(ready);
    // Whoever started this process says what is wrong; without anybody it is said here.
    let accounts = match (opened, heard) {
        (Ok(accounts), _) => Arc::new(accounts),
        (Err(_), Ok(())) => return Err(String::new()),
        (Err(why), Err(_)) => return Err(why),
    };
    let failed = |error| format!("can not begin a thread: {error}");
    let quick = start("accounts", settings.connections, QUEUE, &accounts, 0).map_err(failed)?;
    let hashing =
        start("hashing", settings.hash_threads, settings.hash_queue, &accounts, NICE).map_err(failed)?;
    let watch = Watch::new().map_err(|error| format!("can not hear signals: {error}"))?;
    let mut room = Inside::room();
    loop {
        let mut waited_for = [PollFd::new(inside, PollFlags::IN), PollFd::new(watch.event(), PollFlags::IN)];
        // Whatever it says, both are looked at afterwards.
        let _ = poll(&mut waited_for, None);
        let asked = !waited_for[0].revents().is_empty();
        // Workers that drain still ask; the supervisor stops this process when they are gone.
        if lifecycle::phase() == Phase::Stopping {
            return Ok(());
        }
        watch.event().clear();
        if !asked {
            continue;
        }
        let Ok(question) = inside.next(&mut room) else { return Ok(()) };
        if let Some(question) = question {
            let (request, answer) = question.apart();
            let queue = if request.hashes() { &hashing } else { &quick };
            if let Err(full) = queue.try_send((request, answer)) {
                let (std::sync::mpsc::TrySendError::Full((_, answer))
                | std::sync::mpsc::TrySendError::Disconnected((_, answer))) = full;
                answer.answer(&Reply::Unavailable);
            }
        }
    }
}

/// What is said when the accounts are open.
pub(crate) const READY: &str = "ready";

type Waiting = (tenfold_accounts::Request, Answerer);

fn start(
    name: &str,
    width: usize,
    queue: usize,
    accounts: &Arc<Accounts>,
    niceness: i32,
) -> std::io::Result<SyncSender<Waiting>> {
    let (sender, receiver) = sync_channel(queue);
    let receiver = Arc::new(Mutex::new(receiver));
    for number in 0..width {
        let (receiver, accounts) = (receiver.clone(), accounts.clone());
        thread::Builder::new().name(format!("{name}-{number}")).spawn(move || {
            // On Linux this is about the calling thread. Who may not be nicer hashes as it is.
            let _ = nice(niceness);
            work(&receiver, &accounts);
        })?;
    }
    Ok(sender)
}

fn work(receiver: &Mutex<Receiver<Waiting>>, accounts: &Accounts) {
    loop {
        let waiting = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((request, answer)) = waiting else { return };
        // What panicked has said so; the answer is dropped, and who asked hears an end.
        let _ = catch_unwind(AssertUnwindSafe(|| match accounts.answer(request) {
            Ok(reply) => answer.answer(&reply),
            Err(why) => {
                complain(&why);
                answer.answer(&Reply::Unavailable);
            }
        }));
    }
}

/// Says what the database says, once a second at most.
fn complain(why: &str) {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let second = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    if LAST.swap(second, Ordering::Relaxed) != second {
        error!("accounts: {why}");
    }
}
