//! I/O by readiness: calls are tried, and one epoll instance says when to try again.

use std::collections::VecDeque;
use std::io;

use tenfold_sys::clock;
use tenfold_sys::connect::{ConnectOptions, Remote, connect};
use tenfold_sys::epoll::{Epoll, EpollInterest};
use tenfold_sys::readiness::Ready;

use crate::connection::judge::fault_of;
use crate::connection::{Progress, State};
use crate::worker::backend::Backend;
use crate::worker::share::Role;
use crate::worker::share::Share;
use crate::worker::state::Worker;

/// Events of a wait at most.
const BATCH: usize = 512;
/// Connections that are begun together before their requests are sent: each call finds its code and its data in
/// the processor's caches, which made a connection 8 % cheaper. Too many would be felt in the time of a connect.
const TOGETHER: usize = 8;
/// Connections that are watched at once after one whose answer was looked for too early.
const DOUBTS: u32 = 15;

pub(crate) struct Readiness {
    epoll: Epoll,
    ready: Vec<Ready>,
    /// Places whose connection was begun and is not watched yet.
    fresh: Vec<u32>,
    /// Places and generations of connections that asked and are not watched: their answers may be there by the
    /// next turn.
    hopeful: VecDeque<(u32, u32)>,
    /// Connections that are watched at once, because an answer was not there by the next turn.
    doubts: u32,
}

impl Backend for Readiness {
    const BURST: usize = 128;

    fn new(_: &Share<'_>) -> io::Result<Readiness> {
        Ok(Readiness {
            epoll: Epoll::new(BATCH)?,
            ready: Vec::with_capacity(BATCH),
            fresh: Vec::new(),
            hopeful: VecDeque::new(),
            doubts: 0,
        })
    }

    fn open(worker: &mut Worker<'_, Readiness>, number: u32) -> io::Result<()> {
        let place = &mut worker.places[number as usize];
        let remote = &worker.share.remotes[place.remote as usize];
        let source = worker.share.plan.sources.nth(place.next_source);
        place.next_source += u64::from(worker.share.workers);
        let receive_buffer = (place.role == Role::SlowReader).then_some(4096);
        let (tcp_nodelay, join_ack) = (worker.share.persistent, worker.share.plan.join_ack);
        let options = ConnectOptions { source, tcp_nodelay, join_ack, receive_buffer };
        let socket = connect(remote, &options)?;
        worker.begun(number, Some(socket), matches!(remote, Remote::Internet(_)));
        worker.io.fresh.push(number);
        if worker.io.fresh.len() >= TOGETHER {
            Readiness::go_on(worker);
        }
        Ok(())
    }

    fn go_on(worker: &mut Worker<'_, Readiness>) {
        let mut fresh = std::mem::take(&mut worker.io.fresh);
        for number in fresh.drain(..) {
            worker.now = clock::monotonic();
            worker.register(number);
        }
        worker.io.fresh = fresh;
    }

    fn flush(worker: &mut Worker<'_, Readiness>, number: u32) {
        let place = &mut worker.places[number as usize];
        if place.paused && place.role == Role::SlowWriter {
            return;
        }
        let most = place.most_written(worker.share);
        match place.connection.flush(&mut worker.shared, worker.now, most) {
            Ok(_) => worker.pause(number, Role::SlowWriter),
            Err(error) => {
                // What the server said before it hung up counts first.
                worker.receive(number, true);
                worker.lose(number, fault_of(&error));
            }
        }
    }

    fn resume(worker: &mut Worker<'_, Readiness>, number: u32) {
        let place = &worker.places[number as usize];
        match place.role {
            Role::SlowWriter => Readiness::flush(worker, number),
            _ => {
                let ended = place.end_seen;
                worker.receive(number, ended);
            }
        }
    }

    /// Receives from connections that are not watched: while others were begun, their answers came. One that
    /// has none yet is watched from now on, and so are the next ones.
    fn begin_tick(worker: &mut Worker<'_, Readiness>) {
        for _ in 0..worker.io.hopeful.len() {
            let Some((number, generation)) = worker.io.hopeful.pop_front() else { break };
            if !worker.is_open(number, generation) {
                continue;
            }
            worker.receive(number, false);
            if worker.is_open(number, generation) {
                worker.io.doubts = DOUBTS;
                worker.watch(number, false);
            }
        }
    }

    fn may_block(&self) -> bool {
        self.hopeful.is_empty()
    }

    fn wait(worker: &mut Worker<'_, Readiness>, nanoseconds: u64) -> io::Result<()> {
        let mut ready = std::mem::take(&mut worker.io.ready);
        ready.clear();
        worker.io.epoll.wait_precisely(Some(nanoseconds), &mut ready)?;
        ready.iter().for_each(|ready| worker.on_ready(ready));
        worker.io.ready = ready;
        Readiness::go_on(worker);
        Ok(())
    }
}

impl Worker<'_, Readiness> {
    #[inline]
    fn on_ready(&mut self, ready: &Ready) {
        let number = ready.key as u32;
        let place = &mut self.places[number as usize];
        if place.generation != (ready.key >> 32) as u32 {
            return;
        }
        if place.connection.state != State::Open {
            self.now = clock::monotonic();
            match place.connection.connect_error() {
                Ok(()) if ready.write || ready.read => self.connected(number),
                Ok(()) => return,
                Err(error) => return self.not_connected(number, &fault_of(&error)),
            }
        }
        let place = &mut self.places[number as usize];
        if ready.write && place.connection.has_unsent() {
            Readiness::flush(self, number);
        }
        if ready.read {
            self.receive(number, ready.ended || ready.gone || ready.error);
        }
    }

    #[inline]
    fn receive(&mut self, number: u32, ended: bool) {
        let place = &mut self.places[number as usize];
        if place.paused && place.role == Role::SlowReader {
            place.end_seen |= ended;
            return;
        }
        let most = place.most_read(self.share);
        let result = place.connection.receive(&mut self.shared, &mut self.now, ended, most);
        if matches!(result, Ok(Progress::Limited)) || self.received(number, result) {
            self.pause(number, Role::SlowReader);
        }
    }

    /// A slow connection goes on a little later.
    fn pause(&mut self, number: u32, role: Role) {
        if self.places[number as usize].role == role {
            self.rest(number);
        }
    }

    /// Sends at once what there is to send: on a fast way the connection is there already. Then it is watched,
    /// for room only where that has not come yet, or, where it ends with one answer, looked at in the next turn:
    /// the answer is there by then while others keep this thread busy, and epoll need not know of it at all.
    fn register(&mut self, number: u32) {
        let place = &mut self.places[number as usize];
        let mut told = place.connection.has_unsent();
        if told {
            match place.connection.flush(&mut self.shared, self.now, place.most_written(self.share)) {
                Ok(progress) => told = progress != Progress::Blocked,
                Err(error) => return self.not_connected(number, &fault_of(&error)),
            }
            if place.connection.waiting_since().is_some() {
                self.connected(number);
            }
            if told {
                self.pause(number, Role::SlowWriter);
            }
        }
        let place = &self.places[number as usize];
        let asked_once = told && !self.share.persistent && matches!(place.role, Role::Active | Role::Held);
        if asked_once && self.io.doubts == 0 {
            return self.io.hopeful.push_back((number, place.generation));
        }
        self.io.doubts = self.io.doubts.saturating_sub(1);
        self.watch(number, !told);
    }

    /// Watches a connection, for room too where that has not come yet.
    fn watch(&mut self, number: u32, write: bool) {
        let place = &self.places[number as usize];
        let interest = EpollInterest { read: true, write, edge: true, ..EpollInterest::default() };
        let descriptor = place.connection.number().unwrap_or_default();
        if let Err(error) = self.io.epoll.add(descriptor, key(number, place.generation), interest) {
            self.lose(number, fault_of(&error));
        }
    }
}

/// What epoll gives back with an event: the place, and which of its connections.
fn key(number: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(number)
}
