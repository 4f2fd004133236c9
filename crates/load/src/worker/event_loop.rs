//! The event loop of a worker.
//!
//! Whatever the shape of the load, it goes through [`Worker::fill`]: a place takes what its pacer lets begin,
//! and opens a connection where it has none. An answer fills its place again at once, and what is due by a
//! schedule and found no place waits in the pacer, with its time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use tenfold_sys::clock;
use tenfold_sys::lifecycle::{self, Phase};

use crate::connection::State;
use crate::connection::judge::Fault;
use crate::measure::record::{Effort, ErrorKind, Record};
use crate::plan::pacer::Pacer;
use crate::worker::backend::Backend;
use crate::worker::place;
use crate::worker::share::{Choice, Role, Share};
use crate::worker::state::{Word, Worker};

/// Nanoseconds between two looks at what is not urgent: the live display, a signal, requests without answer.
const TICK: u64 = 50_000_000;
/// Bytes of the receive buffer.
const BUFFER: usize = 128 << 10;

/// Runs a share of a plan to its end.
///
/// # Errors
/// When the means of I/O cannot be made, or waiting fails.
pub(crate) fn run<B: Backend>(share: &Share<'_>, row: &[AtomicU64]) -> std::io::Result<Record> {
    // Refused by a sandbox it costs precision, which the lag of requests shows.
    let _ = clock::wake_precisely();
    let mut worker = Worker {
        shared: share.shared(BUFFER),
        choice: Choice::new(share),
        io: B::new(share)?,
        places: place::places(share),
        free: VecDeque::new(),
        to_open: VecDeque::new(),
        vacant: Vec::new(),
        requests: share.requests(),
        connections: share.connections(),
        timers: BinaryHeap::new(),
        now: share.begin,
        next_tick: 0,
        futile: 0,
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
        worker.serve_what_is_due();
        let wait = worker.until_something_is_due();
        B::wait(&mut worker, wait)?;
        worker.shared.recorder.turn(worker.now);
    }
    Ok(worker.finish(used))
}

impl<B: Backend> Worker<'_, B> {
    fn start(&mut self) {
        for number in 0..self.places.len() as u32 {
            let place = &mut self.places[number as usize];
            match place.role {
                Role::Active => {
                    place.queued = true;
                    self.free.push_back(number);
                    // By a schedule, connections are there before their first request.
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

    /// What is not urgent. Says whether the run is to end.
    fn tick(&mut self) -> bool {
        self.next_tick = self.now + TICK;
        let recorder = &self.shared.recorder;
        let store = |word: Word, value: u64| self.row[word as usize].store(value, Ordering::Relaxed);
        store(Word::Answers, recorder.answers);
        store(Word::Errors, recorder.record.errors.values().sum());
        store(Word::Latency, recorder.latency_sum);
        store(Word::Open, recorder.open());
        let timeout = self.share.timeout;
        for number in 0..self.places.len() {
            let connection = &self.places[number].connection;
            let since = match connection.state {
                State::Connecting(since) => Some(since),
                State::Open => connection.waiting_since(),
                State::Closed => None,
            };
            if since.is_some_and(|since| self.now.saturating_sub(since) >= timeout) {
                let said = format!("no answer within {:.1} s", timeout as f64 / 1e9);
                self.lose(number as u32, Fault { kind: ErrorKind::Timeout, said });
            }
        }
        if lifecycle::phase() != Phase::Serving {
            self.shared.recorder.record.interrupted = true;
        }
        self.shared.recorder.record.interrupted || self.shared.recorder.record.failure.is_some()
    }

    fn is_over(&self) -> bool {
        let done = || self.shared.pending == 0 && self.requests.due().is_none_or(|due| due > self.now);
        if self.share.plan.requests.is_some() && self.shared.pending == 0 && self.requests.due().is_none() {
            return true;
        }
        match self.share.end {
            None => false,
            Some(end) if self.now < end => false,
            Some(end) => !self.requests.is_scheduled() || done() || self.now >= end + self.share.grace,
        }
    }

    fn until_something_is_due(&self) -> u64 {
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
            waiting(&self.free, &self.requests),
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

    fn serve_what_is_due(&mut self) {
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
            if self.free.is_empty() || self.requests.due().is_none_or(|due| due > self.now) {
                break;
            }
            let Some(number) = self.free.pop_front() else { break };
            self.now = clock::monotonic();
            self.places[number as usize].queued = false;
            // By a schedule one request for each, so that all connections are used alike.
            let most = if self.requests.is_scheduled() { 1 } else { usize::MAX };
            self.fill(number, most);
        }
        B::go_on(self);
    }

    /// New connections that live for a time: each that is due gets a place.
    fn begin_held(&mut self) {
        for _ in 0..B::BURST {
            let Some(number) = self.vacant.last().copied() else { break };
            let Some(due) = self.connections.take(self.now) else { break };
            self.vacant.pop();
            self.shared.recorder.record.connections.due += 1;
            let place = &mut self.places[number as usize];
            place.hold(self.share, due, self.now);
            self.timers.push(Reverse((place.until, number)));
            self.fill_without_opening(number, usize::MAX);
            self.open(number);
        }
    }

    /// Lets a place begin what may begin, `most` requests of it, and sends it.
    #[inline]
    pub(super) fn fill(&mut self, number: u32, most: usize) {
        self.fill_without_opening(number, most);
        let place = &mut self.places[number as usize];
        if !place.connection.has_unsent() {
            return;
        }
        match place.connection.state {
            State::Open => B::flush(self, number),
            State::Closed if !place.opening => self.open_in_turn(number),
            _ => {}
        }
    }

    #[inline]
    pub(super) fn fill_without_opening(&mut self, number: u32, most: usize) {
        let place = &mut self.places[number as usize];
        for _ in 0..most {
            if !place.has_room(self.share) {
                break;
            }
            let pacer = place.own.as_deref_mut().unwrap_or(&mut self.requests);
            let Some(due) = pacer.take(self.now) else { break };
            if place.own.is_none() && self.requests.is_scheduled() {
                self.shared.recorder.lagged(self.now.saturating_sub(due.max(place.free_since)));
            }
            let target = self.choice.next(place.remote);
            place.asked = true;
            place.connection.begin(due, target, &mut self.shared);
        }
        match &place.own {
            Some(own) => {
                if let Some(due) = own.due().filter(|due| *due > self.now) {
                    self.timers.push(Reverse((due, number)));
                }
            }
            None if place.role == Role::Active && !place.queued && place.has_room(self.share) => {
                place.queued = true;
                place.free_since = self.now;
                self.free.push_back(number);
            }
            None => {}
        }
    }

    fn finish(mut self, used: u64) -> Record {
        let now = clock::monotonic();
        let scheduled = self.requests.is_scheduled();
        for place in &mut self.places {
            if place.connection.is_measured() {
                place.connection.abandon(&mut self.shared, now);
            }
            if place.role != Role::Held || place.connection.state != State::Closed {
                place.tell(&mut self.shared.recorder.record.connections);
            }
        }
        let overdue = if scheduled { self.requests.overdue(now) } else { 0 };
        let waited = self.requests.due().filter(|_| overdue > 0).map_or(0, |due| now.saturating_sub(due));
        let passed = now - self.share.begin.min(now);
        let mut record = self.shared.recorder.finish(now);
        record.unfinished += overdue;
        record.longest_wait = record.longest_wait.max(waited);
        if scheduled {
            let answers: u64 = record.slices.iter().map(|slice| slice.answers).sum();
            record.due = answers + record.errors.values().sum::<u64>() + record.unfinished;
            if record.unfinished > 0 && !record.interrupted {
                let count = record.unfinished;
                record.fail(ErrorKind::Unanswered, count, || "no answer by the end of the run".to_owned());
            }
        }
        record.elapsed = passed;
        record.efforts = vec![Effort { used: clock::thread_processor_time() - used, passed }];
        record
    }
}
