//! The state of a worker, and the words that it shows while it runs.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::AtomicU64;

use crate::connection::WorkerContext;
use crate::plan::pacer::Pacer;
use crate::worker::share::{Share, TargetPicker};
use crate::worker::slot::ConnectionSlot;

/// What a worker tells while it runs: words of a row of context memory.
#[derive(Clone, Copy)]
pub(crate) enum LiveCounter {
    Answers,
    Errors,
    Latency,
    Open,
}

/// Words of a row.
pub(crate) const LIVE_COUNTERS: usize = 4;

pub(crate) struct LoadWorker<'a, B> {
    pub(super) share: &'a Share<'a>,
    pub(super) context: WorkerContext<'a>,
    pub(super) choice: TargetPicker<'a>,
    pub(super) io: B,
    pub(super) slots: Vec<ConnectionSlot>,
    /// Places of the plan's own connections that have room for a request.
    pub(super) ready: VecDeque<u32>,
    /// Places that wait for their turn to connect.
    pub(super) to_open: VecDeque<u32>,
    /// Places whose connection has had its life.
    pub(super) vacant: Vec<u32>,
    pub(super) requests: Pacer,
    pub(super) connections: Pacer,
    pub(super) timers: BinaryHeap<Reverse<(u64, u32)>>,
    pub(super) now: u64,
    pub(super) next_tick: u64,
    /// Connects that failed before any succeeded.
    pub(super) failed_connects: u64,
    pub(super) row: &'a [AtomicU64],
}
