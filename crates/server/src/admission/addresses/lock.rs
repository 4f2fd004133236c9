//! A lock in memory that several processes share. It belongs to a thread: one that has ended does not keep it, and from
//! one that lives it is never taken.
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
/// Attempts, with a pause after each, before checking whether the holder is alive.
const TRIES: u32 = 10_000;
/// The longest wait. What is done under the lock takes less than a microsecond: its holder has been stopped.
pub(super) const LONGEST: Duration = Duration::from_secs(1);
/// The time for which a process that has waited so long in vain hardly waits again. Code in a compromised worker can
/// write the word of a thread that lives into every lock, and each new address would stop a loop for [`LONGEST`].
const IMPATIENCE: Duration = Duration::from_secs(60);
/// Attempts in that time.
const FEW_TRIES: u32 = 1_000;
/// Bits of the time in a holder's word. A thread's number has the others: it is less than 2^22 (`man 5 proc_sys_kernel`).
const TIME_BITS: u32 = 42;
/// The unit of a thread's start, `sysconf(_SC_CLK_TCK)`, which is the same on every Linux.
const TICK: Duration = Duration::from_millis(10);

/// The lock is held until this is dropped.
pub(super) struct LockGuard<'l> {
    lock: &'l AtomicU64,
    own: u64,
}

/// When a process last waited for a lock in vain, in milliseconds since the boot. It is the process's own.
#[derive(Debug, Default)]
pub(super) struct GivenUp(std::sync::atomic::AtomicU64);

impl GivenUp {
    fn is_recent(&self, now: Duration) -> bool {
        let last = Duration::from_millis(self.0.load(SeqCst));
        !last.is_zero() && now.saturating_sub(last) < IMPATIENCE
    }
}

/// Waits for `lock` and takes it; none if a thread that lives keeps it for [`LONGEST`], or for a moment if this process
/// has waited that long before.
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

/// The word of a holder: the number of its thread, and when it began to wait for the lock.
pub(super) fn word(thread: Pid, since_boot: Duration) -> u64 {
    let time = u64::try_from(since_boot.as_millis()).unwrap_or(u64::MAX) & ((1 << TIME_BITS) - 1);
    u64::from(thread.as_raw_nonzero().get().unsigned_abs()) << TIME_BITS | time
}

/// Whether the holder of this word has ended, as the system says, whose processes are in the folder `processes`.
pub(super) fn is_gone(holder: u64, processes: &str) -> bool {
    let number = holder >> TIME_BITS;
    let Some(thread) = i32::try_from(number).ok().and_then(Pid::from_raw) else { return true };
    let Ok(stat) = fs::read_to_string(format!("{processes}/{number}/stat")) else {
        // It has ended, or there is no /proc, or /proc hides other processes (`hidepid`, `man 5 proc`).
        return task::is_gone(thread);
    };
    // The name, in parentheses, may hold anything. Behind it are the fields from the third on (`man 5 proc_pid_stat`).
    let Some((_, fields)) = stat.rsplit_once(") ") else { return false };
    let mut fields = fields.split_ascii_whitespace();
    // A process keeps its number until its parent has asked how it ended, and the parent may be waiting here.
    let has_ended = fields.next().is_some_and(|state| matches!(state, "Z" | "X"));
    let started = fields.nth(18).and_then(|ticks| ticks.parse().ok()).map(|ticks| TICK.saturating_mul(ticks));
    // A thread that began later has been given the number of the holder.
    has_ended || started.is_some_and(|started| word(thread, started) > holder)
}
