//! Runs the loop with the dispatch of a plan.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::executor::{Dispatched, Executor, PolledTask};
use super::io::ReadinessIo;
use super::pool::serve_by_pool;
use super::reactor::Reactor;
use super::selector::Selector;
use crate::plan::Plan;
use crate::plan::choice::Dispatch;
use crate::protocol::Protocol;
use crate::worker::inbox::Inbox;
use crate::worker::intake::Intake;
use crate::worker::slots::Key;
use crate::worker::tasks::{Tasks, activation};

/// The loop polls its tasks itself.
struct InPlace;

impl<F: Future> Executor<F> for InPlace {
    const AWAY: bool = false;

    #[inline]
    fn poll(
        &mut self,
        tasks: &mut Tasks<F, ReadinessIo, PolledTask>,
        _key: Key,
        number: u32,
        _registered: bool,
    ) -> Dispatched<F> {
        Dispatched::Polled(catch_unwind(AssertUnwindSafe(|| tasks.poll(number))))
    }
}

/// Runs the loop on `selector` until the server leaves, with the dispatch of the plan.
pub(crate) fn serve<P: Protocol>(
    selector: Box<dyn Selector>,
    plan: &Plan,
    intake: &Intake<'_>,
    protocol: &P,
) -> Result<(), String> {
    if plan.dispatch == Dispatch::Reactor {
        return serve_by_pool(selector, plan, intake, protocol);
    }
    let inbox = Inbox::new().map_err(|error| format!("cannot make an eventfd: {error}"))?;
    let inbox = Arc::new(inbox);
    let start = |io, memory| activation::<ReadinessIo, P>(io, memory, protocol);
    Reactor::new(selector, (plan, intake), inbox, protocol, start, InPlace).serve(intake)
}
