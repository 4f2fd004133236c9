//! The system calls that a thread, or the process of a connection, is denied in addition to its process.

use tenfold_sys::seccomp::{self, Call, CompiledFilter, FilterRule, Test};

use crate::plan::Plan;

/// Denies this thread, and those that it starts, the calls listed in `plan`. A thread that accepts by blocking calls
/// (`accepting`) may still wait for several listeners by `poll`.
pub(crate) fn confine(plan: &Plan, accepting: bool) -> Result<(), String> {
    if !plan.confined {
        return Ok(());
    }
    let denied = plan.denied.iter().copied().filter(|call| !(accepting && *call == Call::POLL));
    seccomp::deny(&denied.collect::<Vec<_>>()).map_err(|error| format!("cannot confine a thread: {error}"))
}

/// Compiles the filter of a process that serves one connection, for [`CompiledFilter::install`] after the fork. It
/// forbids the calls that only the accepting process needs: accepting, starting and ending processes, and filters. The child
/// still gets a signal when its parent ends. `None` if processes are not confined.
pub(crate) fn of_connection(plan: &Plan) -> Result<Option<CompiledFilter>, String> {
    let death_signal = (0, Test::Is(PR_SET_PDEATHSIG));
    let rules = [
        FilterRule::from(Call::ACCEPT),
        Call::ACCEPT4.into(),
        Call::CLONE.into(),
        Call::CLONE3.into(),
        Call::FORK.into(),
        Call::VFORK.into(),
        // Signal 0 is none: it asks whether a process is there.
        FilterRule::when(Call::KILL, &[(1, Test::AtLeast(1))]),
        // The filter of the process allows it to abort the parent.
        Call::TGKILL.into(),
        FilterRule::when(Call::PRCTL, &[death_signal]),
        FilterRule::when(Call::PRCTL, &[(0, Test::Is(PR_SET_DUMPABLE))]),
        Call::SECCOMP.into(),
    ];
    let compiled = plan.confined.then(|| CompiledFilter::denying(&rules)).transpose();
    compiled.map_err(|error| format!("cannot make the filter of a connection: {error}"))
}

/// linux/prctl.h.
const PR_SET_PDEATHSIG: u32 = 1;
const PR_SET_DUMPABLE: u32 = 4;
