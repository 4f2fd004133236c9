//! A row of the table of models.

use std::fmt;

use tenfold_sys::seccomp::Call;

use super::calls::Step;
use crate::plan::choice::{Dispatch, Engine, Sender, Topology};
use crate::plan::mechanism::{Driver, Facility};

/// The static description of a model.
#[derive(Debug)]
pub struct Model {
    /// The model.
    pub engine: Engine,
    /// Its name in flags, variables and files.
    pub name: &'static str,
    /// A summary in one line.
    pub summary: &'static str,
    /// The condition under which to choose it, after "take it when".
    pub take_it_when: &'static str,
    /// The driver of its connections.
    pub driver: Driver,
    /// The system calls of a connection's life. The sandbox allows them, and what [`Model::setup`] and the sender
    /// add; the prose of `tenfold engines` is printed from them ([`crate::Steps`]).
    pub calls: &'static [Step],
    /// The system calls before the first connection.
    pub setup: &'static [Call],
    /// The facilities that it needs beyond sockets; probed before it runs.
    pub needs: &'static [Facility],
    /// The topologies it runs in, the default first.
    pub topologies: &'static [Topology],
    /// The senders it has.
    pub senders: &'static [Sender],
    /// Whether its triggers can be chosen.
    pub triggers: bool,
    /// The dispatches that it supports, the default first: only `inline` for models without a readiness loop.
    pub dispatches: &'static [Dispatch],
    /// Under [`Dispatch::Reactor`], the thread that renews the registration of a connection after a pool thread has
    /// served it.
    pub rearms: Option<Rearms>,
    /// The number of connections that it serves concurrently, in words.
    pub connections: &'static str,
    /// The locked memory of each worker (`ulimit -l`).
    pub locked_bytes: u64,
    /// Fails with the facility that is missing, and the error of the system.
    pub(crate) probe: fn() -> Result<(), (Facility, String)>,
    /// The file that implements it.
    pub file: &'static str,
}

/// The thread that renews the registration of a connection after a pool thread has served it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rearms {
    /// The pool thread: several threads can use the mechanism.
    Direct,
    /// The loop, which gets the connection from its mailbox.
    Mailbox,
}

impl fmt::Display for Rearms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rearms::Direct => "directly",
            Rearms::Mailbox => "by mailbox",
        })
    }
}

impl Model {
    /// Every call of a connection's life and of the start.
    pub fn all_calls(&self) -> impl Iterator<Item = Call> {
        self.calls.iter().flat_map(|step| step.calls).chain(self.setup).copied()
    }
}
