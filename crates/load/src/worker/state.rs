//! The state of a worker, and its counters for the live display.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::AtomicU64;

use crate::connection::WorkerContext;
use crate::plan::pacer::Pacer;
use crate::worker::share::{Share, TargetPicker};
use crate::worker::slot::ConnectionSlot;

/// A counter for the live display, in a row of shared memory.
#[derive(Clone, Copy)]
pub(crate) enum LiveCounter {
    Answers,
    Errors,
    Latency,
    Open,
}

/// The counters of a row.
pub(crate) const LIVE_COUNTERS: usize = 4;

pub(crate) struct LoadWorker<'a, B> {
    pub(super) share: &'a Share<'a>,
    pub(super) context: WorkerContext<'a>,
    pub(super) choice: TargetPicker<'a>,
    pub(super) io: B,
    pub(super) slots: Vec<ConnectionSlot>,
    /// Slots of the plan's own connections with room for a request.
    pub(super) ready: VecDeque<u32>,
    /// Slots that wait to connect.
    pub(super) to_open: VecDeque<u32>,
    /// Slots for held connections that have no connection now.
    pub(super) vacant: Vec<u32>,
    pub(super) requests: Pacer,
    pub(super) connections: Pacer,
    pub(super) timers: BinaryHeap<Reverse<(u64, u32)>>,
    pub(super) now: u64,
    pub(super) next_tick: u64,
    /// Failed connects before the first success.
    pub(super) failed_connects: u64,
    pub(super) row: &'a [AtomicU64],
}
