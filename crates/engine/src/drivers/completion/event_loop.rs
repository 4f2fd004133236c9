//! The loop: waits, dispatches completions to their connections, accepts, and ends its tick.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tenfold_http::Instant;
use tenfold_sys::completion::Completion;
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Socket;

use super::io::RingIo;
use super::link::RingLink;
use super::ring::OperationQueue;
use super::sources::Sources;
use super::state::Operations;
use super::tag::{EPOCH_MASK, KIND_SHIFT, KINDS, OperationKind};
use crate::dispatch::offload::OffloadPool;
use crate::plan::Plan;
use crate::protocol::{Event, Protocol};
use crate::worker::connections::ConnectionTable;
use crate::worker::handoff::AcceptedConnection;
use crate::worker::inbox::Inbox;
use crate::worker::intake::of_accepted;
use crate::worker::shortage::pause_where_short;
use crate::worker::slots::{Key, Slot, SlotState};
use crate::worker::tasks::{Start, Tasks};
use crate::worker::tick::{Tick, read_clock};

/// The time for submitted bytes to be sent before their connection is closed.
pub(super) const LAST_SENDS: Duration = Duration::from_secs(60);

/// The driver's part of a task that owns its `Io`.
pub(super) struct RingTask<B> {
    pub(super) link: Rc<RingLink<B>>,
    pub(super) number: i32,
}

pub(super) struct CompletionLoop<'a, R: OperationQueue, P: Protocol, M: Start<RingIo<R::Buffer>, P::State>> {
    pub(super) ring: R,
    pub(super) connections: ConnectionTable<P::State, Operations>,
    pub(super) tasks: Tasks<M::Future, RingIo<R::Buffer>, RingTask<R::Buffer>>,
    /// Connections that are served again before the next wait.
    pub(super) again: Vec<Key>,
    /// Staging vectors.
    pub(super) spare: Vec<Vec<u8>>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) plan: &'a Plan,
    pub(super) protocol: &'a P,
    pub(super) start: M,
    /// Reads files that are not in memory.
    pub(super) readers: OffloadPool,
    /// Connections accepted at the connection limit in this tick.
    pub(super) past_bound: Vec<AcceptedConnection>,
    /// Evicted connections that are not closed yet.
    pub(super) leaving: usize,
    /// The phase that idle connections are in.
    pub(super) phase: Phase,
}

impl<R: OperationQueue, P: Protocol, M: Start<RingIo<R::Buffer>, P::State>> CompletionLoop<'_, R, P, M> {
    pub(super) fn run(&mut self, mut sources: Sources<'_>) -> Result<(), String> {
        let watch =
            lifecycle::PhaseWatch::new().map_err(|error| format!("cannot make an eventfd: {error}"))?;
        // Some mechanisms accept as soon as an accept is submitted.
        self.protocol.begin();
        sources.open(&mut self.ring, watch.event(), self.inbox.event());
        let (mut completions, mut keys) = (Vec::new(), Vec::new());
        loop {
            match lifecycle::phase() {
                Phase::Serving => {}
                phase @ (Phase::Retiring | Phase::Draining) if self.leave(&mut sources, phase) => {}
                _ => break,
            }
            let timeout = self.timeout(&sources);
            let waited = self.ring.wait(timeout, &mut completions);
            let waited = waited.or_else(|error| pause_where_short(error, self.protocol));
            waited.map_err(|error| format!("cannot wait for completions: {error}"))?;
            let woken = self.inbox.wake_up();
            let now = read_clock();
            sources.resume(&mut self.ring, now);
            for completion in completions.drain(..) {
                self.completed(completion, &mut sources, now, &watch)?;
            }
            while let Some((socket, peer, listener)) = sources.next_handed() {
                self.accepted(socket, peer, listener);
            }
            self.admit_past_bound();
            self.end_tick(woken, now, &mut keys);
        }
        read_clock();
        self.protocol.drain();
        Ok(())
    }

    /// The longest permitted next wait. From now on, wakers wake the loop.
    fn timeout(&mut self, sources: &Sources<'_>) -> Option<Duration> {
        let due = self.protocol.before_wait(true);
        let Some(until) = self.idle_until(due) else { return Some(Duration::ZERO) };
        let by = until.min(sources.resumes());
        (by != Instant::NEVER).then(|| by.since(tenfold_http::clock::now()) + Duration::from_millis(1))
    }

    /// Performs one step of leaving. Returns whether connections remain.
    fn leave(&mut self, sources: &mut Sources<'_>, phase: Phase) -> bool {
        sources.leave(&mut self.ring);
        if std::mem::replace(&mut self.phase, phase) != phase {
            match phase {
                Phase::Draining => {
                    let is_idle = |slot: &Slot<_, _>| slot.state == SlotState::Parked && slot.served;
                    for key in self.connections.keys(is_idle) {
                        self.close_idle(key, tenfold_http::clock::now() + LAST_SENDS);
                    }
                }
                _ => self.connections.retire(),
            }
        }
        self.connections.count() > 0 || sources.expects()
    }

    fn completed(
        &mut self,
        completion: Completion<R::Buffer>,
        sources: &mut Sources<'_>,
        now: Instant,
        watch: &lifecycle::PhaseWatch,
    ) -> Result<(), String> {
        let kind = KINDS[(completion.tag >> KIND_SHIFT) as usize];
        let epoch = (completion.tag >> 32) as u32 & EPOCH_MASK;
        let index = completion.tag as u32;
        if kind == OperationKind::Source {
            let accepted = sources.completed(
                &mut self.ring,
                index,
                completion,
                now,
                self.protocol,
                watch,
                &self.inbox,
            )?;
            if let Some((socket, listener)) = accepted {
                self.accepted_without_peer(socket, listener);
            }
            return Ok(());
        }
        if let Some(copied) = completion.released {
            self.protocol.observe(Event::Released { sends: 1, copied: u32::from(copied) });
            return Ok(());
        }
        let found = self.connections.key_at(index).filter(|key| key.epoch & EPOCH_MASK == epoch);
        let Some(key) = found else { return Ok(()) };
        match kind {
            OperationKind::Receive => {
                self.received(key, completion.result, completion.more, completion.buffer)
            }
            OperationKind::Send => self.sent(key, completion.result, completion.memory),
            OperationKind::Held => self.sent_held(key, completion.result),
            OperationKind::Poll => self.writable(key, completion.result, completion.more),
            OperationKind::Close => self.connections_end(key),
            OperationKind::Read => self.file_read(key, completion.result, completion.memory),
            OperationKind::Cancel => self.cancelled(key, completion.result),
            OperationKind::Source => {}
        }
        Ok(())
    }

    /// A multishot accept does not report the peer. The address of a peer that has left is unknown.
    fn accepted_without_peer(&mut self, socket: Socket, listener: u16) {
        match socket.peer() {
            Ok(peer) => self.accepted(socket, peer, listener),
            Err(error) => {
                self.protocol.observe(Event::Accepted);
                if error.kind() != std::io::ErrorKind::NotConnected {
                    self.protocol.observe(Event::Exhausted);
                }
                self.protocol.observe(Event::Closed);
                self.ring.discard(socket);
            }
        }
    }

    fn accepted(&mut self, socket: Socket, peer: Option<SocketAddr>, listener: u16) {
        if self.is_full() {
            // Other completions are handled before an eviction, because their connections are not idle.
            return self.past_bound.push((socket, peer, listener));
        }
        if !self.protocol.admit(&of_accepted(peer)) {
            return self.ring.discard(socket);
        }
        self.begin(socket, peer, listener);
    }

    pub(super) fn begin(&mut self, socket: Socket, peer: Option<SocketAddr>, listener: u16) {
        self.protocol.observe(Event::Accepted);
        let key = self.connections.insert(socket, peer, listener);
        self.connections.set_deadline(key, self.protocol.first_bytes_by());
        self.receive(key);
    }

    /// The descriptor number of connection `key`'s socket, held by its slot or its task.
    pub(super) fn number(&mut self, key: Key) -> i32 {
        match self.connections.find(key) {
            Some(Slot { socket: Some(socket), .. }) => socket.number(),
            Some(Slot { state: SlotState::Active { task }, .. }) => {
                let task = *task;
                self.tasks.attached(task).number
            }
            Some(Slot { state: SlotState::Closing { number }, .. }) => *number,
            _ => -1,
        }
    }
}
