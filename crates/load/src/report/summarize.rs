//! The computation of a summary from a record.

use crate::measure::histogram::{self, Counts};
use crate::measure::record::{ProcessorTime, Record, TimeSlice, Timing};
use crate::measure::statistics::estimate::{self, Estimate};
use crate::plan::{LoadPlan, RequestVersion, WarmUp, nanoseconds};
use crate::report::summary::{Batch, Distribution, Generator, LittlesLaw, RunSummary, Schedule, WarmUpCut};
use crate::report::{validity, warmup};

/// The nanoseconds of a run from which processor time has a share.
const LEAST: u64 = 1_000_000;
/// The parts of a run whose rates give an interval.
pub(crate) const BATCHES: usize = 10;
/// The fewest responses for an interval of the rate: ten in each part.
pub(crate) const FEWEST_ANSWERS: u64 = 100;

impl RunSummary {
    /// Summarizes `record`.
    pub fn new(plan: &LoadPlan, record: &Record) -> RunSummary {
        let length = record.slice_length.max(1);
        // The end of sending; only responses come later.
        let end = plan.duration.map_or(record.elapsed, |time| nanoseconds(time).min(record.elapsed));
        let within = usize::try_from(end.div_ceil(length)).unwrap_or(usize::MAX).min(record.slices.len());
        let (cut, warm_up) = cut(plan, record, within);
        let window = (end.saturating_sub(cut as u64 * length)).max(1) as f64 / 1e9;
        let answers: u64 = record.slices[cut..within].iter().map(|slice| slice.answers).sum();
        let kept = &record.slices[cut..];
        let whole = sum(kept, Timing::Service);
        let batches = batches(&record.slices[cut..within], length, window);
        let rates: Vec<f64> = batches.iter().map(|batch| batch.rate).collect();
        let mut summary = RunSummary {
            elapsed: record.elapsed as f64 / 1e9,
            measured: window,
            answers,
            rate: answers as f64 / window,
            rate_interval: rate_interval(plan, answers, &rates),
            bytes: record.slices[cut..within].iter().map(|slice| slice.bytes).sum(),
            latency_us: Distribution::of(sum(kept, Timing::Latency)),
            uncorrected_us: Distribution::of(whole),
            first_byte_us: Distribution::of(sum(kept, Timing::FirstByte)),
            connect_us: Distribution::of(joined(&record.slices, Timing::Connect)),
            handshake_us: Distribution::of(joined(&record.slices, Timing::Handshake)),
            tls: plan.has_tls().then(|| record.tls.clone()),
            http2: (plan.version == RequestVersion::Http2).then(|| record.http2.clone()),
            errors: record.errors.clone(),
            examples: record.examples.clone(),
            statuses: record.statuses.clone(),
            connections: record.connections.clone(),
            fairness: record.connections.shares.jain(),
            unfinished: record.unfinished,
            longest_wait: record.longest_wait as f64 / 1e9,
            little: little(record),
            generator: generator(record),
            schedule: plan.rate.map(|_| schedule(record, end, within)),
            batches,
            interrupted: record.interrupted,
            warm_up,
            ..RunSummary::default()
        };
        validity::judge(plan, &mut summary);
        summary
    }
}

/// The interval of the rate over the parts of a run. There is none for a ramp, whose parts differ by plan, for few
/// samples, or if a part has no response.
fn rate_interval(plan: &LoadPlan, answers: u64, rates: &[f64]) -> Option<Estimate> {
    let is_ramp = [plan.rate, plan.connection_rate].into_iter().flatten().any(|rate| rate.is_ramp());
    let is_enough = rates.len() == BATCHES && answers >= FEWEST_ANSWERS;
    estimate::mean(rates).filter(|_| is_enough && !is_ramp)
}

fn cut(plan: &LoadPlan, record: &Record, within: usize) -> (usize, WarmUpCut) {
    let done: Vec<u64> = record.slices[..within].iter().map(|slice| slice.answers).collect();
    let (slices, rule) = match plan.warm_up {
        WarmUp::Nothing => (0, "none, as requested"),
        WarmUp::For(time) => {
            let slices = nanoseconds(time).div_ceil(record.slice_length.max(1));
            // An interrupted run may be shorter than its warm-up.
            (usize::try_from(slices).unwrap_or(usize::MAX).min(within.saturating_sub(1)), "as requested")
        }
        WarmUp::Rule if plan.rate.is_some() || plan.hold.is_some() => (0, "none with a schedule"),
        WarmUp::Rule if plan.requests.is_some() => (0, "none with a number of requests"),
        WarmUp::Rule => (warmup::cut(&done), "MSER-5, at most a quarter of the run"),
    };
    let seconds = (slices as u64 * record.slice_length) as f64 / 1e9;
    (slices, WarmUpCut { seconds, rule: rule.to_owned(), answers: done[..slices].iter().sum() })
}

/// The times of a kind in all slices, including [`Timing::Same`].
fn sum(slices: &[TimeSlice], timing: Timing) -> Counts {
    let mut all = joined(slices, timing);
    all.add(&joined(slices, Timing::Same));
    all
}

/// One histogram for all slices is faster than repeated addition.
fn joined(slices: &[TimeSlice], timing: Timing) -> Counts {
    let mut all = histogram::new();
    slices.iter().for_each(|slice| slice.times[timing as usize].pour(&mut all));
    Counts::take(&mut all)
}

fn batches(slices: &[TimeSlice], length: u64, window: f64) -> Vec<Batch> {
    let each = (slices.len() / BATCHES).max(1);
    let whole = (window * 1e9 / length as f64) as usize;
    // The last slice of a run with a number of requests is incomplete.
    let slices = &slices[..slices.len().min(whole)];
    let batch = |part: &[TimeSlice]| {
        let answers: u64 = part.iter().map(|slice| slice.answers).sum();
        Batch { rate: answers as f64 / (part.len() as u64 * length) as f64 * 1e9 }
    };
    slices.chunks_exact(each).take(BATCHES).map(batch).collect()
}

fn little(record: &Record) -> LittlesLaw {
    let service = sum(&record.slices, Timing::Service);
    let mut all = histogram::new();
    service.pour(&mut all);
    let elapsed = record.elapsed.max(1) as f64;
    LittlesLaw {
        counted: record.area as f64 / elapsed,
        answered: all.mean() * all.len() as f64 / elapsed,
        lost: record.lost_time as f64 / elapsed,
    }
}

fn generator(record: &Record) -> Generator {
    // A run that ends at its begin has no shares.
    let share = |time: &ProcessorTime| time.used as f64 / time.passed.max(LEAST) as f64;
    let shares: Vec<f64> = record.processor_times.iter().map(share).collect();
    let used: u64 = record.processor_times.iter().map(|one| one.used).sum();
    let answers: u64 = record.slices.iter().map(|slice| slice.answers).sum();
    Generator {
        busiest: shares.iter().copied().fold(0.0, f64::max),
        average: shares.iter().sum::<f64>() / shares.len().max(1) as f64,
        per_answer_us: (answers > 0).then(|| used as f64 / 1e3 / answers as f64),
        delay_us: Distribution::of(record.delay.clone()),
    }
}

fn schedule(record: &Record, end: u64, within: usize) -> Schedule {
    let seconds = end.max(1) as f64 / 1e9;
    let per_second = |count: u64| count as f64 / seconds;
    Schedule {
        asked: per_second(record.due),
        sent: per_second(record.slices[..within].iter().map(|slice| slice.sent).sum()),
        answered: per_second(record.slices[..within].iter().map(|slice| slice.answers).sum()),
    }
}
