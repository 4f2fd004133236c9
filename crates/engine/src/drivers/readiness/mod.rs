//! The readiness driver: a loop that waits for events and polls the tasks that wait for them.
//!
//! It is generic over the protocol; the mechanism is a [`selector::Selector`]. An idle connection is a slot. It gets a
//! task and memory when bytes arrive, and returns both when it is idle again.

mod accept;
mod closing;
mod executor;
mod io;
mod pool;
mod reactor;
pub(crate) mod selector;
mod serving;
#[cfg(test)]
mod tests;

use crate::plan::Plan;
use crate::plan::choice::Dispatch;
use crate::protocol::Protocol;
use crate::worker::intake::Intake;
use selector::Selector;

/// Runs the loop on `selector` until the server leaves, with the dispatch of the plan.
pub(crate) fn serve<P: Protocol>(
    selector: Box<dyn Selector>,
    plan: &Plan,
    intake: &Intake<'_>,
    protocol: &P,
) -> Result<(), String> {
    match plan.dispatch {
        Dispatch::Reactor => pool::serve_by_pool(selector, plan, intake, protocol),
        _ => reactor::serve_in_place(selector, plan, intake, protocol),
    }
}
