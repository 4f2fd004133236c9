//! A row of the table of models.

use std::fmt;

use tenfold_sys::seccomp::Call;

use super::calls::Step;
use crate::plan::choice::{Dispatch, Engine, Sender, Topology};
use crate::plan::mechanism::{Driver, Facility};

/// What is known of a model before it runs.
#[derive(Debug)]
pub struct Model {
    /// The model.
    pub engine: Engine,
    /// Its name in flags, variables and files.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// How it drives connections.
    pub driver: Driver,
    /// The system calls of a connection's life. The sandbox allows them, and what [`Model::setup`] and the sender
    /// add; the prose of `tenfold engines` is printed from them ([`Steps`]).
    pub calls: &'static [Step],
    /// Those before the first connection.
    pub setup: &'static [Call],
    /// What it needs of the kernel beyond sockets; probed before it runs.
    pub needs: &'static [Facility],
    /// The topologies it runs in, the default first.
    pub topologies: &'static [Topology],
    /// The senders it has.
    pub senders: &'static [Sender],
    /// Whether `--trigger` means something to it.
    pub triggers: bool,
    /// How the work of a connection is divided between a loop and a pool, the default first; nothing to
    /// divide where there is no loop, or where it does nothing but hand over.
    pub dispatches: &'static [Dispatch],
    /// Under [`Dispatch::Reactor`], who registers a connection anew when a thread of the pool is done with it.
    pub rearms: Option<Rearms>,
    /// How many connections it serves at once, in words.
    pub at_once: &'static str,
    /// The memory that each worker locks, of what its user may lock (`ulimit -l`).
    pub locked_bytes: u64,
    /// Returns the facilities that are missing, with what the system said.
    pub(crate) probe: fn() -> Vec<(Facility, String)>,
    /// The file that implements it.
    pub file: &'static str,
}

/// Who tells the mechanism that a connection waits again, when a thread of the pool has served it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rearms {
    /// The thread itself: the mechanism may be used by several.
    Direct,
    /// The loop, which is woken and finds it in its mailbox.
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
