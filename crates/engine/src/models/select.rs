//! `select`: tries nonblocking calls first, and `select(2)` reports when to try again.
//!
//! Every call passes sets of bits up to the greatest descriptor to the kernel, and scans the returned sets. A
//! connection with a descriptor above the 1024 bits is refused. Descriptors of sent files are moved above this range.
//! Reports are level-triggered.
//!
//! System calls of a request on a keep-alive connection: select, recv, write.
//!
//! Loop: `crates/engine/src/drivers/readiness/reactor.rs`. Page: `docs/explanation/models/select.md`.

use std::io;
use std::os::fd::RawFd;

use tenfold_sys::readiness::Ready;
use tenfold_sys::select::SelectSets;

use crate::drivers::readiness::selector::{Interest, Reporting, Selector};
use crate::drivers::readiness::serve;
use crate::plan::Plan;
use crate::protocol::Protocol;
use crate::worker::intake::Intake;

struct SelectSelector(SelectSets);

/// Serves until the server leaves.
pub(crate) fn run<P: Protocol>(plan: &Plan, intake: &Intake<'_>, protocol: &P) -> Result<(), String> {
    serve(Box::new(SelectSelector(SelectSets::new())), plan, intake, protocol)
}

impl Selector for SelectSelector {
    fn reporting(&self) -> Reporting {
        Reporting { errors: false, ..Reporting::default() }
    }

    fn admits(&self, number: RawFd) -> bool {
        SelectSets::fits(number)
    }

    fn watch(&mut self, number: RawFd, word: u64, interest: Interest) -> io::Result<()> {
        self.0.set(number, word, interest.read, interest.write)
    }

    fn forget(&mut self, number: RawFd) {
        self.0.remove(number);
    }

    fn wait(&mut self, milliseconds: Option<u32>, events: &mut Vec<Ready>) -> io::Result<()> {
        self.0.wait(milliseconds, |ready| events.push(ready))
    }
}
