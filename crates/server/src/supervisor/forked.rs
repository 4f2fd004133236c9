//! The end of a process that the supervisor has forked.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::diagnostics::error;

/// Exit code of a process that could not do its work and has reported the reason.
pub(super) const CANNOT_SERVE: i32 = 1;
/// Exit code of a process that panicked.
const PANICKED: i32 = 101;

/// Runs `work` and ends this process. An empty error was already reported.
pub(super) fn end_with(name: &str, work: impl FnOnce() -> Result<(), String>) -> ! {
    let code = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => 0,
        Ok(Err(why)) => {
            if !why.is_empty() {
                error!("{name}: {why}");
            }
            CANNOT_SERVE
        }
        // The panic message was already printed.
        Err(_) => PANICKED,
    };
    std::process::exit(code)
}
