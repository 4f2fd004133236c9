//! I/O by completion: operations are handed to one ring, with all that was begun in the same turn, and come back
//! done. The ring makes the sockets, too, and keeps them in slots numbered as the slots are.
//!
//! A connection has one send and one receive in flight at most. The receive is handed over when the send has
//! come back: the answer is mostly there by then, and nothing has to wait for it in the kernel.
//!
//! Times are those at which this thread heard of something. A turn has one, after its wait, so a time is never
//! shorter than it was; a request is sent at the time when it is handed over.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tenfold_sys::completion::Bytes;
use tenfold_sys::connect::Remote;
use tenfold_sys::uring::{self, Address, Ring, Sizes, SocketOption};
use tenfold_sys::{clock, errno, failure};

use crate::connection::judge::exchange_error;
use crate::connection::{ConnectionState, IoProgress};
use crate::worker::backend::Backend;
use crate::worker::share::Share;
use crate::worker::state::LoadWorker;

/// Of the ring of a thread: 1 MB of buffers, of which one is used for a receive and free again at once.
const SIZES: Sizes = Sizes { submissions: 256, completions: 2048, buffers: 64, buffer_bytes: 16 << 10 };
/// Bytes of a send at most; what is left follows.
const MOST_SENT: usize = 64 << 10;
/// Bytes of a send behind which nothing is received until it has come back: they fit into any send buffer, so
/// that comes soon. A longer one may wait for a server that answers first.
const SHORT: usize = 4 << 10;
/// Vectors of sends that are kept to be used again.
const STOCK: usize = 256;
/// Bytes of such a vector at most.
const KEPT: usize = 16 << 10;

/// What an operation was, in its tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RingOperation {
    /// A step before the connect.
    Step,
    Connect,
    Send,
    Receive,
    Discard,
    /// A cancellation, or a close.
    End,
}

const RING_OPERATIONS: [RingOperation; 6] = [
    RingOperation::Step,
    RingOperation::Connect,
    RingOperation::Send,
    RingOperation::Receive,
    RingOperation::Discard,
    RingOperation::End,
];

/// Bits of the generation in a tag: an operation is over long before a slot has had so many connections.
const GENERATION: u32 = (1 << 27) - 1;

fn tag(kind: RingOperation, number: u32, generation: u32) -> u64 {
    (kind as u64) << 59 | u64::from(generation & GENERATION) << 32 | u64::from(number)
}

/// What a slot has in the ring.
#[derive(Clone, Copy, Default)]
struct RingState {
    /// A socket is in its slot.
    made: bool,
    connecting: bool,
    /// Bytes of the send that is in flight; 0 where there is none.
    sending: usize,
    receiving: bool,
}

pub(crate) struct UringBackend {
    ring: Ring,
    ring_states: Vec<RingState>,
    /// Where the servers are, by their numbers.
    addresses: Vec<Arc<Address>>,
    switches: Vec<SocketOption>,
    done: Vec<uring::RingCompletion>,
    stock: Vec<Vec<u8>>,
}

impl Backend for UringBackend {
    /// All of them are handed over at once, and the first is heard of when the last has been: many would be felt in
    /// the time of a connect.
    const BURST: usize = 16;

    fn new(share: &Share<'_>) -> io::Result<UringBackend> {
        let address = |remote: &Remote| match remote {
            Remote::Internet(at) => Ok(Arc::new(Address::from(*at))),
            Remote::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        };
        let addresses = share.remotes.iter().map(address).collect::<io::Result<_>>()?;
        let slots = share.slot_count();
        // Where there are more threads than idle connections, one has no slot, and a table has a slot.
        let ring = Ring::with_slots(SIZES, slots.max(1))
            .map_err(|(step, error)| io::Error::new(error.kind(), format!("{step}: {error}")))?;
        let no_delay = share.persistent.then_some(SocketOption::NoDelay);
        let join_ack = share.plan.join_ack.then_some(SocketOption::JoinAck);
        Ok(UringBackend {
            ring,
            ring_states: vec![RingState::default(); slots as usize],
            addresses,
            switches: no_delay.into_iter().chain(join_ack).collect(),
            done: Vec::new(),
            stock: Vec::new(),
        })
    }

    fn open(worker: &mut LoadWorker<'_, UringBackend>, number: u32) -> io::Result<()> {
        worker.connect_begun(number, None, true);
        let slot = &worker.slots[number as usize];
        let (step, connect) = [RingOperation::Step, RingOperation::Connect]
            .map(|kind| tag(kind, number, slot.generation))
            .into();
        let UringBackend { ring, ring_states, addresses, switches, .. } = &mut worker.io;
        ring.connect(number, &addresses[slot.remote as usize], switches, step, connect);
        ring_states[number as usize] = RingState { made: true, connecting: true, ..RingState::default() };
        Ok(())
    }

    /// Hands over what is to be sent, or, where nothing is, a receive.
    fn flush(worker: &mut LoadWorker<'_, UringBackend>, number: u32) {
        let LoadWorker { io, slots, context, now, .. } = worker;
        let (ring_state, slot) = (&mut io.ring_states[number as usize], &mut slots[number as usize]);
        let connection = &mut slot.connection;
        if connection.state != ConnectionState::Open {
            return;
        }
        if ring_state.sending == 0 && connection.has_unsent() {
            let mut bytes = io.stock.pop().unwrap_or_default();
            bytes.clear();
            bytes.extend_from_slice(connection.waiting(context, MOST_SENT));
            ring_state.sending = bytes.len();
            connection.mark_sent(bytes.len(), context, *now);
            io.ring.send_slot(
                number,
                Bytes::Owned(bytes, 0),
                tag(RingOperation::Send, number, slot.generation),
            );
        }
        if ring_state.receiving || (1..=SHORT).contains(&ring_state.sending) {
            return;
        }
        ring_state.receiving = true;
        match connection.discardable() {
            Some(count) => {
                io.ring.discard_slot(
                    number,
                    count as u32,
                    tag(RingOperation::Discard, number, slot.generation),
                );
            }
            None => io.ring.receive_slot(number, tag(RingOperation::Receive, number, slot.generation)),
        }
    }

    fn wait(worker: &mut LoadWorker<'_, UringBackend>, nanoseconds: u64) -> io::Result<()> {
        let mut done = std::mem::take(&mut worker.io.done);
        let result = worker.io.ring.wait(Some(Duration::from_nanos(nanoseconds)), &mut done);
        worker.now = clock::monotonic();
        done.drain(..).for_each(|one| worker.on_done(one));
        worker.io.done = done;
        // What was not taken for want of memory is handed over by the next wait.
        result.or_else(|error| if failure::is_shortage(&error) { Ok(()) } else { Err(error) })
    }

    fn closed(&mut self, number: u32) {
        let ring_state = std::mem::take(&mut self.ring_states[number as usize]);
        let end = tag(RingOperation::End, number, 0);
        if ring_state.connecting || ring_state.sending > 0 || ring_state.receiving {
            self.ring.cancel_slot(number, end);
        }
        if ring_state.made {
            self.ring.close_slot(number, end);
        }
    }
}

impl LoadWorker<'_, UringBackend> {
    fn on_done(&mut self, one: uring::RingCompletion) {
        let uring::RingCompletion { tag, result, buffer, memory, .. } = one;
        if let Some(memory) = memory.filter(|memory| memory.capacity() <= KEPT && self.io.stock.len() < STOCK)
        {
            self.io.stock.push(memory);
        }
        let (kind, number) = (RING_OPERATIONS[(tag >> 59) as usize], tag as u32);
        let generation = self.slots[number as usize].generation;
        if kind == RingOperation::End || generation & GENERATION != (tag >> 32) as u32 & GENERATION {
            return;
        }
        let result = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
        if kind == RingOperation::Connect {
            self.io.ring_states[number as usize].connecting = false;
        }
        match (kind, result) {
            (RingOperation::Step, Ok(_)) => {}
            (RingOperation::Step | RingOperation::Connect, Err(error)) => {
                self.not_connected(number, &exchange_error(&error))
            }
            (RingOperation::Connect, Ok(_)) => {
                self.connected(number);
                UringBackend::flush(self, number);
            }
            (RingOperation::Send, result) => self.on_sent(number, result),
            (_, result) => {
                self.io.ring_states[number as usize].receiving = false;
                let bytes = buffer.as_deref().unwrap_or_default();
                if self.on_received(number, kind, bytes, result) && self.is_open(number, generation) {
                    UringBackend::flush(self, number);
                }
            }
        }
    }

    fn on_sent(&mut self, number: u32, result: io::Result<usize>) {
        let ring_state = &mut self.io.ring_states[number as usize];
        let asked = std::mem::take(&mut ring_state.sending);
        let connection = &mut self.slots[number as usize].connection;
        match result {
            Ok(_) => {
                connection.advance(asked, &mut self.context, self.now);
                UringBackend::flush(self, number);
            }
            Err(error) => {
                connection.unmark_sent(&mut self.context, self.now);
                // What the server said before it hung up counts first.
                let hung_up = matches!(error.raw_os_error(), Some(errno::EPIPE | errno::ECONNRESET));
                match hung_up {
                    true => self.receive_rest(number),
                    false => self.close_failed(number, exchange_error(&error)),
                }
            }
        }
    }

    /// Receives on a connection that cannot send any more.
    fn receive_rest(&mut self, number: u32) {
        let (ring_state, slot) = (&mut self.io.ring_states[number as usize], &self.slots[number as usize]);
        if !std::mem::replace(&mut ring_state.receiving, true) {
            self.io.ring.receive_slot(number, tag(RingOperation::Receive, number, slot.generation));
        }
    }

    /// Says whether the connection goes on.
    fn on_received(
        &mut self,
        number: u32,
        kind: RingOperation,
        bytes: &[u8],
        result: io::Result<usize>,
    ) -> bool {
        let (now, context) = (self.now, &mut self.context);
        let connection = &mut self.slots[number as usize].connection;
        let standing = match result {
            Ok(0) => connection.end(context, now),
            Ok(count) => {
                let taken = match kind {
                    RingOperation::Discard => {
                        connection.discarded(count, context, now);
                        Ok(())
                    }
                    _ => connection.arrived(bytes, context, now),
                };
                taken.map(|()| if connection.is_over() { IoProgress::Over } else { IoProgress::All })
            }
            // All buffers of the ring were in use.
            Err(error) if error.raw_os_error() == Some(errno::ENOBUFS) => return true,
            Err(error) => connection.broken(&error),
        };
        self.received(number, standing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_says_what_it_is_of() {
        for kind in RING_OPERATIONS {
            let word = tag(kind, u32::MAX, u32::MAX);
            assert!(word < uring::TAG_BOUND);
            assert!(RING_OPERATIONS[(word >> 59) as usize] == kind);
            assert_eq!((word as u32, (word >> 32) as u32 & GENERATION), (u32::MAX, GENERATION));
        }
    }
}
