//! The system's clocks, read through the vDSO: no system call (`man 7 vdso`).

use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock in milliseconds, and the seconds since 1970. Both are the kernel's coarse clocks,
/// exact to one tick of its timer (1 to 10 ms), for a quarter of the cost of the fine ones.
pub fn coarse() -> (u64, u64) {
    let monotonic = clock_gettime(ClockId::MonotonicCoarse);
    let real = clock_gettime(ClockId::RealtimeCoarse);
    let milliseconds = monotonic.tv_sec as u64 * 1000 + monotonic.tv_nsec as u64 / 1_000_000;
    (milliseconds, real.tv_sec as u64)
}
