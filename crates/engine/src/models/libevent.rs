//! `libevent`: readiness through the library, which chooses the system call: epoll unless configured
//! otherwise.
//!
//! Each connection has an event, whose callback only records the event; the loop is that of `epoll`. Changing interest
//! ends a registration and creates a new one. The library does not watch a connection without interest, so the next
//! call notices a peer that has left.
//!
//! System calls of a request on a keep-alive connection: the method's wait, recv, write. With the method
//! epoll, `epoll_ctl` comes at a connection's first wait and at its end.
//!
//! Loop: `crates/engine/src/drivers/readiness/reactor.rs`. Page: `docs/explanation/models/libevent.md`.

use std::io;
use std::os::fd::RawFd;

use tenfold_sys::libevent::{self, LibeventBase};
use tenfold_sys::readiness::Ready;
use tenfold_sys::select::SelectSets;

use crate::drivers::readiness::selector::{Interest, Reporting, Selector};
use crate::drivers::readiness::serve;
use crate::plan::Plan;
use crate::plan::choice::{Dispatch, Trigger};
use crate::plan::mechanism::Facility;
use crate::protocol::Protocol;
use crate::worker::intake::Intake;

struct LibeventSelector {
    base: LibeventBase,
    edge_listener: bool,
    edge_connections: bool,
    /// Whether a connection's registration ends with its first event.
    one_shot: bool,
}

/// Serves until the server leaves.
pub(crate) fn run<P: Protocol>(plan: &Plan, intake: &Intake<'_>, protocol: &P) -> Result<(), String> {
    serve(Box::new(selector(plan)?), plan, intake, protocol)
}

fn selector(plan: &Plan) -> Result<LibeventSelector, String> {
    let method = plan.method.map(|method| method.to_string());
    let base = LibeventBase::new(method.as_deref());
    Ok(LibeventSelector {
        base: base.map_err(|error| format!("cannot create a libevent event base: {error}"))?,
        edge_listener: plan.triggers.listener == Trigger::Edge,
        edge_connections: plan.triggers.connections == Trigger::Edge,
        one_shot: plan.dispatch == Dispatch::Reactor,
    })
}

/// Fails with the facility that this build or kernel lacks, and the error.
pub(crate) fn probe() -> Result<(), (Facility, String)> {
    LibeventBase::new(None).map(drop).map_err(|error| (Facility::Libevent, error.to_string()))
}

/// The method that the library uses by default, if this build has it.
pub fn method() -> Option<&'static str> {
    LibeventBase::new(None).ok().map(|base| base.method())
}

impl Selector for LibeventSelector {
    fn reporting(&self) -> Reporting {
        let edge = self.edge_connections && !self.one_shot;
        Reporting { one_shot: self.one_shot, edge, errors: false, events: true }
    }

    fn admits(&self, number: RawFd) -> bool {
        // A larger descriptor can abort the process: see `Plan::waits_in_select`.
        self.base.method() != "select" || SelectSets::fits(number)
    }

    fn watch_source(&mut self, number: RawFd, word: u64) -> io::Result<()> {
        let interest =
            libevent::LibeventInterest { read: true, write: false, edge: self.edge_listener, once: false };
        self.base.set(number, word, interest)
    }

    fn watch(&mut self, number: RawFd, word: u64, interest: Interest) -> io::Result<()> {
        let interest = libevent::LibeventInterest {
            read: interest.read,
            write: interest.write,
            edge: self.edge_connections,
            once: self.one_shot,
        };
        self.base.set(number, word, interest)
    }

    fn forget(&mut self, number: RawFd) {
        self.base.remove(number);
    }

    fn wait(&mut self, milliseconds: Option<u32>, events: &mut Vec<Ready>) -> io::Result<()> {
        self.base.wait(milliseconds, |ready| events.push(ready))
    }
}
