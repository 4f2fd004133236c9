//! The check of a record from another machine, which may hold any numbers.

use std::time::Duration;

use tenfold_agents::fleet::safe;

use crate::measure::histogram::Counts;
use crate::measure::record::{ProcessorTime, Record, Timing};
use crate::plan::{LoadPlan, nanoseconds};

/// The largest count. Sums of a thousand records fit.
const MOST: u64 = 1 << 50;
/// The most entries of a map.
const MOST_ENTRIES: usize = 64;
/// The most slices of a record.
const MOST_SLICES: usize = 1 << 12;
/// The precision of processor times in nanoseconds.
const TICK: u64 = 10_000_000;
/// The time that an agent may add to a run.
const SLACK: Duration = Duration::from_secs(2);

impl Record {
    /// Checks a record that another machine made of `plan` within `passed`. `slice` is the length of its first slices.
    /// Texts are made safe.
    ///
    /// # Errors
    /// A number is impossible, so that sums would overflow or mislead.
    pub(crate) fn check(&mut self, plan: &LoadPlan, slice: u64, passed: Duration) -> Result<(), String> {
        let joined = self.slice_length.checked_div(slice).unwrap_or_default();
        if !joined.is_power_of_two() || !self.slice_length.is_multiple_of(slice) || self.slice_length > MOST {
            return Err(format!("slices of {} ns", self.slice_length));
        }
        let most_time = nanoseconds(passed + SLACK);
        if self.elapsed > most_time {
            return Err(format!("a run of {} ns within {} ns", self.elapsed, most_time));
        }
        let threads = plan.workers_here() as usize;
        let sizes = [
            (self.processor_times.len(), threads),
            (self.slices.len(), MOST_SLICES),
            (self.statuses.len(), 500),
            (self.tls.ciphers.len(), MOST_ENTRIES),
            (self.http2.resets.len(), MOST_ENTRIES),
            (self.http2.goaways.len(), MOST_ENTRIES),
        ];
        if let Some((count, most)) = sizes.into_iter().find(|(count, most)| count > most) {
            return Err(format!("a list of {count} entries; the limit is {most}"));
        }
        let long = (self.slices.len() as u64).saturating_mul(self.slice_length);
        if long > most_time.saturating_add(2 * self.slice_length) {
            return Err(format!("{} slices of {} ns", self.slices.len(), self.slice_length));
        }
        if self.processor_times.len() != threads {
            return Err(format!("{} workers instead of {threads}", self.processor_times.len()));
        }
        if self.elapsed < nanoseconds(plan.duration.unwrap_or_default())
            && self.is_whole()
            && plan.requests.is_none()
        {
            return Err(format!("a run of {} ns, which is shorter than planned", self.elapsed));
        }
        // Times of processors are exact to a tick of the kernel.
        let is_time = |time: &ProcessorTime| time.passed <= self.elapsed && time.used <= time.passed + TICK;
        if !self.processor_times.iter().all(is_time) {
            return Err("more processor time than the run".to_owned());
        }
        if self.statuses.keys().any(|status| !(100..600).contains(status)) {
            return Err("a status that is not of HTTP".to_owned());
        }
        let slots = plan.share_of(u64::from(plan.active()));
        if plan.hold.is_none() && self.connections.slots != slots {
            return Err(format!("{} connections instead of {slots}", self.connections.slots));
        }
        let greatest = self.greatest_count();
        if greatest > MOST {
            return Err(format!("a count of {greatest}"));
        }
        let times = self.slices.iter().flat_map(|slice| &slice.times).chain([&self.delay]);
        if times.map(Counts::checked_len).any(|count| count.is_none_or(|count| count > MOST)) {
            return Err("more latencies than a run can have".to_owned());
        }
        let answers: u64 = self.slices.iter().map(|slice| slice.answers).sum();
        let timed =
            |kind: Timing| self.slices.iter().map(|slice| slice.times[kind as usize].len()).sum::<u64>();
        let latencies = timed(Timing::Same) + timed(Timing::Latency);
        if answers != latencies {
            return Err(format!("{answers} responses with {latencies} latencies"));
        }
        if let Some(all) = plan.requests.map(|all| plan.share_of(all)).filter(|all| answers > *all) {
            return Err(format!("{answers} responses to {all} requests"));
        }
        if !self.connections.shares.is_possible() {
            return Err("impossible sums of shares".to_owned());
        }
        self.examples.values_mut().for_each(|text| *text = safe(text));
        self.failure = self.failure.take().map(|text| safe(&text));
        for map in [&mut self.tls.ciphers, &mut self.http2.resets, &mut self.http2.goaways] {
            *map = std::mem::take(map).into_iter().map(|(name, count)| (safe(&name), count)).collect();
        }
        Ok(())
    }

    /// Whether the run ended by its plan.
    fn is_whole(&self) -> bool {
        !self.interrupted && self.failure.is_none()
    }

    /// Returns the greatest number that sums over machines contain.
    fn greatest_count(&self) -> u64 {
        let connections = &self.connections;
        let counts = [
            self.unfinished,
            self.longest_wait,
            self.due,
            connections.slots,
            connections.made,
            connections.most_at_once,
            connections.never_answered,
            connections.never_connected,
            connections.ended_idle,
            connections.idle_held,
            connections.slow_answers,
            connections.due,
            self.tls.full,
            self.tls.resumed,
            self.tls.truncated,
        ];
        let slices = self.slices.iter().flat_map(|slice| [slice.answers, slice.sent, slice.bytes]);
        let maps = [&self.tls.ciphers, &self.http2.resets, &self.http2.goaways];
        let all = counts
            .into_iter()
            .chain(slices)
            .chain(self.errors.values().copied())
            .chain(self.statuses.values().copied())
            .chain(maps.into_iter().flat_map(|map| map.values().copied()))
            .chain(self.processor_times.iter().flat_map(|time| [time.used, time.passed]));
        all.max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::measure::record::{ErrorKind, ProcessorTime};
    use crate::measure::recorder::Recorder;
    use crate::plan::LoadPlan;
    use crate::report::output;
    use crate::report::summary::{LoadReport, RunSummary};

    const SLICE: u64 = 10_000_000;
    const PASSED: Duration = Duration::from_secs(2);

    fn plan() -> LoadPlan {
        let urls = vec!["http://127.0.0.1/".parse().expect("a URL")];
        LoadPlan { duration: Some(Duration::from_secs(1)), ..LoadPlan::new(urls) }
    }

    /// The record of these response times in nanoseconds, of a run of a second.
    fn record(times: &[u64]) -> Record {
        let mut recorder = Recorder::new(0, SLICE);
        for (number, time) in (0..).zip(times) {
            let at = 1_000_000_000 * number / times.len() as u64;
            recorder.end_slices(at);
            recorder.answered(at.saturating_sub(*time), at.saturating_sub(*time), at, at);
        }
        let mut record = recorder.finish(1_000_000_000);
        record.elapsed = 1_000_000_000;
        record.processor_times = vec![ProcessorTime { used: 1, passed: 1_000_000_000 }];
        record.fail(ErrorKind::Reset, 1, || "reset\x1b[31m".to_owned());
        record.statuses.insert(200, times.len() as u64);
        record.connections.slots = 10;
        record
    }

    /// Replaces the numbers, texts and lists at some places by other values.
    fn spoil(value: &mut Value, places: &mut dyn Iterator<Item = Option<Value>>) {
        match value {
            Value::Array(all) => all.iter_mut().for_each(|one| spoil(one, places)),
            Value::Object(all) => all.values_mut().for_each(|one| spoil(one, places)),
            _ => {}
        }
        if let Some(Some(other)) = places.next() {
            *value = other;
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_record_of_any_numbers_is_refused_or_harmless(
            begin in 0usize..400,
            kinds in proptest::collection::vec(0usize..10, 1..6),
        ) {
            let others = [
                json!(u64::MAX), json!(0), json!(1u64 << 49), json!(-1), json!(1e308), json!(null),
                json!([]), json!("\u{1b}[2J"), json!([[u64::MAX, u64::MAX], [1, u64::MAX]]), json!(7),
            ];
            let mut text = serde_json::to_value(record(&[1_000, 2_000_000, 5])).expect("a record");
            let spoiled = kinds.iter().map(|kind| Some(others[*kind].clone()));
            let mut places = std::iter::repeat_n(None, begin).chain(spoiled);
            spoil(&mut text, &mut places);
            let Ok(mut found) = serde_json::from_value::<Record>(text) else { return Ok(()) };
            let plan = plan();
            if found.check(&plan, SLICE, PASSED).is_ok() {
                let mut sum = record(&[1, 2, 3]);
                (0..3).for_each(|_| sum.add(found.clone()));
                let runs = vec![RunSummary::new(&plan, &sum)];
                let text = output::text(&LoadReport { runs, ..LoadReport::default() });
                // The example of our own record is not from another machine.
                prop_assert!(!text.replace("reset\x1b[31m", "").contains('\x1b'), "{text}");
            }
        }

        #[test]
        fn percentiles_of_several_machines_are_those_of_one(
            times in proptest::collection::vec(1u64..5_000_000_000, 3..300),
            machines in 1usize..5,
        ) {
            let plan = plan();
            let mut parts: Vec<Vec<u64>> = vec![Vec::new(); machines];
            times.iter().enumerate().for_each(|(number, time)| parts[number % machines].push(*time));
            let mut sum = Record::default();
            for part in parts.iter().filter(|part| !part.is_empty()) {
                // Through JSON, as the record of an agent arrives.
                let text = serde_json::to_string(&whole(part)).expect("a record");
                sum.add(serde_json::from_str(&text).expect("a record"));
            }
            let (ours, theirs) = (RunSummary::new(&plan, &sum), RunSummary::new(&plan, &whole(&times)));
            let values = |found: &RunSummary| found.latency_us.as_ref().map(|latency| {
                (latency.count, latency.percentiles.clone(), latency.min.to_bits(), latency.max.to_bits())
            });
            prop_assert_eq!(values(&ours), values(&theirs));
        }
    }

    /// A record with these response times in one slice.
    fn whole(times: &[u64]) -> Record {
        let mut recorder = Recorder::new(0, SLICE);
        let end = 6_000_000_000;
        times.iter().for_each(|time| recorder.answered(end - time, end - time, end, end));
        let mut record = recorder.finish(SLICE / 2);
        record.elapsed = SLICE;
        record.processor_times = vec![ProcessorTime { used: 1, passed: SLICE }];
        record
    }

    #[test]
    fn a_true_record_passes_and_an_impossible_record_has_a_reason() {
        let plan = plan();
        let mut good = record(&[1_000, 2_000]);
        assert_eq!(good.check(&plan, SLICE, PASSED), Ok(()));
        assert_eq!(good.examples[&ErrorKind::Reset], "reset [31m");
        for (change, says) in [
            ((|record| record.slice_length = 0) as fn(&mut Record), "slices of 0 ns"),
            (|record| record.slice_length = 3 * SLICE, "slices of 30000000 ns"),
            (|record| record.elapsed = u64::MAX, "a run of"),
            (|record| record.slices.resize_with(4_000, Default::default), "4000 slices"),
            (|record| record.slices.resize_with(5_000, Default::default), "a list of 5000 entries"),
            (|record| record.elapsed = 900_000_000, "shorter than planned"),
            (|record| record.slices[0].answers += 1, "2 responses with 1 latencies"),
            (|record| record.processor_times[0].used = 2_000_000_000, "more processor time"),
            (|record| record.connections.slots = 9, "9 connections instead of 10"),
            (|record| record.statuses.extend([(65_535, 1)]), "not of HTTP"),
            (|record| record.processor_times.clear(), "0 workers instead of 1"),
            (|record| record.unfinished = u64::MAX, "a count of"),
        ] {
            let mut bad = record(&[1_000]);
            change(&mut bad);
            let why = bad.check(&plan, SLICE, PASSED).expect_err(says);
            assert!(why.contains(says), "{why}");
        }
    }
}
