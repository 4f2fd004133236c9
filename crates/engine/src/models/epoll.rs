//! `epoll`: tries nonblocking calls first, and `epoll_wait(2)` reports when to try again.
//!
//! With edge triggering, the default for connections, interest is registered once, and an event is remembered until a
//! call returns EAGAIN. With level triggering, interest follows the current wait, so that other events do not make the
//! loop spin. A connection waits for room only after an incomplete send.
//!
//! System calls of a request on a keep-alive connection: epoll_wait, recv, write. `epoll_ctl` comes once a
//! connection, at its first wait; `close(2)` ends the registration.
//!
//! Loop: `crates/engine/src/drivers/readiness/reactor.rs`. Page: `docs/explanation/models/epoll.md`.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use tenfold_sys::epoll::{self, Epoll, Registry};
use tenfold_sys::readiness::Ready;

use crate::drivers::readiness::selector::{Interest, Rearm, Reporting, Selector};
use crate::drivers::readiness::serve;
use crate::plan::Plan;
use crate::plan::choice::{Dispatch, Topology, Trigger};
use crate::plan::mechanism::Facility;
use crate::protocol::Protocol;
use crate::worker::intake::Intake;

/// The most events of one wait.
const BATCH: usize = 512;

struct EpollSelector {
    epoll: Epoll,
    /// A handle for pool threads, if a registration ends with its first event.
    registry: Option<Arc<Registrations>>,
    edge_listener: bool,
    edge_connections: bool,
    /// Whether other workers wait on the same listening sockets.
    shared: bool,
}

/// Serves until the server leaves.
pub(crate) fn run<P: Protocol>(plan: &Plan, intake: &Intake<'_>, protocol: &P) -> Result<(), String> {
    serve(Box::new(selector(plan)?), plan, intake, protocol)
}

fn selector(plan: &Plan) -> Result<EpollSelector, String> {
    let failed = |error| format!("cannot make an epoll instance: {error}");
    let epoll = Epoll::new(BATCH).map_err(failed)?;
    let edge = plan.triggers.connections == Trigger::Edge;
    let registry = match plan.dispatch {
        Dispatch::Reactor => {
            Some(Arc::new(Registrations { registry: epoll.registry().map_err(failed)?, edge }))
        }
        Dispatch::Inline | Dispatch::Proactor => None,
    };
    Ok(EpollSelector {
        epoll,
        registry,
        edge_listener: plan.triggers.listener == Trigger::Edge,
        edge_connections: edge,
        shared: plan.topology == Topology::Threads,
    })
}

/// Fails with the facility that this kernel lacks, and the system's error.
pub(crate) fn probe() -> Result<(), (Facility, String)> {
    Epoll::new(BATCH).map(drop).map_err(|error| (Facility::Epoll, error.to_string()))
}

fn registration(interest: Interest, edge: bool, once: bool) -> epoll::EpollInterest {
    epoll::EpollInterest { read: interest.read, write: interest.write, edge, exclusive: false, once }
}

impl EpollSelector {
    fn registration(&self, interest: Interest) -> epoll::EpollInterest {
        registration(interest, self.edge_connections, self.registry.is_some())
    }
}

/// `epoll_ctl(2)` may be called by any thread, also while the loop waits.
struct Registrations {
    registry: Registry,
    edge: bool,
}

impl Rearm for Registrations {
    fn rearm(&self, number: RawFd, word: u64, interest: Interest) -> io::Result<()> {
        self.registry.modify(number, word, registration(interest, self.edge, true))
    }
}

impl Selector for EpollSelector {
    fn reporting(&self) -> Reporting {
        let one_shot = self.registry.is_some();
        // A renewed registration reports the current state, so no edge is lost.
        Reporting { one_shot, edge: self.edge_connections && !one_shot, errors: true, events: true }
    }

    fn rearm(&self) -> Option<Arc<dyn Rearm>> {
        self.registry.clone().map(|registry| registry as Arc<dyn Rearm>)
    }

    fn watch_source(&mut self, number: RawFd, word: u64) -> io::Result<()> {
        let (edge, exclusive) = (self.edge_listener, self.shared);
        let interest = epoll::EpollInterest { read: true, write: false, edge, exclusive, once: false };
        self.epoll.add(number, word, interest)
    }

    fn watch(&mut self, number: RawFd, word: u64, interest: Interest) -> io::Result<()> {
        self.epoll.add(number, word, self.registration(interest))
    }

    fn change(&mut self, number: RawFd, word: u64, interest: Interest) -> io::Result<()> {
        self.epoll.modify(number, word, self.registration(interest))
    }

    fn forget(&mut self, number: RawFd) {
        // It fails only if there is no registration.
        let _ = self.epoll.delete(number);
    }

    /// `close(2)` ends the registration.
    fn closing(&mut self, _number: RawFd) {}

    fn wait(&mut self, milliseconds: Option<u32>, events: &mut Vec<Ready>) -> io::Result<()> {
        events.extend(self.epoll.wait(milliseconds)?);
        Ok(())
    }
}
