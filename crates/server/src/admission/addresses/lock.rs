//! A lock in memory that several processes share. Its holder is a thread. The lock is taken from a thread that has
//! ended, never from a live one.
//!
//! It is a word and no robust mutex (`man 3 pthread_mutexattr_setrobust`), whose list of held locks consists of addresses
//! in the shared memory: a process that writes others there could make the next holder write anywhere in its own.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tenfold_sys::process::Pid;
use tenfold_sys::{clock, task};

use crate::admission::sync::{AtomicU64, thread};

/// The word of a lock without a holder.
pub(super) const FREE: u64 = 0;
/// Attempts, with a pause after each, before a check whether the holder is alive.
const TRIES: u32 = 10_000;
/// Bits of the time in a holder's word. The other bits are the thread's number, which is less than 2^22 (`man 5
/// proc_sys_kernel`).
const TIME_BITS: u32 = 42;
/// The unit of a thread's start, `sysconf(_SC_CLK_TCK)`, which is the same on every Linux.
const TICK: Duration = Duration::from_millis(10);

/// The lock is held until this is dropped.
pub(super) struct LockGuard<'l> {
    lock: &'l AtomicU64,
    own: u64,
}

/// Waits for `lock` and takes it. Work under the lock takes less than a microsecond; a holder that is stopped meanwhile
/// (SIGSTOP, a frozen control group) makes the others wait until it continues or ends.
pub(super) fn hold(lock: &AtomicU64) -> LockGuard<'_> {
    let own = word(task::own(), clock::since_boot());
    let take_from = |holder| lock.compare_exchange(holder, own, SeqCst, SeqCst).is_ok();
    loop {
        for _ in 0..TRIES {
            if take_from(FREE) {
                return LockGuard { lock, own };
            }
            thread::yield_now();
        }
        let holder = lock.load(SeqCst);
        if holder != FREE && is_gone(holder, "/proc") && take_from(holder) {
            return LockGuard { lock, own };
        }
    }
}

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        let _ = self.lock.compare_exchange(self.own, FREE, SeqCst, SeqCst);
    }
}

/// The word of a holder: the number of its thread, and the time at which it began to wait.
pub(super) fn word(thread: Pid, since_boot: Duration) -> u64 {
    let time = u64::try_from(since_boot.as_millis()).unwrap_or(u64::MAX) & ((1 << TIME_BITS) - 1);
    u64::from(thread.as_raw_nonzero().get().unsigned_abs()) << TIME_BITS | time
}

/// Whether the holder of this word has ended, according to the folder `processes` (`/proc`).
pub(super) fn is_gone(holder: u64, processes: &str) -> bool {
    let number = holder >> TIME_BITS;
    let Some(thread) = i32::try_from(number).ok().and_then(Pid::from_raw) else { return true };
    let Ok(stat) = fs::read_to_string(format!("{processes}/{number}/stat")) else {
        // It has ended, or there is no /proc, or /proc hides other processes (`hidepid`, `man 5 proc`).
        return task::is_gone(thread);
    };
    // The name, in parentheses, may contain anything. The fields from the third on follow it (`man 5 proc_pid_stat`).
    let Some((_, fields)) = stat.rsplit_once(") ") else { return false };
    let mut fields = fields.split_ascii_whitespace();
    // A process keeps its number until its parent reaps it, and the parent may be waiting here.
    let has_ended = fields.next().is_some_and(|state| matches!(state, "Z" | "X"));
    let started = fields.nth(18).and_then(|ticks| ticks.parse().ok()).map(|ticks| TICK.saturating_mul(ticks));
    // A later thread has got the holder's number.
    has_ended || started.is_some_and(|started| word(thread, started) > holder)
}
