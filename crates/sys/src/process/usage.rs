//! CPU time of processes, and the processors that a thread may use.

use std::time::Duration;
use std::{io, mem};

use rustix::process::{Pid, RawPid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// CPU time of all threads of a process, also of ended threads, in nanoseconds of the scheduler
/// (`man 3 clock_getcpuclockid`). `/proc/PID/stat` counts in hundredths of a second.
///
/// # Errors
/// When the process has ended.
pub fn cpu_time(process: Pid) -> io::Result<Duration> {
    /// `CPUCLOCK_SCHED` of the kernel: user and system time of the whole process.
    const SCHEDULER: libc::clockid_t = 2;
    let number: RawPid = process.as_raw_pid();
    let clock: libc::clockid_t = (!number << 3) | SCHEDULER;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec that lives through the call, which writes it; the kernel checks the clock.
    let result = unsafe { libc::clock_gettime(clock, &mut time) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Ok(Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default()))
}

/// CPU time of this process, and of the children that it has waited for (`man 2 getrusage`).
pub fn with_children() -> io::Result<Duration> {
    let mut total = cpu_time(rustix::process::getpid())?;
    let mut usage = mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` has room for a rusage, which the call writes.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so it has written all of it.
    let usage = unsafe { usage.assume_init() };
    for time in [usage.ru_utime, usage.ru_stime] {
        let (seconds, microseconds) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_usec));
        total += Duration::from_secs(seconds.unwrap_or_default())
            + Duration::from_micros(microseconds.unwrap_or_default());
    }
    Ok(total)
}

/// The processors that this thread may use.
pub fn processors() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Confines this thread to processors; threads and processes that it starts inherit them.
pub fn pin(processors: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    processors.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU).for_each(|cpu| set.set(*cpu));
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::process::own;

    #[test]
    fn computing_takes_cpu_time() {
        let before = cpu_time(own()).expect("this process lives");
        let mut sum = 0u64;
        while cpu_time(own()).expect("this process lives") - before < Duration::from_millis(5) {
            sum = (0..10_000u64).fold(sum, |sum, number| std::hint::black_box(sum ^ number));
        }
        assert!(cpu_time(Pid::from_raw(4_194_305).expect("a number")).is_err(), "PIDs end at 2^22");
    }

    #[test]
    fn a_pinned_thread_has_one_processor_and_its_children_inherit_it() {
        let all = processors().expect("the kernel says");
        let last = *all.last().expect("this thread runs somewhere");
        let seen = thread::spawn(move || {
            pin(&[last]).expect("it is allowed");
            thread::spawn(|| processors().expect("the kernel says")).join().expect("it ends")
        });
        assert_eq!(seen.join().expect("it ends"), [last]);
        assert_eq!(processors().expect("the kernel says"), all, "other threads keep theirs");
        assert!(pin(&[]).is_err());
    }
}
