//! The check of a record from another machine, which may hold any numbers.

use std::time::Duration;

use tenfold_agents::fleet::safe;

use crate::measure::histogram::Counts;
use crate::measure::record::Record;
use crate::plan::{LoadPlan, nanoseconds};

/// The largest count. Sums of a thousand records fit.
const MOST: u64 = 1 << 50;
/// The most entries of a list or a map.
const MOST_ENTRIES: usize = 1 << 16;
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
        let long = (self.slices.len() as u64).saturating_mul(self.slice_length);
        if long > most_time.saturating_add(2 * self.slice_length) {
            return Err(format!("{} slices of {} ns", self.slices.len(), self.slice_length));
        }
        let threads = plan.workers_here() as usize;
        let sizes = [
            (self.processor_times.len(), threads),
            (self.errors.len(), MOST_ENTRIES),
            (self.examples.len(), MOST_ENTRIES),
            (self.statuses.len(), MOST_ENTRIES),
            (self.tls.ciphers.len(), MOST_ENTRIES),
            (self.http2.resets.len(), MOST_ENTRIES),
            (self.http2.goaways.len(), MOST_ENTRIES),
        ];
        if let Some((count, most)) = sizes.into_iter().find(|(count, most)| count > most) {
            return Err(format!("a list of {count} entries; the limit is {most}"));
        }
        if self.processor_times.len() != threads {
            return Err(format!("{} workers instead of {threads}", self.processor_times.len()));
        }
        let greatest = self.greatest_count();
        if greatest > MOST {
            return Err(format!("a count of {greatest}"));
        }
        let times = self.slices.iter().flat_map(|slice| &slice.times).chain([&self.delay]);
        if times.map(Counts::checked_len).any(|count| count.is_none_or(|count| count > MOST)) {
            return Err("more latencies than a run can have".to_owned());
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
