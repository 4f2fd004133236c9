//! A lock in memory that several processes share: a holder that dies does not keep it, and one that is only slow is waited for.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// Nobody has it. Whoever has it puts the number of its process.
pub(super) const FREE: u64 = 0;
/// How often it is tried, with a pause in between, before its holder is looked at.
const TRIES: u32 = 10_000;
/// What is done under it takes less than a microsecond. After so long its holder is taken for dead whatever the system
/// says: another process may have its number by then.
const LONGEST: Duration = Duration::from_secs(5);

/// The lock is ours until this is dropped.
pub(super) struct Held<'l> {
    lock: &'l AtomicU64,
    own: u64,
}

/// Waits for `lock` and takes it.
pub(super) fn hold(lock: &AtomicU64) -> Held<'_> {
    let own = u64::from(std::process::id());
    let take_from = |holder| lock.compare_exchange(holder, own, SeqCst, SeqCst).is_ok();
    let mut begun = None;
    loop {
        for _ in 0..TRIES {
            if take_from(FREE) {
                return Held { lock, own };
            }
            thread::yield_now();
        }
        let waited = begun.get_or_insert_with(Instant::now).elapsed();
        let holder = lock.load(SeqCst);
        if holder != FREE && (is_gone(holder) || waited >= LONGEST) && take_from(holder) {
            return Held { lock, own };
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Where it was taken away it is another's.
        let _ = self.lock.compare_exchange(self.own, FREE, SeqCst, SeqCst);
    }
}

/// Whether the process of this number has ended.
fn is_gone(number: u64) -> bool {
    let Some(process) = i32::try_from(number).ok().and_then(Pid::from_raw) else { return true };
    if test_kill_process(process) == Err(Errno::SRCH) {
        return true;
    }
    // It keeps its number until its parent has asked how it ended, and that may be who waits here: field 3 of
    // `man 5 proc_pid_stat`.
    let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with(['Z', 'X']))
}
