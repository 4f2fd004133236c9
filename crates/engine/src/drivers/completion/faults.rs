//! Faults for tests: a ring that is too small, so that entries, completions and buffers run out, and one whose
//! operations fail.

use std::sync::OnceLock;

use tenfold_sys::uring::Sizes;
pub use tenfold_sys::uring::faults::{FaultKind, FaultyOperation, InjectedFault, inject};

static RINGS: OnceLock<Sizes> = OnceLock::new();

/// Sets the sizes of all later rings of this process. Only the first call has an effect.
pub fn use_rings_of(sizes: Sizes) {
    let _ = RINGS.set(sizes);
}

pub(crate) fn rings() -> Option<Sizes> {
    RINGS.get().copied()
}
