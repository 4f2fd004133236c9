//! The completion driver: operations are handed to a ring once a turn, and tasks are polled when theirs
//! come back.
//!
//! The ring owns what is in flight. A socket is closed only when no operation names it any more: a
//! receive that waits is ended by `shutdown(2)`, and sends in flight are waited for first.

mod closing;
mod input;
mod io;
mod link;
mod receiving;
mod sending;
mod serving;
mod sources;

use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tenfold_http::Instant;
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Socket;
use tenfold_sys::uring::{Completion, Ring, Sizes};

use self::io::RingIo;
use self::link::Link;
use self::sources::Sources;
use super::tasks::{Finished, Tasks, activation};
use super::{of_accepted, pause_where_short, read_clock};
use crate::connections::Connections;
use crate::inbox::Inbox;
use crate::models::Intake;
use crate::plan::Plan;
use crate::protocol::{Event, Protocol};
use crate::slots::{Key, Slot, State};

/// What a worker's ring holds; probed before it runs.
pub(crate) const SIZES: Sizes =
    Sizes { submissions: 1024, completions: 4096, buffers: 512, buffer_bytes: 4096 };

fn sizes() -> Sizes {
    #[cfg(feature = "test-layer")]
    if let Some(sizes) = crate::faults::rings() {
        return sizes;
    }
    SIZES
}

/// How long what was handed over may take when its connection would otherwise be closed.
const LAST_SENDS: Duration = Duration::from_secs(60);

/// Bits of a slot's interest: operations in flight that name the socket.
const RECEIVING: u8 = 1;
const MULTISHOT: u8 = 2;
const CANCELLING: u8 = 4;
const POLLING: u8 = 8;
const CLOSING: u8 = 16;

/// Bits of a slot's flags.
const SERVED: u8 = 1;
/// The first receive, which is one-shot, has been made.
const GREETED: u8 = 2;
/// The peer has ended its output.
const ENDED: u8 = 4;
/// A send has failed.
const FAILED: u8 = 8;

/// What an operation was, in the top bits of its tag; below, the generation and the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Kind {
    Receive = 0,
    Send,
    Poll,
    Close,
    Read,
    Cancel,
    /// An accept, or an eventfd: the slot's place is the source's.
    Source,
    /// A send that is not to copy.
    Held,
}

const KINDS: [Kind; 8] =
    [Kind::Receive, Kind::Send, Kind::Poll, Kind::Close, Kind::Read, Kind::Cancel, Kind::Source, Kind::Held];
const KIND_SHIFT: u32 = 59;
const GENERATION_MASK: u32 = (1 << (KIND_SHIFT - 32)) - 1;

fn tag(kind: Kind, key: Key) -> u64 {
    (kind as u64) << KIND_SHIFT | u64::from(key.generation & GENERATION_MASK) << 32 | u64::from(key.index)
}

/// Runs the loop on a ring of its own until the server leaves.
pub(crate) fn serve<P: Protocol>(plan: &Plan, intake: &Intake<'_>, protocol: &P) -> Result<(), String> {
    let inbox = Inbox::new().map_err(|error| format!("cannot make an eventfd: {error}"))?;
    let inbox = Arc::new(inbox);
    let ring = Ring::new(sizes()).map_err(|(what, error)| format!("{what}: {error}"))?;
    let start = |io, memory| activation::<RingIo, P>(io, memory, protocol);
    let mut proactor = Proactor {
        ring,
        connections: Connections::new(plan, read_clock()),
        tasks: Tasks::new(inbox.clone()),
        again: Vec::new(),
        spare: Vec::new(),
        inbox,
        plan,
        protocol,
        start,
    };
    proactor.run(Sources::new(intake, plan.accept))
}

/// What the driver keeps of a task whose `Io` the task owns.
struct Active {
    link: Rc<Link>,
    number: i32,
}

struct Proactor<'a, P: Protocol, F, M> {
    ring: Ring,
    connections: Connections<P::State>,
    tasks: Tasks<F, RingIo, Active>,
    /// Connections that are served again before the next wait.
    again: Vec<Key>,
    /// Vectors to stage into.
    spare: Vec<Vec<u8>>,
    inbox: Arc<Inbox>,
    plan: &'a Plan,
    protocol: &'a P,
    start: M,
}

impl<P, F, M> Proactor<'_, P, F, M>
where
    P: Protocol,
    F: Future<Output = Finished<RingIo, P::State>>,
    M: Fn(Box<RingIo>, P::State) -> F,
{
    fn run(&mut self, mut sources: Sources<'_>) -> Result<(), String> {
        let watch = lifecycle::Watch::new().map_err(|error| format!("cannot make an eventfd: {error}"))?;
        sources.open(&mut self.ring, watch.event(), self.inbox.event());
        let (mut completions, mut keys) = (Vec::new(), Vec::new());
        loop {
            match lifecycle::phase() {
                Phase::Serving => {}
                Phase::Draining if self.drain(&mut sources) => {}
                Phase::Draining | Phase::Stopping => break,
            }
            let timeout = self.timeout(&sources);
            let waited = self.ring.wait(timeout, &mut completions);
            let waited = waited.or_else(|error| pause_where_short(error, self.protocol));
            waited.map_err(|error| format!("io_uring_enter: {error}"))?;
            let woken = self.inbox.wake_up();
            let now = read_clock();
            sources.resume(&mut self.ring, now);
            for completion in completions.drain(..) {
                self.completed(completion, &mut sources, now, &watch)?;
            }
            while let Some((socket, peer, listener)) = sources.next_handed() {
                self.accepted(socket, peer, listener);
            }
            if woken {
                self.inbox.take(&mut keys);
                keys.drain(..).for_each(|key| self.woken(key));
            }
            if !self.again.is_empty() {
                std::mem::swap(&mut self.again, &mut keys);
                keys.drain(..).for_each(|key| self.once_more(key));
            }
            self.connections.expire(now, &mut keys);
            keys.drain(..).for_each(|key| self.due(key));
            self.tasks.trim(now);
        }
        read_clock();
        self.protocol.leave();
        Ok(())
    }

    /// How long the next wait may last. From here on wakers tell the loop.
    fn timeout(&mut self, sources: &Sources<'_>) -> Option<Duration> {
        let rest = self.protocol.rest();
        if !self.inbox.fall_asleep(self.tasks.any()) || !self.again.is_empty() {
            return Some(Duration::ZERO);
        }
        let by = self.connections.next_deadline().min(rest).min(self.tasks.trims()).min(sources.resumes());
        (by != Instant::NEVER).then(|| by.since(tenfold_http::clock::now()) + Duration::from_millis(1))
    }

    /// Leaves step by step; says whether connections are left.
    fn drain(&mut self, sources: &mut Sources<'_>) -> bool {
        if sources.leave(&mut self.ring) {
            let resting = |slot: &Slot<P::State>| slot.state == State::Parked && slot.flags & SERVED != 0;
            for key in self.connections.keys(resting) {
                self.close_gently(key, tenfold_http::clock::now() + LAST_SENDS);
            }
        }
        self.connections.count() > 0 || sources.expects()
    }

    fn completed(
        &mut self,
        completion: Completion,
        sources: &mut Sources<'_>,
        now: Instant,
        watch: &lifecycle::Watch,
    ) -> Result<(), String> {
        let kind = KINDS[(completion.tag >> KIND_SHIFT) as usize];
        let generation = (completion.tag >> 32) as u32 & GENERATION_MASK;
        let index = completion.tag as u32;
        if kind == Kind::Source {
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
        let found =
            self.connections.key_at(index).filter(|key| key.generation & GENERATION_MASK == generation);
        let Some(key) = found else { return Ok(()) };
        match kind {
            Kind::Receive => self.received(key, completion.result, completion.more, completion.buffer),
            Kind::Send => self.sent(key, completion.result, completion.memory),
            Kind::Held => self.sent_held(key, completion.result),
            Kind::Poll => self.writable(key, completion.result, completion.more),
            Kind::Close => self.connections_end(key),
            Kind::Read => self.file_read(key, completion.result, completion.memory),
            Kind::Cancel => self.cancelled(key, completion.result),
            Kind::Source => {}
        }
        Ok(())
    }

    /// A multishot accept does not tell whom it accepted, and who is gone by now is not told any more.
    fn accepted_without_peer(&mut self, socket: Socket, listener: u16) {
        match socket.peer() {
            Ok(peer) => self.accepted(socket, peer, listener),
            Err(error) => {
                self.protocol.observe(Event::Accepted);
                if error.kind() != std::io::ErrorKind::NotConnected {
                    self.protocol.observe(Event::Exhausted);
                }
                self.protocol.observe(Event::Closed);
            }
        }
    }

    fn accepted(&mut self, socket: Socket, peer: Option<SocketAddr>, listener: u16) {
        if self.connections.count() >= self.plan.bounds.connections {
            self.protocol.observe(Event::TooMany);
            return;
        }
        if !self.protocol.admit(&of_accepted(peer)) {
            return;
        }
        self.protocol.observe(Event::Accepted);
        let key = self.connections.insert(socket, peer, listener);
        if let Some(slot) = self.connections.find(key) {
            slot.state = State::Parked;
        }
        self.connections.set_deadline(key, self.protocol.first_bytes_by());
        self.receive(key);
    }

    /// The number of connection `key`'s socket, which its slot or its task has.
    fn number(&mut self, key: Key) -> i32 {
        match self.connections.find(key) {
            Some(Slot { socket: Some(socket), .. }) => socket.number(),
            Some(Slot { state: State::Active, link, .. }) => {
                let task = *link;
                self.tasks.attached(task).number
            }
            _ => -1,
        }
    }
}
