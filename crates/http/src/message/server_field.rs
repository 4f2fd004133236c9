//! Whether responses have the field `Server` (RFC 9110 §10.2.4).

use std::sync::atomic::{AtomicBool, Ordering};

static SHOWN: AtomicBool = AtomicBool::new(true);

/// Sets whether the responses of this process have the field `Server`. Prepared responses keep their form, so a process
/// calls it before it prepares any.
pub fn show_server(is_shown: bool) {
    SHOWN.store(is_shown, Ordering::Relaxed);
}

/// Whether responses have the field `Server`.
pub(crate) fn is_shown() -> bool {
    SHOWN.load(Ordering::Relaxed)
}
