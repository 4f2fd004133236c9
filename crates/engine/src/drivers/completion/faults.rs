//! Faults for the tests: a ring so small that its places, its completions and its buffers run out, and one
//! whose operations fail.

use std::sync::OnceLock;

use tenfold_sys::uring::Sizes;
pub use tenfold_sys::uring::faults::{FaultKind, FaultyOperation, InjectedFault, inject};

static RINGS: OnceLock<Sizes> = OnceLock::new();

/// From here on rings of this process have these sizes. The first call counts.
pub fn use_rings_of(sizes: Sizes) {
    let _ = RINGS.set(sizes);
}

pub(crate) fn rings() -> Option<Sizes> {
    RINGS.get().copied()
}
