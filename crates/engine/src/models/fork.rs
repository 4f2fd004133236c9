//! `fork`: a process per connection, which ends with its connection.
//!
//! The parent accepts, forks and waits for processes that have ended; a child serves its one connection
//! as `naive` does. What one connection does to memory, another never sees.
//!
//! System calls of a connection: accept4, fork, close in the parent; recv, send (or sendfile), …, exit in
//! the child; wait4 in the parent, within a second.

use std::cell::RefCell;
use std::time::Duration;

use tenfold_http::Peer;
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::process::{self, Fork, Pid};
use tenfold_sys::signal::Signal;
use tenfold_sys::socket::Listener;

use crate::driver::accepting::accept_each;
use crate::driver::{blocking, of_accepted};
use crate::plan::Plan;
use crate::protocol::{Event, Protocol};

/// Between two looks at whether the last processes have ended.
const LAST_LOOK: Duration = Duration::from_millis(10);
/// How often it looks, when the server stops, before processes that have not ended are killed.
const PATIENCE: u32 = 100;

/// Forks a process for each connection until the server leaves, and waits for all of them.
pub(crate) fn run<P: Protocol>(plan: &Plan, listeners: &[Listener], protocol: &P) -> Result<(), String> {
    let children = RefCell::new(Children { each: Vec::new(), reopened: lifecycle::reopened() });
    let parent = process::own();
    let look_round = || children.borrow_mut().look_after(protocol);
    let accepted = accept_each(listeners, false, protocol, look_round, |socket, peer, listener| {
        let mut children = children.borrow_mut();
        if children.each.len() >= plan.bounds.connections {
            return protocol.observe(Event::TooMany);
        }
        if !protocol.admit(&of_accepted(peer)) {
            return;
        }
        // What is buffered would leave twice.
        protocol.leave();
        match process::fork() {
            Ok(Fork::Child) => {
                let orphaned = !process::end_with(parent, Signal::Interrupt).unwrap_or(false);
                if !orphaned {
                    blocking::serve(socket, peer, listener, plan, protocol);
                }
                protocol.leave();
                std::process::exit(0);
            }
            Ok(Fork::Parent(pid)) => {
                protocol.observe(Event::Accepted);
                children.each.push((pid, of_accepted(peer)));
            }
            Err(_) => {
                protocol.dismiss(|| of_accepted(peer));
                protocol.observe(Event::Exhausted);
            }
        }
    });
    children.borrow_mut().wait_for_all(protocol);
    protocol.leave();
    accepted
}

/// The processes that serve connections.
struct Children {
    /// Each with whom it serves.
    each: Vec<(Pid, Peer)>,
    /// How often logs were asked to be opened anew, as far as the children were told.
    reopened: u32,
}

impl Children {
    /// Waits for those that have ended, but not for others; hands on what this process was told.
    fn look_after<P: Protocol>(&mut self, protocol: &P) {
        while let Ok(Some((pid, _))) = process::reap() {
            if let Some(place) = self.each.iter().position(|(other, _)| *other == pid) {
                let (_, peer) = self.each.swap_remove(place);
                protocol.dismiss(|| peer);
            }
            protocol.observe(Event::Closed);
        }
        if self.reopened != lifecycle::reopened() {
            self.reopened = lifecycle::reopened();
            self.tell(Signal::Reopen);
        }
    }

    fn tell(&self, signal: Signal) {
        self.each.iter().for_each(|&(pid, _)| process::tell(pid, signal));
    }

    /// Lets them finish what they have begun; when the server stops, stops them.
    fn wait_for_all<P: Protocol>(&mut self, protocol: &P) {
        let (mut told, mut stopping) = (None, 0);
        loop {
            self.look_after(protocol);
            let phase = lifecycle::phase();
            if told != Some(phase) {
                self.tell(if phase == Phase::Stopping { Signal::Interrupt } else { Signal::Quit });
                told = Some(phase);
            }
            if phase == Phase::Stopping {
                stopping += 1;
            }
            if stopping == PATIENCE {
                self.tell(Signal::Kill);
            }
            if self.each.is_empty() {
                return;
            }
            std::thread::sleep(LAST_LOOK);
        }
    }
}
