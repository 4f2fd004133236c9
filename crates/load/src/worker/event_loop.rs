//! The event loop of a worker.
//!
//! Every load goes through [`LoadWorker::fill`]: a slot takes the requests that its pacer allows, and connects if
//! necessary. A response fills its slot again immediately. Requests that are due without a free slot wait in the pacer
//! with their due times.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use tenfold_sys::clock;
use tenfold_sys::lifecycle::{self, Phase};

use crate::connection::ConnectionState;
use crate::connection::judge::ExchangeError;
use crate::measure::record::{ErrorKind, ProcessorTime, Record};
use crate::plan::pacer::Pacer;
use crate::worker::backend::Backend;
use crate::worker::share::{Role, Share, TargetPicker};
use crate::worker::slot;
use crate::worker::state::{LiveCounter, LoadWorker};

/// Nanoseconds between the checks that are not urgent: the live display, signals, timeouts.
const TICK: u64 = 50_000_000;
/// The size of the receive buffer.
const BUFFER: usize = 128 << 10;

/// Runs a worker's share of a plan to its end.
pub(crate) fn run<B: Backend>(share: &Share<'_>, row: &[AtomicU64]) -> std::io::Result<Record> {
    // If a sandbox refuses it, timers are less precise, which the measured delay shows.
    let _ = clock::wake_precisely();
    let mut worker = LoadWorker {
        context: share.context(BUFFER),
        choice: TargetPicker::new(share),
        io: B::new(share)?,
        slots: slot::slots(share),
        ready: VecDeque::new(),
        to_open: VecDeque::new(),
        vacant: Vec::new(),
        requests: share.requests(),
        connections: share.connections(),
        timers: BinaryHeap::new(),
        now: share.begin,
        next_tick: 0,
        failed_connects: 0,
        row,
        share,
    };
    let used = clock::thread_processor_time();
    worker.start();
    loop {
        worker.now = clock::monotonic();
        if worker.now >= worker.next_tick && worker.tick() {
            break;
        }
        if worker.is_over() {
            break;
        }
        B::begin_tick(&mut worker);
        worker.serve_due();
        let wait = worker.time_until_due();
        B::wait(&mut worker, wait)?;
        worker.context.recorder.end_slices(worker.now);
    }
    Ok(worker.finish(used))
}

impl<B: Backend> LoadWorker<'_, B> {
    fn start(&mut self) {
        for number in 0..self.slots.len() as u32 {
            let slot = &mut self.slots[number as usize];
            match slot.role {
                Role::Active => {
                    slot.queued = true;
                    self.ready.push_back(number);
                    // With a schedule, connections are open before their first request.
                    if self.requests.is_scheduled() && self.share.plan.per_connection() == u64::MAX {
                        self.to_open.push_back(number);
                    }
                }
                Role::Held => self.vacant.push(number),
                Role::Idle => self.to_open.push_back(number),
                Role::SlowReader | Role::SlowWriter => self.timers.push(Reverse((self.share.begin, number))),
            }
        }
    }

    /// Does the work that is not urgent. Returns whether the run ends.
    fn tick(&mut self) -> bool {
        if self.next_tick > self.share.begin {
            let pause = &mut self.context.recorder.record.pause;
            *pause = (*pause).max(self.now - self.next_tick);
        }
        self.next_tick = self.now + TICK;
        let recorder = &self.context.recorder;
        let store = |word: LiveCounter, value: u64| self.row[word as usize].store(value, Ordering::Relaxed);
        store(LiveCounter::Answers, recorder.answers);
        store(LiveCounter::Errors, recorder.record.errors.values().sum());
        store(LiveCounter::Latency, recorder.latency_sum);
        store(LiveCounter::Open, recorder.open);
        let timeout = self.share.timeout;
        for number in 0..self.slots.len() {
            let connection = &self.slots[number].connection;
            let since = match connection.state {
                ConnectionState::Connecting(since) | ConnectionState::Handshaking(since) => Some(since),
                ConnectionState::Open => connection.waiting_since(),
                ConnectionState::Closed => None,
            };
            if since.is_some_and(|since| self.now.saturating_sub(since) >= timeout) {
                let message = format!("no response within {:.1} s", timeout as f64 / 1e9);
                let error = ExchangeError::new(ErrorKind::Timeout, message);
                let connection = &mut self.slots[number].connection;
                match connection.cancel_late(&mut self.context, self.now, timeout, &error) {
                    true => self.fill(number as u32, usize::MAX),
                    false => self.close_failed(number as u32, error),
                }
            }
        }
        if lifecycle::phase() != Phase::Serving {
            self.context.recorder.record.interrupted = true;
        }
        self.context.recorder.record.interrupted || self.context.recorder.record.failure.is_some()
    }

    fn is_over(&self) -> bool {
        let done = || self.context.pending == 0 && self.requests.due().is_none_or(|due| due > self.now);
        if self.share.plan.requests.is_some() && self.context.pending == 0 && self.requests.due().is_none() {
            return true;
        }
        match self.share.end {
            None => false,
            Some(end) if self.now < end => false,
            Some(end) => !self.requests.is_scheduled() || done() || self.now >= end + self.share.grace,
        }
    }

    fn time_until_due(&self) -> u64 {
        if !self.io.may_block() {
            return 0;
        }
        let waiting = |queue: &VecDeque<u32>, pacer: &Pacer| match queue.is_empty() {
            true => None,
            false => pacer.due(),
        };
        let held =
            self.share.plan.hold.and_then(|_| self.connections.due()).filter(|_| !self.vacant.is_empty());
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        let end = self.share.end.filter(|end| *end > self.now);
        [
            waiting(&self.ready, &self.requests),
            waiting(&self.to_open, &self.connections),
            held,
            timer,
            end,
            Some(self.next_tick),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(self.next_tick)
        .saturating_sub(self.now)
    }

    fn serve_due(&mut self) {
        while let Some(Reverse((at, number))) = self.timers.peek().copied()
            && at <= self.now
        {
            self.timers.pop();
            self.on_timer(number);
        }
        for _ in 0..B::BURST {
            match self.to_open.front().copied() {
                Some(number) if self.connections.take(self.now).is_some() => {
                    self.to_open.pop_front();
                    self.open(number);
                }
                _ => break,
            }
        }
        if self.share.plan.hold.is_some() {
            self.begin_held();
        }
        for _ in 0..B::BURST {
            if self.ready.is_empty() || self.requests.due().is_none_or(|due| due > self.now) {
                break;
            }
            let Some(number) = self.ready.pop_front() else { break };
            self.now = clock::monotonic();
            self.slots[number as usize].queued = false;
            // With a schedule, each slot takes one request, so that all connections are used equally.
            let most = if self.requests.is_scheduled() { 1 } else { usize::MAX };
            self.fill(number, most);
        }
        B::finish_begun(self);
    }

    /// Opens held connections that are due.
    fn begin_held(&mut self) {
        for _ in 0..B::BURST {
            let Some(number) = self.vacant.last().copied() else { break };
            let Some(due) = self.connections.take(self.now) else { break };
            self.vacant.pop();
            self.context.recorder.record.connections.due += 1;
            let slot = &mut self.slots[number as usize];
            slot.hold(self.share, due, self.now);
            self.timers.push(Reverse((slot.until, number)));
            self.fill_without_opening(number, usize::MAX);
            self.open(number);
        }
    }

    /// Begins at most `most` requests of a slot, and sends them.
    #[inline]
    pub(super) fn fill(&mut self, number: u32, most: usize) {
        self.fill_without_opening(number, most);
        let slot = &mut self.slots[number as usize];
        if !slot.connection.has_unsent() {
            return;
        }
        match slot.connection.state {
            ConnectionState::Open => B::flush(self, number),
            ConnectionState::Closed if !slot.opening => self.open_in_turn(number),
            _ => {}
        }
    }

    #[inline]
    pub(super) fn fill_without_opening(&mut self, number: u32, most: usize) {
        let slot = &mut self.slots[number as usize];
        for _ in 0..most {
            if !slot.has_room(self.share) {
                break;
            }
            let pacer = slot.own.as_deref_mut().unwrap_or(&mut self.requests);
            let Some(due) = pacer.take(self.now) else { break };
            if slot.own.is_none() && self.requests.is_scheduled() {
                self.context.recorder.delayed(self.now.saturating_sub(due.max(slot.free_since)));
            }
            let target = self.choice.next(slot.remote);
            slot.had_request = true;
            slot.connection.begin(due, target, &mut self.context);
        }
        match &slot.own {
            Some(own) => {
                if let Some(due) = own.due().filter(|due| *due > self.now) {
                    self.timers.push(Reverse((due, number)));
                }
            }
            None if slot.role == Role::Active && !slot.queued && slot.has_room(self.share) => {
                slot.queued = true;
                slot.free_since = self.now;
                self.ready.push_back(number);
            }
            None => {}
        }
    }

    fn finish(mut self, used: u64) -> Record {
        let now = clock::monotonic();
        let scheduled = self.requests.is_scheduled();
        for slot in &mut self.slots {
            if slot.connection.is_measured() {
                slot.connection.abandon(&mut self.context, now);
            }
            if slot.role != Role::Held || slot.connection.state != ConnectionState::Closed {
                slot.add_to(&mut self.context.recorder.record.connections);
            }
        }
        let overdue = if scheduled { self.requests.overdue(now) } else { 0 };
        let waited = self.requests.due().filter(|_| overdue > 0).map_or(0, |due| now.saturating_sub(due));
        let passed = now - self.share.begin.min(now);
        let mut record = self.context.recorder.finish(now);
        record.unfinished += overdue;
        record.longest_wait = record.longest_wait.max(waited);
        if scheduled {
            let answers: u64 = record.slices.iter().map(|slice| slice.answers).sum();
            record.due = answers + record.errors.values().sum::<u64>() + record.unfinished;
            if record.unfinished > 0 && !record.interrupted {
                let count = record.unfinished;
                record.fail(ErrorKind::Unanswered, count, || "no response by the end of the run".to_owned());
            }
        }
        record.elapsed = passed;
        record.processor_times = vec![ProcessorTime { used: clock::thread_processor_time() - used, passed }];
        self.slots.iter_mut().for_each(|slot| slot.connection.end_tls(true));
        record
    }
}
