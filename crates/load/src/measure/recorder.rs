//! The recorder of a worker: a few additions per request, and no allocation.

use hdrhistogram::Histogram;

use crate::measure::histogram::{self, Counts};
use crate::measure::record::{Record, TIMINGS, TimeSlice, Timing};

/// The most slices; beyond that, pairs of slices are joined.
const MOST_SLICES: usize = 128;

/// The recorder of a worker. Times are nanoseconds of one clock.
pub(crate) struct Recorder {
    pub(crate) record: Record,
    now: TimeSlice,
    begin: u64,
    slice_end: u64,
    times: [Histogram<u64>; TIMINGS],
    delay: Histogram<u64>,
    in_flight: u64,
    changed: u64,
    pub(crate) open: u64,
    /// All correct responses, for the live display.
    pub(crate) answers: u64,
    pub(crate) latency_sum: u64,
}

impl Recorder {
    /// Starts recording at `begin`, with slices of `slice_length`.
    pub(crate) fn new(begin: u64, slice_length: u64) -> Recorder {
        Recorder {
            record: Record { slice_length, ..Record::default() },
            now: TimeSlice::default(),
            begin,
            slice_end: begin + slice_length,
            times: std::array::from_fn(|_| histogram::new()),
            delay: histogram::new(),
            in_flight: 0,
            changed: begin,
            open: 0,
            answers: 0,
            latency_sum: 0,
        }
    }

    /// Counts a correct response.
    #[inline]
    pub(crate) fn answered(&mut self, due: u64, sent: u64, first: u64, done: u64) {
        self.now.answers += 1;
        self.answers += 1;
        let latency = done.saturating_sub(due);
        self.latency_sum += latency;
        if due == sent && first == done {
            self.time(Timing::Same, latency);
        } else {
            self.time(Timing::Latency, latency);
            self.time(Timing::Service, done.saturating_sub(sent));
            self.time(Timing::FirstByte, first.saturating_sub(sent));
        }
    }

    #[inline]
    fn time(&mut self, timing: Timing, value: u64) {
        self.times[timing as usize].saturating_record(value);
    }

    #[inline]
    pub(crate) fn received(&mut self, bytes: usize) {
        self.now.bytes += bytes as u64;
    }

    /// Counts `count` sent requests.
    #[inline]
    pub(crate) fn sent(&mut self, now: u64, count: u64) {
        self.now.sent += count;
        self.area(now);
        self.in_flight += count;
    }

    /// Counts `count` requests that are no longer in flight.
    #[inline]
    pub(crate) fn ended(&mut self, now: u64, count: u64) {
        self.area(now);
        self.in_flight -= count;
    }

    #[inline]
    fn area(&mut self, now: u64) {
        // An event of this tick may be older than the last send on another connection.
        let passed = now.saturating_sub(self.changed);
        self.record.area += self.in_flight * passed;
        self.changed = self.changed.max(now);
    }

    pub(crate) fn connected(&mut self, took: u64) {
        self.time(Timing::Connect, took);
    }

    /// Counts a TLS handshake. `cipher` is its version and cipher suite.
    pub(crate) fn handshake_done(&mut self, took: u64, cipher: String, resumed: bool) {
        let tls = &mut self.record.tls;
        *(if resumed { &mut tls.resumed } else { &mut tls.full }) += 1;
        *tls.ciphers.entry(cipher).or_default() += 1;
        self.time(Timing::Handshake, took);
    }

    pub(crate) fn opened(&mut self) {
        self.open += 1;
        self.record.connections.most_at_once = self.record.connections.most_at_once.max(self.open);
    }

    pub(crate) fn closed(&mut self) {
        self.open -= 1;
    }

    pub(crate) fn delayed(&mut self, by: u64) {
        self.delay.saturating_record(by);
    }

    /// Ends the slices that are over at `now`.
    pub(crate) fn end_slices(&mut self, now: u64) {
        while now >= self.slice_end {
            self.end_slice();
            if self.record.slices.len() >= MOST_SLICES {
                self.record.join_slices();
            }
            self.slice_end = self.begin + self.record.slice_length * (self.record.slices.len() as u64 + 1);
        }
    }

    fn end_slice(&mut self) {
        let mut slice = std::mem::take(&mut self.now);
        slice.times = self.times.each_mut().map(Counts::take);
        self.record.slices.push(slice);
    }

    /// Ends the last slice, which may be incomplete, and returns the record.
    pub(crate) fn finish(mut self, now: u64) -> Record {
        self.end_slices(now);
        self.area(now);
        self.end_slice();
        self.record.delay = Counts::take(&mut self.delay);
        self.record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::record::ProcessorTime;

    #[test]
    fn slices_have_one_length_and_gaps_are_empty_slices() {
        let mut recorder = Recorder::new(1_000, 100);
        recorder.answered(1_000, 1_000, 1_050, 1_050);
        recorder.end_slices(1_350);
        recorder.answered(1_300, 1_310, 1_340, 1_350);
        let record = recorder.finish(1_350);
        assert_eq!(record.slices.iter().map(|slice| slice.answers).collect::<Vec<_>>(), [1, 0, 0, 1]);
        assert_eq!(
            (
                record.slices[0].times[Timing::Same as usize].len(),
                record.slices[3].times[Timing::Latency as usize].len()
            ),
            (1, 1)
        );
    }

    #[test]
    fn too_many_slices_are_joined_without_loss() {
        let mut recorder = Recorder::new(0, 10);
        for at in 0..10_000 {
            recorder.end_slices(at);
            recorder.answered(0, 0, at, at);
        }
        let record = recorder.finish(10_000);
        assert!(record.slices.len() <= MOST_SLICES);
        assert_eq!(record.slices.iter().map(|slice| slice.answers).sum::<u64>(), 10_000);
        let whole = record.slices[0].answers;
        assert!(record.slices[..record.slices.len() - 2].iter().all(|slice| slice.answers == whole));
    }

    #[test]
    fn records_with_different_slices_add_up() {
        let record = |length: u64, seconds: u64| {
            let mut recorder = Recorder::new(0, length);
            for at in 0..seconds {
                recorder.end_slices(at);
                recorder.answered(at, at, at, at);
            }
            let mut record = recorder.finish(seconds);
            record.processor_times.push(ProcessorTime::default());
            record
        };
        let mut sum = record(10, 100);
        sum.add(record(40, 200));
        assert_eq!(sum.slice_length, 40);
        assert_eq!(sum.slices.iter().map(|slice| slice.answers).collect::<Vec<_>>(), [80, 80, 60, 40, 40, 0]);
    }

    #[test]
    fn the_area_is_the_integral_of_requests_in_flight() {
        let mut recorder = Recorder::new(0, 1_000);
        recorder.sent(10, 2);
        recorder.sent(20, 1);
        recorder.ended(30, 1);
        let record = recorder.finish(50);
        assert_eq!(record.area, 2 * 10 + 3 * 10 + 2 * 20);
    }
}
