//! The system calls that a thread is denied in addition to its process.

use tenfold_sys::seccomp::{self, Call};

use crate::plan::Plan;

/// Denies this thread, and the threads that it starts, the calls listed in `plan`. A thread that accepts by blocking calls
/// (`accepting`) may still wait for several listeners by `poll`. If the filter of the process denies the same calls,
/// nothing is done.
pub(crate) fn confine(plan: &Plan, accepting: bool) -> Result<(), String> {
    if !plan.confined || !plan.narrows_threads() {
        return Ok(());
    }
    let denied = plan.denied.iter().copied().filter(|call| !(accepting && *call == Call::POLL));
    seccomp::deny(&denied.collect::<Vec<_>>()).map_err(|error| format!("cannot confine a thread: {error}"))
}
