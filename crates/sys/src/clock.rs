//! The system's clocks, read through the vDSO: no system call (`man 7 vdso`).

use std::io;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock in milliseconds, and the seconds since 1970. Both are the kernel's coarse clocks. They are exact
/// to one tick of its timer (1 to 10 ms) and cost a quarter of the fine ones.
#[inline]
pub fn coarse() -> (u64, u64) {
    let monotonic = clock_gettime(ClockId::MonotonicCoarse);
    let real = clock_gettime(ClockId::RealtimeCoarse);
    let milliseconds = monotonic.tv_sec as u64 * 1000 + monotonic.tv_nsec as u64 / 1_000_000;
    (milliseconds, real.tv_sec as u64)
}

/// The monotonic clock in nanoseconds: the fine one, about 20 ns a reading.
#[inline]
pub fn monotonic() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Time since the system was started, suspended time included: the clock of the start times of processes and threads
/// (`man 5 proc_pid_stat`).
pub fn since_boot() -> Duration {
    Duration::from_nanos(nanoseconds(ClockId::Boottime))
}

/// Processor time that the calling thread has used, in nanoseconds.
pub fn thread_processor_time() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

#[inline]
fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sets the timer slack of the calling thread to a microsecond, so that its waits end in time. The default of 50
/// bundles wakeups (`PR_SET_TIMERSLACK`, `man 2 prctl`).
pub fn wake_precisely() -> io::Result<()> {
    let slack: libc::c_ulong = 1_000;
    // SAFETY: this operation takes a number and touches no memory of the process.
    let result = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
