//! A lock in memory that several processes share. Its holder is a thread. The lock is taken from a thread that has
//! ended, never from a live one.
//!
//! It is a word and no robust mutex (`man 3 pthread_mutexattr_setrobust`), whose list of held locks consists of addresses
//! in the shared memory: a process that writes others there could make the next holder write anywhere in its own.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use tenfold_sys::process::Pid;
use tenfold_sys::{clock, task};

use crate::admission::sync::{AtomicU64, thread};

/// The word of a lock without a holder.
pub(super) const FREE: u64 = 0;
/// Attempts, with a pause after each, before a check whether the holder is alive.
const TRIES: u32 = 10_000;
/// The longest wait. Work under the lock takes less than a microsecond, so a longer wait means that its holder was
/// stopped.
pub(super) const LONGEST: Duration = Duration::from_secs(1);
/// The time for which a process waits only briefly after a wait in vain. Otherwise code in a compromised worker could
/// write the word of a live thread into every lock, and each new address would stop a loop for [`LONGEST`].
const IMPATIENCE: Duration = Duration::from_secs(60);
/// Attempts in that time.
const FEW_TRIES: u32 = 1_000;
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

/// The time of this process's last wait in vain, in milliseconds since the boot.
#[derive(Debug, Default)]
pub(super) struct GivenUp(std::sync::atomic::AtomicU64);

impl GivenUp {
    fn is_recent(&self, now: Duration) -> bool {
        let last = Duration::from_millis(self.0.load(SeqCst));
        !last.is_zero() && now.saturating_sub(last) < IMPATIENCE
    }

    #[cfg(test)]
    pub(super) fn last(&self) -> u64 {
        self.0.load(SeqCst)
    }
}

/// Waits for `lock` and takes it. `None` if a live thread keeps it for [`LONGEST`], or briefly if this process has
/// recently waited that long.
pub(super) fn hold<'l>(lock: &'l AtomicU64, given_up: &GivenUp) -> Option<LockGuard<'l>> {
    let now = clock::since_boot();
    let own = word(task::own(), now);
    let (tries, longest) =
        if given_up.is_recent(now) { (FEW_TRIES, Duration::ZERO) } else { (TRIES, LONGEST) };
    let take_from = |holder| lock.compare_exchange(holder, own, SeqCst, SeqCst).is_ok();
    let mut begun = None;
    loop {
        for _ in 0..tries {
            if take_from(FREE) {
                return Some(LockGuard { lock, own });
            }
            thread::yield_now();
        }
        let holder = lock.load(SeqCst);
        if holder != FREE && is_gone(holder, "/proc") && take_from(holder) {
            return Some(LockGuard { lock, own });
        }
        if begun.get_or_insert_with(Instant::now).elapsed() >= longest {
            if !longest.is_zero() {
                let now = u64::try_from(clock::since_boot().as_millis()).unwrap_or(u64::MAX);
                given_up.0.store(now, SeqCst);
            }
            return None;
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
