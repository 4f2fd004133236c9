//! The completion driver: operations are handed to a ring once a turn, and tasks are polled when theirs
//! come back.
//!
//! The ring owns what is in flight. A socket is closed only when no operation names it any more: a
//! receive that waits is ended by `shutdown(2)`, and sends in flight are waited for first.

mod input;
mod io;
mod link;
mod sources;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tenfold_http::{Instant, IoError, Next};
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Socket;
use tenfold_sys::uring::{Completion, ROOM, Ring, RingBuffer, Sizes};

use self::io::RingIo;
use self::link::{AGAIN, FILE_READ, LOST, Link, RECEIVED, SENT, WRITABLE};
use self::sources::Sources;
use super::read_clock;
use super::tasks::{Finished, Tasks, activation};
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

/// Bytes received while nobody reads, at which receiving is stopped.
const INBOX_BYTES: usize = 16 * 1024;
/// How long what was handed over may take when its connection would otherwise be closed.
const LAST_SENDS: Duration = Duration::from_secs(60);
/// Vectors to stage into that are kept, and the most that each may hold.
const SPARE: usize = 64;
const SPARE_BYTES: usize = 32 * 1024;

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
}

const KINDS: [Kind; 7] =
    [Kind::Receive, Kind::Send, Kind::Poll, Kind::Close, Kind::Read, Kind::Cancel, Kind::Source];
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
    proactor.run(Sources::new(intake))
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
            self.ring.wait(timeout, &mut completions).map_err(|error| format!("io_uring_enter: {error}"))?;
            let woken = self.inbox.wake_up();
            let now = read_clock();
            sources.resume(&mut self.ring, now);
            for completion in completions.drain(..) {
                self.completed(completion, &mut sources, now, &watch)?;
            }
            while let Some((socket, listener)) = sources.next_handed() {
                self.accepted(socket, listener);
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
        if !self.inbox.fall_asleep() || !self.again.is_empty() {
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
                self.accepted(socket, listener);
            }
            return Ok(());
        }
        let found =
            self.connections.key_at(index).filter(|key| key.generation & GENERATION_MASK == generation);
        let Some(key) = found else { return Ok(()) };
        match kind {
            Kind::Receive => self.received(key, completion.result, completion.more, completion.buffer),
            Kind::Send => self.sent(key, completion.result, completion.memory),
            Kind::Poll => self.writable(key, completion.result, completion.more),
            Kind::Close => self.connections_end(key),
            Kind::Read => self.file_read(key, completion.result, completion.memory),
            Kind::Cancel | Kind::Source => {}
        }
        Ok(())
    }

    fn accepted(&mut self, socket: Socket, listener: u16) {
        if self.connections.count() >= self.plan.bounds.connections {
            self.protocol.observe(Event::TooMany);
            return;
        }
        self.protocol.observe(Event::Accepted);
        let peer = socket.peer();
        let key = self.connections.insert(socket, peer, listener);
        if let Some(slot) = self.connections.find(key) {
            slot.state = State::Parked;
        }
        self.connections.set_deadline(key, self.protocol.first_bytes_by());
        self.receive(key);
    }

    /// Sees to it that a receive is in flight for connection `key`. The first is one-shot: a connection
    /// that is served once has nothing to cancel then.
    fn receive(&mut self, key: Key) {
        let number = self.number(key);
        let Some(slot) = self.connections.find(key) else { return };
        if slot.interest & RECEIVING != 0 || slot.flags & ENDED != 0 {
            return;
        }
        slot.interest |= RECEIVING;
        if slot.flags & GREETED == 0 {
            slot.flags |= GREETED;
            self.ring.receive(number, tag(Kind::Receive, key));
        } else {
            slot.interest |= MULTISHOT;
            self.ring.receive_on(number, tag(Kind::Receive, key));
        }
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

    fn received(&mut self, key: Key, result: i32, more: bool, buffer: Option<RingBuffer>) {
        let Some(slot) = self.connections.find(key) else { return };
        if !more {
            slot.interest &= !(RECEIVING | MULTISHOT | CANCELLING);
        }
        if result == 0 {
            slot.flags |= ENDED;
        }
        match (slot.state, result) {
            (State::Closing, _) => self.close_when_done(key),
            // No buffer was free: there will be one when this turn is over. Or it was cancelled.
            (State::Parked | State::Lingering, _) if transient(result) => self.receive(key),
            (State::Lingering, 1..) => self.lingered(key, result as u32),
            (State::Lingering, _) => self.close(key),
            (State::Parked, 1..) => {
                if let Some(buffer) = buffer {
                    self.activate(key, Some(buffer), Vec::new());
                }
            }
            // The peer has ended its output and may still read: what it was promised is on its way, and a
            // layer has a last word.
            (State::Parked, 0) => self.activate(key, None, Vec::new()),
            (State::Parked, _) => self.close(key),
            (State::Active, _) => self.received_active(key, result, buffer),
            (State::Free, _) => {}
        }
    }

    fn received_active(&mut self, key: Key, result: i32, buffer: Option<RingBuffer>) {
        let Some(slot) = self.connections.find(key) else { return };
        let (task, interest) = (slot.link, slot.interest);
        let link = self.tasks.attached(task).link.clone();
        match result {
            1.. => {
                if link.wants(RECEIVED) {
                    link.current.replace(buffer);
                    return self.poll(key, task);
                }
                let mut inbox = link.inbox.borrow_mut();
                inbox.extend_from_slice(buffer.as_deref().unwrap_or_default());
                // A multishot receive knows no back pressure: it is ended, and begun again when wanted.
                if inbox.len() >= INBOX_BYTES && interest & (MULTISHOT | CANCELLING) == MULTISHOT {
                    if let Some(slot) = self.connections.find(key) {
                        slot.interest |= CANCELLING;
                    }
                    self.ring.cancel(tag(Kind::Receive, key), tag(Kind::Cancel, key));
                }
            }
            _ if transient(result) => {
                if link.wants(RECEIVED | LOST) && link.inbox.borrow().len() < INBOX_BYTES {
                    self.receive(key);
                }
            }
            0 => {
                link.ended.set(true);
                if link.wants(RECEIVED) {
                    self.poll(key, task);
                }
            }
            _ => {
                link.failed.set(Some(IoError::Gone));
                self.poll(key, task);
            }
        }
    }

    fn sent(&mut self, key: Key, result: i32, memory: Option<Vec<u8>>) {
        if let Some(memory) = memory {
            self.keep_spare(memory);
        }
        if result > 0 {
            self.protocol.observe(Event::Sent(result as u64));
        }
        let Some(slot) = self.connections.find(key) else { return };
        slot.sending -= 1;
        let (sending, task) = (slot.sending, slot.link);
        if result < 0 {
            slot.flags |= FAILED;
        }
        match slot.state {
            State::Active => {
                let link = self.tasks.attached(task).link.clone();
                link.sending.set(sending);
                if result < 0 {
                    link.failed.set(Some(IoError::Gone));
                } else {
                    link.sent.set(link.sent.get() + result as u64);
                }
                if link.wants(SENT) && (sending == 0 || result < 0) {
                    self.poll(key, task);
                }
            }
            State::Closing => self.close_when_done(key),
            _ if result < 0 => self.close(key),
            _ => {}
        }
    }

    fn keep_spare(&mut self, mut memory: Vec<u8>) {
        if self.spare.len() < SPARE && memory.capacity() <= SPARE_BYTES {
            memory.clear();
            self.spare.push(memory);
        }
    }

    fn writable(&mut self, key: Key, result: i32, more: bool) {
        let Some(slot) = self.connections.find(key) else { return };
        if !more {
            slot.interest &= !POLLING;
        }
        match slot.state {
            State::Active if result < 0 || result & ROOM != 0 => {
                let task = slot.link;
                let link = self.tasks.attached(task).link.clone();
                link.writable.set(true);
                if link.wants(WRITABLE) {
                    self.poll(key, task);
                }
            }
            State::Closing => self.close_when_done(key),
            _ => {}
        }
    }

    fn file_read(&mut self, key: Key, result: i32, memory: Option<Vec<u8>>) {
        let Some(slot) = self.connections.find(key) else { return };
        if slot.state == State::Active {
            let task = slot.link;
            let link = self.tasks.attached(task).link.clone();
            link.file_done.replace(memory.map(|memory| (memory, result)));
            if link.wants(FILE_READ) {
                self.poll(key, task);
            }
        }
    }

    fn woken(&mut self, key: Key) {
        let Some(slot) = self.connections.find(key) else { return };
        if slot.state == State::Active {
            let task = slot.link;
            self.tasks.woken(task);
            self.poll(key, task);
        }
    }

    fn once_more(&mut self, key: Key) {
        let Some(slot) = self.connections.find(key) else { return };
        if slot.state == State::Active {
            let task = slot.link;
            self.poll(key, task);
        }
    }

    /// The wait of connection `key` has ended.
    fn due(&mut self, key: Key) {
        let Some(slot) = self.connections.find(key) else { return };
        match slot.state {
            State::Active => {
                let task = slot.link;
                self.poll(key, task);
            }
            // It rests, but its peer has not taken the last answer yet.
            State::Parked if slot.sending > 0 => {
                self.close_gently(key, tenfold_http::clock::now() + LAST_SENDS);
            }
            State::Parked => {
                self.protocol.observe(Event::Expired);
                self.close(key);
            }
            _ => self.close(key),
        }
    }

    /// Gives connection `key` a task, and serves it with what has come: `buffer`, behind `inbox`.
    fn activate(&mut self, key: Key, buffer: Option<RingBuffer>, inbox: Vec<u8>) {
        let Some(slot) = self.connections.find(key) else { return };
        let Some(socket) = slot.socket.take() else { return };
        let (peer, listener, sending) = (slot.peer(), slot.listener, slot.sending);
        let (ended, failed) = (slot.flags & ENDED != 0, slot.flags & FAILED != 0);
        let memory = std::mem::take(&mut slot.memory);
        slot.state = State::Active;
        let (plan, start, number) = (self.plan, &self.start, socket.number());
        let task = self.tasks.begin(key, |used| {
            let mut io = used.unwrap_or_else(|| Box::new(RingIo::new(plan.sender, plan.bounds.turn_bytes)));
            io.begin(socket, peer, listener, sending);
            let link = io.link();
            link.current.replace(buffer);
            link.inbox.replace(inbox);
            link.ended.set(ended);
            link.failed.set(failed.then_some(IoError::Gone));
            let attached = Active { link: link.clone(), number };
            (start(io, memory), attached)
        });
        slot.link = task;
        self.poll(key, task);
    }

    fn poll(&mut self, key: Key, task: u32) {
        let link = self.tasks.attached(task).link.clone();
        if link.spare.borrow().is_empty() {
            link.spare.borrow_mut().extend(self.spare.pop());
        }
        match catch_unwind(AssertUnwindSafe(|| self.tasks.poll(task))) {
            Ok(Poll::Pending) => self.wait(key, &link),
            Ok(Poll::Ready(finished)) => self.finished(key, task, &link, finished),
            Err(_) => {
                self.tasks.end(task, None);
                self.protocol.observe(Event::Panicked);
                self.panicked(key, &link);
            }
        }
    }

    /// Closes connection `key`, whose task has panicked. Its socket is closed when no operation names it:
    /// its number may be another connection's by then.
    fn panicked(&mut self, key: Key, link: &Link) {
        let Some(slot) = self.connections.find(key) else { return };
        slot.socket = link.abandoned.take();
        slot.state = State::Parked;
        self.close(key);
    }

    /// The task of connection `key` waits: hands over what it has, and asks for what it wants.
    fn wait(&mut self, key: Key, link: &Rc<Link>) {
        self.hand_over(key, link, false);
        if link.wants(AGAIN) {
            return self.again.push(key);
        }
        if link.wants(RECEIVED | LOST) {
            self.receive(key);
        }
        let number = self.number(key);
        if link.wants(WRITABLE) {
            let Some(slot) = self.connections.find(key) else { return };
            if slot.interest & POLLING == 0 {
                slot.interest |= POLLING;
                self.ring.poll_write(number, tag(Kind::Poll, key));
            }
        }
        if let Some(read) = link.file_read.take() {
            self.ring.read(read.file, read.offset, read.memory, tag(Kind::Read, key));
        }
        self.connections.set_deadline(key, link.deadline().unwrap_or(Instant::NEVER));
    }

    /// Hands over what connection `key` sends, as a chain of operations that begin one after the other;
    /// `closing` says that a close is linked behind. Says whether there was anything.
    fn hand_over(&mut self, key: Key, link: &Rc<Link>, closing: bool) -> bool {
        let mut outgoing = link.outgoing.borrow_mut();
        let count = outgoing.len();
        if count == 0 {
            return false;
        }
        let number = self.number(key);
        let Some(slot) = self.connections.find(key) else { return false };
        slot.sending += count as u8;
        link.sending.set(slot.sending);
        for (place, (bytes, more)) in outgoing.drain(..).enumerate() {
            let linked = closing || place + 1 < count;
            self.ring.send(number, bytes, more, linked, tag(Kind::Send, key));
        }
        true
    }

    /// The task of connection `key` is done with it for now.
    fn finished(&mut self, key: Key, task: u32, link: &Rc<Link>, finished: Finished<RingIo, P::State>) {
        let Finished { mut io, memory, next } = finished;
        let calls = io.called();
        let socket = io.end();
        let unread = std::mem::take(&mut *link.inbox.borrow_mut());
        if calls > 0 {
            self.protocol.observe(Event::Sent(calls));
        }
        let served = calls > 0 || link.sent.get() > 0 || !link.outgoing.borrow().is_empty();
        let Some(slot) = self.connections.find(key) else { return };
        slot.socket = socket;
        slot.memory = memory;
        slot.state = State::Parked;
        if served {
            slot.flags |= SERVED;
        }
        let quiet = slot.interest == 0 && slot.sending == 0;
        // A wait that was in vain is over; where there was none, the last bytes have some time.
        let deadline = link.deadline().unwrap_or_else(|| tenfold_http::clock::now() + LAST_SENDS);
        if next == Next::Close && quiet {
            self.close_behind(key, link, deadline);
            return self.tasks.end(task, Some(io));
        }
        self.hand_over(key, link, false);
        self.tasks.end(task, Some(io));
        match next {
            Next::Close => self.close_gently(key, deadline),
            Next::Park(by) => {
                self.connections.set_deadline(key, by);
                if !unread.is_empty() {
                    return self.activate(key, None, unread);
                }
                self.receive(key);
                let over = self.connections.find(key).is_some_and(|slot| slot.flags & (ENDED | FAILED) != 0);
                if over {
                    self.close_gently(key, by.max(tenfold_http::clock::now() + LAST_SENDS));
                }
            }
            Next::Linger => {
                let Some(slot) = self.connections.find(key) else { return };
                slot.state = State::Lingering;
                slot.link = 0;
                let ended = slot.flags & ENDED != 0;
                let by = tenfold_http::clock::now() + self.plan.bounds.linger_time;
                self.connections.set_deadline(key, by);
                if ended { self.close(key) } else { self.receive(key) }
            }
        }
    }

    /// Counts what was thrown away on a connection whose output is shut down.
    fn lingered(&mut self, key: Key, count: u32) {
        let Some(slot) = self.connections.find(key) else { return };
        slot.link = slot.link.saturating_add(count);
        if u64::from(slot.link) > self.plan.bounds.linger_bytes {
            self.close(key);
        } else {
            self.receive(key);
        }
    }

    /// Hands over the last bytes of connection `key`, and its close behind them: one submission, and no
    /// call of its own.
    fn close_behind(&mut self, key: Key, link: &Rc<Link>, by: Instant) {
        if !self.hand_over(key, link, true) {
            return self.connections_end(key);
        }
        let Some(slot) = self.connections.find(key) else { return };
        slot.state = State::Closing;
        slot.interest |= CLOSING;
        if let Some(socket) = slot.socket.take() {
            slot.link = socket.number() as u32;
            self.ring.close(socket, tag(Kind::Close, key));
        }
        self.connections.set_deadline(key, by);
    }

    /// Closes connection `key` when its sends are done, at the latest at `by`.
    fn close_gently(&mut self, key: Key, by: Instant) {
        let Some(slot) = self.connections.find(key) else { return };
        if slot.sending == 0 {
            return self.close(key);
        }
        slot.state = State::Closing;
        self.connections.set_deadline(key, by);
    }

    /// Closes connection `key` now. What is in flight is ended first, by `shutdown(2)`.
    fn close(&mut self, key: Key) {
        let Some(slot) = self.connections.find(key) else { return };
        if slot.interest & (RECEIVING | POLLING | CLOSING) == 0 && slot.sending == 0 {
            return self.connections_end(key);
        }
        slot.state = State::Closing;
        if slot.interest & POLLING != 0 {
            self.ring.cancel(tag(Kind::Poll, key), tag(Kind::Cancel, key));
        }
        match &slot.socket {
            Some(socket) => socket.shut_down(),
            // Its close is queued behind sends that do not end: they are cancelled.
            None => self.ring.cancel_all(slot.link as i32, tag(Kind::Cancel, key)),
        }
    }

    fn close_when_done(&mut self, key: Key) {
        let Some(slot) = self.connections.find(key) else { return };
        if slot.interest & CLOSING != 0 {
            return;
        }
        if slot.sending == 0 {
            self.close(key);
        }
    }

    /// Forgets connection `key`, which no operation names any more.
    fn connections_end(&mut self, key: Key) {
        if self.connections.find(key).is_some() {
            self.connections.remove(key);
            self.protocol.observe(Event::Closed);
        }
    }
}

/// Whether a receive only has to be begun again: no buffer was free (ENOBUFS), or it was cancelled
/// (ECANCELED).
fn transient(result: i32) -> bool {
    matches!(result, -105 | -125)
}
