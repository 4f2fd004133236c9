//! `epoll`: non-blocking calls are tried first, and `epoll_wait(2)` says when to try again.
//!
//! Edge-triggered (the default for connections), interest is registered once and every event is
//! remembered until a call says EAGAIN. Level-triggered, interest follows what is waited for, so that a
//! connection that waits for something else does not make the loop spin. Room to write is asked for only
//! after a send that did not fit.
//!
//! System calls of a request on a keep-alive connection: epoll_wait, recv, send. `epoll_ctl` comes once a
//! connection, at its first wait; `close(2)` ends the registration.

use std::io;
use std::os::fd::RawFd;

use tenfold_sys::epoll::{Epoll, Interest};

use super::Intake;
use crate::driver::readiness::selector::{Event, READING, Selector, WRITING};
use crate::driver::readiness::serve;
use crate::plan::{Plan, Topology, Trigger};
use crate::protocol::Protocol;
use crate::table::Facility;

/// Events that one wait brings at most.
const BATCH: usize = 512;

struct EpollSelector {
    epoll: Epoll,
    edge_listener: bool,
    edge_connections: bool,
    /// Whether other workers wait on the same listening sockets.
    shared: bool,
}

/// Serves until the server leaves.
pub(crate) fn run<P: Protocol>(plan: &Plan, intake: &Intake<'_>, protocol: &P) -> Result<(), String> {
    let selector = EpollSelector {
        epoll: Epoll::new(BATCH).map_err(|error| format!("cannot make an epoll instance: {error}"))?,
        edge_listener: plan.triggers.listener == Trigger::Edge,
        edge_connections: plan.triggers.connections == Trigger::Edge,
        shared: plan.topology == Topology::Threads,
    };
    serve(selector, plan, intake, protocol)
}

/// What is missing on this kernel, with what the system said.
pub(crate) fn probe() -> Vec<(Facility, String)> {
    match Epoll::new(BATCH) {
        Ok(_) => Vec::new(),
        Err(error) => vec![(Facility::Epoll, error.to_string())],
    }
}

impl EpollSelector {
    fn interest(&self, bits: u8) -> Interest {
        Interest {
            read: bits & READING != 0,
            write: bits & WRITING != 0,
            edge: self.edge_connections,
            exclusive: false,
        }
    }
}

impl Selector for EpollSelector {
    fn edge(&self) -> bool {
        self.edge_connections
    }

    fn watch_source(&mut self, number: RawFd, word: u64) -> io::Result<()> {
        let interest =
            Interest { read: true, write: false, edge: self.edge_listener, exclusive: self.shared };
        self.epoll.add(number, word, interest)
    }

    fn watch(&mut self, number: RawFd, word: u64, interest: u8) -> io::Result<()> {
        self.epoll.add(number, word, self.interest(interest))
    }

    fn change(&mut self, number: RawFd, word: u64, interest: u8) -> io::Result<()> {
        self.epoll.modify(number, word, self.interest(interest))
    }

    fn forget(&mut self, number: RawFd) {
        // It fails only when there is no such registration, and none is what is wanted.
        let _ = self.epoll.delete(number);
    }

    fn wait(&mut self, milliseconds: Option<u32>, events: &mut Vec<Event>) -> io::Result<()> {
        events.extend(self.epoll.wait(milliseconds)?.map(Event::from));
        Ok(())
    }
}
