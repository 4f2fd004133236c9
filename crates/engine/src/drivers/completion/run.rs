//! Runs the loop.

use tenfold_sys::lifecycle::Phase;

use super::event_loop::CompletionLoop;
use super::io::RingIo;
use super::ring::OperationQueue;
use super::sources::Sources;
use crate::drivers::prefetch;
use crate::plan::Plan;
use crate::protocol::Protocol;
use crate::worker::connections::ConnectionTable;
use crate::worker::inbox::Inbox;
use crate::worker::intake::Intake;
use crate::worker::tasks::{Tasks, activation};
use crate::worker::tick::read_clock;

/// Runs the loop on its own `ring` until the server leaves.
pub(crate) fn serve<R: OperationQueue, P: Protocol>(
    ring: R,
    plan: &Plan,
    intake: &Intake<'_>,
    protocol: &P,
) -> Result<(), String> {
    let inbox = Inbox::new()?;
    let start = |io, memory| activation::<RingIo<R::Buffer>, P>(io, memory, protocol);
    let mut event_loop = CompletionLoop {
        ring,
        connections: ConnectionTable::new(plan, read_clock()),
        tasks: Tasks::new(inbox.clone()),
        again: Vec::new(),
        spare: Vec::new(),
        inbox,
        plan,
        protocol,
        start,
        readers: prefetch::readers(plan),
        past_bound: Vec::new(),
        leaving: 0,
        phase: Phase::Serving,
    };
    event_loop.run(Sources::new(intake, plan.accept))
}
