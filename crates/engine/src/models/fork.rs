//! `fork`: a process per connection, which ends with its connection.
//!
//! The parent accepts, forks and reaps; a child serves its connection as `naive` does. Connections share no memory.
//!
//! At the connection limit, the parent asks the longest idle process to end.
//!
//! A child closes the listening sockets, so that a long connection does not keep their ports bound.
//!
//! System calls of a connection: accept4, fork, close in the parent; dup3 for each listening socket, recv,
//! write (or sendfile), …, exit in the child; wait4 in the parent, within a second.
//!
//! Loops: `crates/engine/src/drivers/blocking/accept.rs` for all connections,
//! `crates/engine/src/drivers/blocking/serve.rs` for one. Page: `docs/explanation/models/fork.md`.

use std::cell::RefCell;
use std::time::Duration;

use tenfold_http::Peer;
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::process::{self, Fork, Pid, WaitStatus};
use tenfold_sys::sacrifice;
use tenfold_sys::seccomp;
use tenfold_sys::shared::SharedRows;
use tenfold_sys::signal::Signal;

use crate::drivers::blocking::accept::accept_each;
use crate::drivers::blocking::io::IdleSince;
use crate::drivers::blocking::serve::serve;
use crate::plan::Plan;
use crate::protocol::{Event, Protocol};
use crate::worker::eviction::{MOST_LEAVING, Places};
use crate::worker::intake::{Intake, of_accepted};
use crate::worker::tick::read_clock;

/// The pause between two checks for the end of the last processes.
const LAST_LOOK: Duration = Duration::from_millis(10);
/// The number of these checks at shutdown before the remaining processes are killed.
const PATIENCE: u32 = 100;

/// The thousandths of memory by which a process of a connection counts more than its parent when memory runs out: more
/// than the parent and the supervisor occupy in a small group. The end of a connection costs least.
const OFFERED: i32 = 400;

/// Forks a process for each connection until the server leaves, and waits for all of them.
pub(crate) fn run<P: Protocol>(plan: &Plan, intake: &Intake<'_>, protocol: &P) -> Result<(), String> {
    let idle_since =
        SharedRows::new(1, plan.bounds.connections.saturating_add(MOST_LEAVING)).map_err(|error| {
            format!("cannot allocate memory for {} connections: {error}", plan.bounds.connections)
        })?;
    let children = Children { each: Places::default(), idle_since, reopened: lifecycle::reopened() };
    let children = RefCell::new(children);
    let parent = process::own();
    let look_round = || children.borrow_mut().look_after(protocol);
    let accepted = accept_each(intake.listeners, false, protocol, look_round, |socket, peer, listener| {
        let mut children = children.borrow_mut();
        if !children.make_room(plan, protocol, || protocol.admit(&of_accepted(peer))) {
            return;
        }
        let idle = children.begin();
        // Without this, both processes would write the buffered bytes.
        protocol.drain();
        match process::fork() {
            Ok(Fork::Child) => {
                let orphaned = !process::end_with(parent, Signal::Interrupt).unwrap_or(false);
                // The connection is served even if the system refuses.
                let _ = sacrifice::offer(OFFERED);
                let abandoned = intake.listeners.iter().all(|listener| listener.abandon().is_ok());
                if !orphaned && abandoned {
                    serve(&socket, peer, listener, plan, protocol, &idle);
                }
                protocol.drain();
                std::process::exit(0);
            }
            Ok(Fork::Parent(pid)) => {
                protocol.observe(Event::Accepted);
                children.each.insert((pid, of_accepted(peer)));
            }
            Err(_) => {
                protocol.on_close(|| of_accepted(peer));
                protocol.observe(Event::Exhausted);
            }
        }
    });
    children.borrow_mut().wait_for_all(protocol);
    protocol.drain();
    accepted
}

/// The processes that serve connections.
struct Children {
    /// The processes with their peers.
    each: Places<(Pid, Peer)>,
    /// Shared memory with a word for each process: see [`IdleSince`].
    idle_since: SharedRows,
    /// The number of requests to reopen logs that were forwarded to the children.
    reopened: u32,
}

impl Children {
    /// Whether a new connection that `admit` admits is served: within the bound, or after an eviction.
    fn make_room<P: Protocol>(&mut self, plan: &Plan, protocol: &P, admit: impl FnOnce() -> bool) -> bool {
        let full = self.each.count() - self.each.leaving() >= plan.bounds.connections;
        let evicted = if full { self.idle_one() } else { None };
        if full && evicted.is_none() {
            protocol.observe(Event::TooMany);
            return false;
        }
        let admitted = admit();
        if let Some(place) = evicted.filter(|_| admitted) {
            let &(pid, _) = self.each.evict(place);
            if !IdleSince(&self.idle_since.row(0)[place]).evict() {
                // A request that arrives meanwhile is still answered.
                process::send_signal(pid, Signal::Quit);
            }
            protocol.observe(Event::Evicted);
        }
        admitted
    }

    fn idle_one(&mut self) -> Option<usize> {
        let (now, idle_since) = (read_clock(), self.idle_since.row(0));
        self.each.longest_idle(|place, _| IdleSince(&idle_since[place]).idle_for(now))
    }

    /// The word of the next process, which is active at first.
    fn begin(&self) -> IdleSince<'_> {
        let idle = IdleSince(&self.idle_since.row(0)[self.each.next()]);
        idle.begin();
        idle
    }

    /// Reaps the processes that have ended, without blocking, and forwards requests to reopen logs.
    fn look_after<P: Protocol>(&mut self, protocol: &P) {
        while let Ok(Some((pid, end))) = process::reap() {
            if end == WaitStatus::Exited(seccomp::ENDED) {
                protocol.observe(Event::Trapped);
            }
            let place = self.each.iter().find_map(|(place, (other, _))| (*other == pid).then_some(place));
            if let Some(place) = place {
                let (_, peer) = self.each.remove(place);
                protocol.on_close(|| peer);
            }
            protocol.observe(Event::Closed);
        }
        if self.reopened != lifecycle::reopened() {
            self.reopened = lifecycle::reopened();
            self.tell(Signal::Reopen);
        }
    }

    fn tell(&self, signal: Signal) {
        self.each.iter().for_each(|(_, &(pid, _))| process::send_signal(pid, signal));
    }

    /// Waits for all processes, and sends each phase of the server to them.
    fn wait_for_all<P: Protocol>(&mut self, protocol: &P) {
        let (mut told, mut stopping) = (None, 0);
        loop {
            self.look_after(protocol);
            let phase = lifecycle::phase();
            if told != Some(phase) {
                self.tell(match phase {
                    Phase::Stopping => Signal::Interrupt,
                    Phase::Draining => Signal::Quit,
                    Phase::Retiring | Phase::Serving => Signal::Retire,
                });
                told = Some(phase);
            }
            if phase == Phase::Stopping {
                stopping += 1;
            }
            if stopping == PATIENCE {
                self.tell(Signal::Kill);
            }
            if self.each.count() == 0 {
                return;
            }
            std::thread::sleep(LAST_LOOK);
        }
    }
}
