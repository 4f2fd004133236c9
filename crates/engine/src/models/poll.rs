//! `poll`: tries nonblocking calls first, and `poll(2)` reports when to try again.
//!
//! Every call passes the whole list of descriptors to the kernel, so the cost of a tick grows with all connections,
//! ready or not. Reports are level-triggered.
//!
//! System calls of a request on a keep-alive connection: poll, recv, write.
//!
//! Loop: `crates/engine/src/drivers/readiness/reactor.rs`. Page: `docs/explanation/models/poll.md`.

use std::io;
use std::os::fd::RawFd;

use tenfold_sys::poll::PollList;
use tenfold_sys::readiness::Ready;

use crate::drivers::readiness::selector::{Interest, Selector};
use crate::drivers::readiness::serve;
use crate::plan::Plan;
use crate::protocol::Protocol;
use crate::worker::intake::Intake;

struct PollSelector(PollList);

/// Serves until the server leaves.
pub(crate) fn run<P: Protocol>(plan: &Plan, intake: &Intake<'_>, protocol: &P) -> Result<(), String> {
    serve(Box::new(PollSelector(PollList::new())), plan, intake, protocol)
}

impl Selector for PollSelector {
    fn watch(&mut self, number: RawFd, word: u64, interest: Interest) -> io::Result<()> {
        self.0.set(number, word, interest.read, interest.write);
        Ok(())
    }

    fn forget(&mut self, number: RawFd) {
        self.0.remove(number);
    }

    fn wait(&mut self, milliseconds: Option<u32>, events: &mut Vec<Ready>) -> io::Result<()> {
        self.0.wait(milliseconds, |ready| events.push(ready))
    }
}
