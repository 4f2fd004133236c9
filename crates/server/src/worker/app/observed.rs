//! The method, status and latency of each response, counted for the admin listener. Without one, this code does not
//! run.

use std::time::Instant;

use tenfold_http::{Method, ResponseWriter};
use tenfold_site::ResponseSummary;

use super::state::SharedService;
use crate::status::counters::{Counter, Tally};
use crate::status::latency::Until;

impl SharedService {
    /// Counts a response that is staged, and measures when it has left. The head of its request was complete when it
    /// `began`.
    ///
    /// A response in memory leaves with its first byte as a rule, so one reading of the clock is both. For any other, the
    /// first byte is ready now.
    pub(super) fn observe_response(
        &self,
        outcome: ResponseSummary,
        method: Method,
        response: &mut ResponseWriter<'_>,
        began: Instant,
    ) {
        let Some(tally) = self.worker.with(|local| local.tally) else { return };
        tally.request(method, outcome.status());
        if outcome.is_from_cache() {
            tally.add(Counter::CacheHits, 1);
        }
        let plain = response.is_plain();
        if !plain {
            tally.time(Until::FirstByte, nanoseconds(began));
        }
        response.observe(Box::new(move |report| {
            let time = nanoseconds(began);
            if plain {
                tally.time(Until::FirstByte, time);
            }
            if report.unsent == 0 {
                tally.time(Until::LastByte, time);
            }
        }));
    }

    /// Counts work that other threads do until its result comes, or the client goes.
    pub(super) fn count_work(&self, queued: bool) -> Option<PendingWork> {
        let tally = self.worker.with(|local| local.tally).filter(|_| self.observed)?;
        tally.add(if queued { Counter::WorkBegun } else { Counter::WorkRejected }, 1);
        queued.then_some(PendingWork(tally.among_others()))
    }
}

fn nanoseconds(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Work that is counted as pending until this is dropped.
pub(super) struct PendingWork(Tally);

impl Drop for PendingWork {
    fn drop(&mut self) {
        self.0.add(Counter::WorkEnded, 1);
    }
}
