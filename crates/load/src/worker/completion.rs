//! I/O by completion: operations are submitted to a ring in batches, and the ring reports their results. The ring also
//! creates the sockets, and keeps each in the file slot with the number of its connection slot.
//!
//! A connection has at most one send and one receive in flight. The receive follows the completion of the send: the
//! response has usually arrived by then, so the receive does not wait in the kernel.
//!
//! Each completion gets the time after its wait. A measured time is therefore never too short. A request is sent at the
//! time of its submission.

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

/// The ring of a thread: 1 MiB of buffers, each free again after its receive.
const SIZES: Sizes = Sizes { submissions: 256, completions: 2048, buffers: 64, buffer_bytes: 16 << 10 };
/// The most bytes of one send; the rest follows.
const MOST_SENT: usize = 64 << 10;
/// The longest send that must complete before the receive is submitted. It fits any send buffer, so it completes soon.
/// A longer one may wait for a server that responds first.
const SHORT: usize = 4 << 10;
/// The most buffers kept for reuse.
const STOCK: usize = 256;
/// The most bytes of a kept buffer.
const KEPT: usize = 16 << 10;

/// The kind of an operation, in its tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RingOp {
    /// A step before the connect.
    Step,
    Connect,
    Send,
    Receive,
    Discard,
    /// A cancellation or a close.
    End,
}

const RING_OPS: [RingOp; 6] =
    [RingOp::Step, RingOp::Connect, RingOp::Send, RingOp::Receive, RingOp::Discard, RingOp::End];

/// The bits of the epoch in a tag. An operation ends long before its epoch repeats.
const EPOCH: u32 = (1 << 27) - 1;

fn tag(kind: RingOp, number: u32, epoch: u32) -> u64 {
    (kind as u64) << 59 | u64::from(epoch & EPOCH) << 32 | u64::from(number)
}

/// The operations of a slot in the ring.
#[derive(Clone, Copy, Default)]
struct RingState {
    /// The file slot has a socket.
    made: bool,
    connecting: bool,
    /// Bytes of the send in flight; 0 without one.
    sending: usize,
    receiving: bool,
}

pub(crate) struct UringBackend {
    ring: Ring,
    ring_states: Vec<RingState>,
    /// The servers' addresses by number.
    addresses: Vec<Arc<Address>>,
    switches: Vec<SocketOption>,
    done: Vec<uring::RingCompletion>,
    stock: Vec<Vec<u8>>,
}

impl Backend for UringBackend {
    /// Connects are submitted together, and their completions share one time. A larger burst would lengthen the
    /// measured connect times.
    const BURST: usize = 16;

    fn new(share: &Share<'_>) -> io::Result<UringBackend> {
        let address = |remote: &Remote| match remote {
            Remote::Internet(at) => Ok(Arc::new(Address::from(*at))),
            Remote::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        };
        let addresses = share.remotes.iter().map(address).collect::<io::Result<_>>()?;
        let slots = share.slot_count();
        // A thread without connections still needs a table of one file slot.
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
        let (step, connect) =
            [RingOp::Step, RingOp::Connect].map(|kind| tag(kind, number, slot.epoch)).into();
        let UringBackend { ring, ring_states, addresses, switches, .. } = &mut worker.io;
        ring.connect(number, &addresses[slot.remote as usize], switches, step, connect);
        ring_states[number as usize] = RingState { made: true, connecting: true, ..RingState::default() };
        Ok(())
    }

    /// Submits a send. If no bytes are unsent, submits a receive.
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
            io.ring.send_slot(number, Bytes::Owned(bytes, 0), tag(RingOp::Send, number, slot.epoch));
        }
        if ring_state.receiving || (1..=SHORT).contains(&ring_state.sending) {
            return;
        }
        ring_state.receiving = true;
        match connection.discardable() {
            Some(count) => {
                io.ring.discard_slot(number, count as u32, tag(RingOp::Discard, number, slot.epoch));
            }
            None => io.ring.receive_slot(number, tag(RingOp::Receive, number, slot.epoch)),
        }
    }

    fn wait(worker: &mut LoadWorker<'_, UringBackend>, nanoseconds: u64) -> io::Result<()> {
        let mut done = std::mem::take(&mut worker.io.done);
        let result = worker.io.ring.wait(Some(Duration::from_nanos(nanoseconds)), &mut done);
        worker.now = clock::monotonic();
        done.drain(..).for_each(|one| worker.on_done(one));
        worker.io.done = done;
        // Operations that failed for lack of memory are submitted again by the next wait.
        result.or_else(|error| if failure::is_shortage(&error) { Ok(()) } else { Err(error) })
    }

    fn closed(&mut self, number: u32) {
        let ring_state = std::mem::take(&mut self.ring_states[number as usize]);
        let end = tag(RingOp::End, number, 0);
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
        let (kind, number) = (RING_OPS[(tag >> 59) as usize], tag as u32);
        let epoch = self.slots[number as usize].epoch;
        if kind == RingOp::End || epoch & EPOCH != (tag >> 32) as u32 & EPOCH {
            return;
        }
        let result = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
        if kind == RingOp::Connect {
            self.io.ring_states[number as usize].connecting = false;
        }
        match (kind, result) {
            (RingOp::Step, Ok(_)) => {}
            (RingOp::Step | RingOp::Connect, Err(error)) => {
                self.not_connected(number, &exchange_error(&error))
            }
            (RingOp::Connect, Ok(_)) => {
                self.connected(number);
                UringBackend::flush(self, number);
            }
            (RingOp::Send, result) => self.on_sent(number, result),
            (_, result) => {
                self.io.ring_states[number as usize].receiving = false;
                let bytes = buffer.as_deref().unwrap_or_default();
                if self.on_received(number, kind, bytes, result) && self.is_open(number, epoch) {
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
                // A response that arrived before the close still counts.
                let hung_up = matches!(error.raw_os_error(), Some(errno::EPIPE | errno::ECONNRESET));
                match hung_up {
                    true => self.receive_rest(number),
                    false => self.close_failed(number, exchange_error(&error)),
                }
            }
        }
    }

    /// Receives on a connection whose output is closed.
    fn receive_rest(&mut self, number: u32) {
        let (ring_state, slot) = (&mut self.io.ring_states[number as usize], &self.slots[number as usize]);
        if !std::mem::replace(&mut ring_state.receiving, true) {
            self.io.ring.receive_slot(number, tag(RingOp::Receive, number, slot.epoch));
        }
    }

    /// Handles a completed receive. Returns whether the connection continues.
    fn on_received(&mut self, number: u32, kind: RingOp, bytes: &[u8], result: io::Result<usize>) -> bool {
        let (now, context) = (self.now, &mut self.context);
        let connection = &mut self.slots[number as usize].connection;
        let standing = match result {
            Ok(0) => connection.end(context, now),
            Ok(count) => {
                let taken = match kind {
                    RingOp::Discard => {
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
    fn a_tag_holds_operation_slot_and_epoch() {
        for kind in RING_OPS {
            let word = tag(kind, u32::MAX, u32::MAX);
            assert!(word < uring::TAG_BOUND);
            assert!(RING_OPS[(word >> 59) as usize] == kind);
            assert_eq!((word as u32, (word >> 32) as u32 & EPOCH), (u32::MAX, EPOCH));
        }
    }
}
