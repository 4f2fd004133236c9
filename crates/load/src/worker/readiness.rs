//! I/O by readiness: system calls are tried first, and epoll reports when to retry.

use std::collections::VecDeque;
use std::io;

use tenfold_sys::clock;
use tenfold_sys::connect::{ConnectOptions, Remote, connect};
use tenfold_sys::epoll::{Epoll, EpollInterest};
use tenfold_sys::readiness::Ready;

use crate::connection::judge::exchange_error;
use crate::connection::{ConnectionState, IoProgress};
use crate::plan::RequestVersion;
use crate::worker::backend::Backend;
use crate::worker::share::Role;
use crate::worker::share::Share;
use crate::worker::state::LoadWorker;

/// The most events of one wait.
const BATCH: usize = 512;
/// Connects that are begun before their requests are sent. Repeating one call keeps its code and data in the
/// processor's caches, which made a connection 8 % cheaper. A larger number would lengthen connect times.
const TOGETHER: usize = 8;
/// The most bytes that a tick receives from one connection. An endless response then delays neither other connections
/// nor the end of the run. The kernel discards as many bytes in one call.
const MOST_RECEIVED: usize = 4 << 20;
/// After a response that is missing in the next tick, this number of new connections is watched immediately.
const WATCH_NEXT: u32 = 15;

pub(crate) struct EpollBackend {
    epoll: Epoll,
    ready: Vec<Ready>,
    /// Slots whose connect has begun and that are not watched.
    fresh: Vec<u32>,
    /// Slots and epochs of unwatched connections with a sent request: their responses may arrive before the next
    /// tick.
    unwatched: VecDeque<(u32, u32)>,
    /// The number of new connections to watch immediately.
    watch_next: u32,
}

impl Backend for EpollBackend {
    const BURST: usize = 128;

    fn new(_: &Share<'_>) -> io::Result<EpollBackend> {
        Ok(EpollBackend {
            epoll: Epoll::new(BATCH)?,
            ready: Vec::with_capacity(BATCH),
            fresh: Vec::new(),
            unwatched: VecDeque::new(),
            watch_next: 0,
        })
    }

    fn open(worker: &mut LoadWorker<'_, EpollBackend>, number: u32) -> io::Result<()> {
        let slot = &mut worker.slots[number as usize];
        let remote = &worker.share.remotes[slot.remote as usize];
        let source = worker.share.plan.sources.nth(slot.next_source);
        slot.next_source += u64::from(worker.share.workers);
        let receive_buffer = (slot.role == Role::SlowReader).then_some(4096);
        let tls = worker.share.tls[slot.remote as usize].is_some();
        // Nagle's algorithm would delay the small messages of a handshake, and small frames.
        let http2 = worker.share.plan.version == RequestVersion::Http2;
        let (tcp_nodelay, join_ack) = (worker.share.persistent || tls, worker.share.plan.join_ack);
        let options = ConnectOptions { source, tcp_nodelay, join_ack, receive_buffer };
        let socket = connect(remote, &options)?;
        worker.connect_begun(number, Some(socket), matches!(remote, Remote::Internet(_)) && !tls && !http2);
        worker.io.fresh.push(number);
        if worker.io.fresh.len() >= TOGETHER {
            EpollBackend::finish_begun(worker);
        }
        Ok(())
    }

    fn finish_begun(worker: &mut LoadWorker<'_, EpollBackend>) {
        let mut fresh = std::mem::take(&mut worker.io.fresh);
        for number in fresh.drain(..) {
            worker.now = clock::monotonic();
            worker.register(number);
        }
        worker.io.fresh = fresh;
    }

    fn flush(worker: &mut LoadWorker<'_, EpollBackend>, number: u32) {
        let slot = &mut worker.slots[number as usize];
        if slot.paused && slot.role == Role::SlowWriter {
            return;
        }
        let most = slot.most_written(worker.share);
        match slot.connection.flush(&mut worker.context, worker.now, most) {
            // The connection may not be watched for writing yet.
            Ok(IoProgress::Blocked) if !worker.watch_again(number) => {}
            Ok(_) => worker.pause(number, Role::SlowWriter),
            Err(error) => {
                // A response that arrived before the close still counts.
                worker.receive(number, true);
                worker.close_failed(number, exchange_error(&error));
            }
        }
    }

    fn resume(worker: &mut LoadWorker<'_, EpollBackend>, number: u32) {
        let slot = &worker.slots[number as usize];
        match slot.role {
            Role::SlowWriter => EpollBackend::flush(worker, number),
            _ => {
                let ended = slot.end_seen;
                worker.receive(number, ended);
            }
        }
    }

    /// Receives from unwatched connections, whose responses arrived while others were begun. If a response is missing,
    /// its connection and the next ones are watched.
    fn begin_tick(worker: &mut LoadWorker<'_, EpollBackend>) {
        for _ in 0..worker.io.unwatched.len() {
            let Some((number, epoch)) = worker.io.unwatched.pop_front() else { break };
            if !worker.is_open(number, epoch) {
                continue;
            }
            worker.receive(number, false);
            if worker.is_open(number, epoch) {
                worker.io.watch_next = WATCH_NEXT;
                let write = worker.slots[number as usize].connection.has_unsent();
                worker.watch(number, write);
            }
        }
    }

    fn may_block(&self) -> bool {
        self.unwatched.is_empty()
    }

    fn wait(worker: &mut LoadWorker<'_, EpollBackend>, nanoseconds: u64) -> io::Result<()> {
        let mut ready = std::mem::take(&mut worker.io.ready);
        ready.clear();
        worker.io.epoll.wait_precisely(nanoseconds, &mut ready)?;
        ready.iter().for_each(|ready| worker.on_ready(ready));
        worker.io.ready = ready;
        EpollBackend::finish_begun(worker);
        Ok(())
    }
}

impl LoadWorker<'_, EpollBackend> {
    #[inline]
    fn on_ready(&mut self, ready: &Ready) {
        let number = ready.key as u32;
        let slot = &mut self.slots[number as usize];
        if slot.epoch != (ready.key >> 32) as u32 {
            return;
        }
        if matches!(slot.connection.state, ConnectionState::Connecting(_)) {
            self.now = clock::monotonic();
            match slot.connection.connect_error() {
                Ok(()) if ready.write || ready.read => self.connected(number),
                Ok(()) => return,
                Err(error) => return self.not_connected(number, &exchange_error(&error)),
            }
        }
        let slot = &mut self.slots[number as usize];
        if slot.epoch != (ready.key >> 32) as u32 {
            return;
        }
        if ready.write && (slot.connection.has_unsent() || slot.connection.has_output()) {
            EpollBackend::flush(self, number);
        }
        if ready.read {
            self.receive(number, ready.ended || ready.gone || ready.error);
        }
    }

    #[inline]
    fn receive(&mut self, number: u32, ended: bool) {
        let slot = &mut self.slots[number as usize];
        if slot.paused && slot.role == Role::SlowReader {
            slot.end_seen |= ended;
            return;
        }
        let handshake = match slot.connection.state {
            ConnectionState::Handshaking(since) => Some(since),
            _ => None,
        };
        // After the end of the server's output, the socket holds a finite rest, and no event follows. Most servers
        // limit the time of a handshake, so only responses are read slowly.
        let most = if ended { usize::MAX } else { MOST_RECEIVED };
        let most = if handshake.is_some() { most } else { most.min(slot.most_read(self.share)) };
        let result = slot.connection.receive(&mut self.context, &mut self.now, ended, most);
        let limited = matches!(result, Ok(IoProgress::Limited));
        if limited && !self.watch_again(number) {
            return;
        }
        if let (Ok(_), Some(since)) = (&result, handshake)
            && !self.end_handshake(number, since)
        {
            return;
        }
        if limited || self.received(number, result) {
            self.pause(number, Role::SlowReader);
            let connection = &self.slots[number as usize].connection;
            if connection.has_output() && !connection.has_unsent() {
                EpollBackend::flush(self, number);
            }
        }
    }

    /// Arms epoll for both directions again. An unwatched connection needs nothing: the tick that receives from it
    /// watches it. Returns whether the connection continues.
    fn watch_again(&mut self, number: u32) -> bool {
        let slot = &self.slots[number as usize];
        let interest = EpollInterest { read: true, write: true, edge: true, ..EpollInterest::default() };
        let descriptor = slot.connection.number().unwrap_or_default();
        match self.io.epoll.modify(descriptor, key(number, slot.epoch), interest) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                self.close_failed(number, exchange_error(&error));
                false
            }
            _ => true,
        }
    }

    /// Pauses a slow connection.
    fn pause(&mut self, number: u32, role: Role) {
        if self.slots[number as usize].role == role {
            self.pause_slow(number);
        }
    }

    /// Sends immediately: on a fast path the connection is already established. Then the connection is watched, for
    /// writing only if it is not yet established. A connection for a single request stays unwatched until the next
    /// tick: while other connections keep this thread busy, the response arrives, and epoll is not needed.
    fn register(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        if self.share.tls[slot.remote as usize].is_some() || self.share.plan.version == RequestVersion::Http2
        {
            return self.watch(number, true);
        }
        let mut sent = slot.connection.has_unsent();
        if sent {
            match slot.connection.flush(&mut self.context, self.now, slot.most_written(self.share)) {
                Ok(progress) => sent = progress != IoProgress::Blocked,
                Err(error) => return self.not_connected(number, &exchange_error(&error)),
            }
            if slot.connection.waiting_since().is_some() {
                self.connected(number);
            }
            if sent {
                self.pause(number, Role::SlowWriter);
            }
        }
        let slot = &self.slots[number as usize];
        let sent_only_request =
            sent && !self.share.persistent && matches!(slot.role, Role::Active | Role::Held);
        if sent_only_request && self.io.watch_next == 0 {
            return self.io.unwatched.push_back((number, slot.epoch));
        }
        self.io.watch_next = self.io.watch_next.saturating_sub(1);
        self.watch(number, !sent);
    }

    /// Watches a connection. `write` also reports its establishment.
    fn watch(&mut self, number: u32, write: bool) {
        let slot = &self.slots[number as usize];
        let interest = EpollInterest { read: true, write, edge: true, ..EpollInterest::default() };
        let descriptor = slot.connection.number().unwrap_or_default();
        if let Err(error) = self.io.epoll.add(descriptor, key(number, slot.epoch), interest) {
            self.close_failed(number, exchange_error(&error));
        }
    }
}

/// The key of an event: the slot and its epoch.
fn key(number: u32, epoch: u32) -> u64 {
    u64::from(epoch) << 32 | u64::from(number)
}
