//! What an admin listener wants to know of each response: its method and status, and its latency. Nothing here runs
//! without one.

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
        if let Some(tally) = self.worker.with(|local| local.tally) {
            measure(tally, outcome, method, response, began);
        }
    }

    /// Counts work that other threads do until its result comes, or the client goes.
    pub(super) fn count_work(&self, queued: bool) -> Option<PendingWork> {
        let tally = self.worker.with(|local| local.tally).filter(|_| self.observed)?;
        tally.add(if queued { Counter::WorkBegun } else { Counter::WorkRejected }, 1);
        queued.then_some(PendingWork(tally.among_others()))
    }
}

#[inline]
fn measure(
    tally: Tally,
    outcome: ResponseSummary,
    method: Method,
    response: &mut ResponseWriter<'_>,
    began: Instant,
) {
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

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::io::IoSlice;
    use std::sync::atomic::AtomicU64;

    use tenfold_http::Out;

    use super::*;
    use crate::status::counters::OBSERVED_WORDS;

    const LOOPS: u32 = 2000;

    /// Stages and sends responses. Returns nanoseconds for each.
    fn send(tally: Tally, observed: bool) -> f64 {
        let (mut out, start) = (Out::new(), Instant::now());
        for _ in 0..LOOPS {
            let began = observed.then(Instant::now);
            let mut response = ResponseWriter::http1(&mut out);
            response.body(black_box(&[b'x'; 300]));
            if let Some(began) = began {
                measure(tally, ResponseSummary::of(200, 0), Method::Get, &mut response, began);
            }
            black_box(out.memory(&mut [IoSlice::new(&[]); 8]));
            let length = out.len();
            out.advance(length);
        }
        start.elapsed().as_nanos() as f64 / f64::from(LOOPS)
    }

    /// The best of many short loops: other processes only add to the time.
    #[test]
    #[ignore = "a measurement, for optimised builds on an idle machine"]
    fn the_cost_of_an_observed_response() {
        let words: Vec<_> = (0..OBSERVED_WORDS).map(|_| AtomicU64::new(0)).collect();
        let tally = Tally::new(words.leak(), false);
        let best = |observed| (0..2000).map(|_| send(tally, observed)).fold(f64::MAX, f64::min);
        let (without, with) = (best(false), best(true));
        println!("{without:.1} ns without, {with:.1} ns with observation");
        assert!(with - without < 100.0, "{:.1} ns for each response", with - without);
    }
}
