//! The gate before the first accept of a worker.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::shared::SharedRows;

/// The interval of checks of a closed gate.
const TICK: Duration = Duration::from_millis(1);

/// Keeps the workers of a generation from accepting connections until all of them can serve: if one cannot start, the
/// others end, and their connections would end with them.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<SharedRows>);

impl Gate {
    /// A closed gate, for this process and its children.
    pub(crate) fn new() -> io::Result<Gate> {
        Ok(Gate(Arc::new(SharedRows::new(1, 1)?)))
    }

    /// Opens the gate.
    pub(crate) fn open(&self) {
        self.0.row(0)[0].store(1, Ordering::Release);
    }

    /// Waits until the gate is open or the process is asked to end.
    pub(crate) fn pass(&self) {
        while self.0.row(0)[0].load(Ordering::Acquire) == 0 && lifecycle::phase() == Phase::Serving {
            thread::sleep(TICK);
        }
    }
}
