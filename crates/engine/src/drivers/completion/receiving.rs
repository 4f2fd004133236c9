//! Receiving: one-shot first, then multishot, and bounded while the task does not read.

use tenfold_http::IoError;
use tenfold_sys::errno;

use super::event_loop::CompletionLoop;
use super::io::RingIo;
use super::link::{RingLink, Wants};
use super::ring::OperationQueue;
use super::state::{InFlight, Past};
use super::tag::{OperationKind, tag};
use crate::drivers::linger;
use crate::protocol::Protocol;
use crate::worker::slots::{Key, SlotState};
use crate::worker::tasks::Start;

/// The number of unread bytes at which receiving stops.
pub(crate) const INBOX_BYTES: usize = 16 * 1024;

impl<R: OperationQueue, P: Protocol, M: Start<RingIo<R::Buffer>, P::State>> CompletionLoop<'_, R, P, M> {
    /// Handles a completed cancellation. If the operation was not found, it has completed or will complete soon. After
    /// any other failure, the next event retries the cancellation.
    pub(super) fn cancelled(&mut self, key: Key, result: i32) {
        let Some(slot) = self.connections.find(key) else { return };
        if result < 0 && !matches!(-result, errno::ENOENT | errno::EALREADY) {
            slot.driver.in_flight -= InFlight::CANCELLING;
            if let (SlotState::Closing { .. }, Some(socket)) = (slot.state, &slot.socket) {
                socket.shut_down();
            }
        }
    }

    /// Ends the receive of connection `key`, if one is in flight.
    pub(super) fn cancel_receive(&mut self, key: Key) {
        let number = self.number(key);
        let Some(slot) = self.connections.find(key) else { return };
        let in_flight = slot.driver.in_flight;
        if in_flight.contains(InFlight::RECEIVING) && !in_flight.contains(InFlight::CANCELLING) {
            slot.driver.in_flight |= InFlight::CANCELLING;
            self.ring.cancel(number, tag(OperationKind::Receive, key), tag(OperationKind::Cancel, key));
        }
    }

    /// Ensures that a receive is in flight for connection `key`. The first one is one-shot, so that a connection with a
    /// single request has nothing to cancel.
    pub(super) fn receive(&mut self, key: Key) {
        let number = self.number(key);
        let Some(slot) = self.connections.find(key) else { return };
        if slot.driver.in_flight.contains(InFlight::RECEIVING) || slot.driver.past.contains(Past::ENDED) {
            return;
        }
        slot.driver.in_flight |= InFlight::RECEIVING;
        if !slot.driver.past.contains(Past::GREETED) {
            slot.driver.past |= Past::GREETED;
            self.ring.receive(number, tag(OperationKind::Receive, key));
        } else {
            slot.driver.in_flight |= InFlight::MULTISHOT;
            self.ring.receive_on(number, tag(OperationKind::Receive, key));
        }
    }

    /// Ensures that a receive is in flight if the task of connection `key` waits for bytes or tries to receive them, or
    /// waits for the end of the connection, which only a receive reports. Bytes that the task does not read are bounded.
    pub(super) fn receive_for_task(&mut self, key: Key, link: &RingLink<R::Buffer>) {
        if link.wants(Wants::RECEIVED | Wants::LOST | Wants::TRIED) && link.inbox.borrow().len() < INBOX_BYTES
        {
            self.receive(key);
        }
    }

    pub(super) fn received(&mut self, key: Key, result: i32, more: bool, buffer: Option<R::Buffer>) {
        let Some(slot) = self.connections.find(key) else { return };
        if !more {
            slot.driver.in_flight -= InFlight::RECEIVING | InFlight::MULTISHOT | InFlight::CANCELLING;
        }
        if result == 0 {
            slot.driver.past |= Past::ENDED;
        }
        match (slot.state, result) {
            (SlotState::Closing { .. }, _) => self.close_when_done(key),
            // The receive was cancelled, or no buffer was free; the end of this tick frees some buffers.
            (SlotState::Parked, _) if transient(result) => self.receive(key),
            (SlotState::Lingering { .. }, _) if transient(result) => self.discard_input(key),
            (SlotState::Lingering { begun }, 1..) => {
                self.connections.set_deadline(key, linger::deadline(begun, &self.plan.bounds));
                self.discard_input(key);
            }
            (SlotState::Lingering { .. }, _) => self.close(key),
            (SlotState::Parked, 1..) => {
                if let Some(buffer) = buffer {
                    self.activate(key, Some(buffer), Vec::new());
                }
            }
            // The peer has ended its output and may still read: responses are still being sent, and a layer sends its
            // closing record.
            (SlotState::Parked, 0) => self.activate(key, None, Vec::new()),
            (SlotState::Parked, _) => self.close(key),
            (SlotState::Active { task }, _) => self.received_active(key, task, result, buffer),
            (SlotState::Free { .. }, _) => {}
        }
    }

    fn received_active(&mut self, key: Key, task: u32, result: i32, buffer: Option<R::Buffer>) {
        let Some(slot) = self.connections.find(key) else { return };
        let in_flight = slot.driver.in_flight;
        let link = self.tasks.attached(task).link.clone();
        match result {
            1.. => {
                if link.wants(Wants::RECEIVED) {
                    link.current.replace(buffer);
                    return self.poll(key, task);
                }
                let bytes = buffer.as_deref().unwrap_or_default();
                // Reserves no more than needed, because many connections may wait with a full inbox.
                link.inbox.borrow_mut().reserve_exact(bytes.len());
                link.inbox.borrow_mut().extend_from_slice(bytes);
                // A multishot receive has no back pressure, so it is cancelled and started again on demand. It may have
                // used all buffers before the cancellation.
                if link.inbox.borrow().len() >= INBOX_BYTES && in_flight.contains(InFlight::MULTISHOT) {
                    self.cancel_receive(key);
                }
                self.receive_for_task(key, &link);
            }
            _ if transient(result) => self.receive_for_task(key, &link),
            0 => {
                link.ended.set(true);
                if link.wants(Wants::RECEIVED) {
                    self.poll(key, task);
                }
            }
            _ => {
                link.failed.set(Some(IoError::Gone));
                self.poll(key, task);
            }
        }
    }

    /// Ensures that received bytes of connection `key`, whose output is shut down, are discarded. A multishot receive
    /// ends first: it would use the buffers of other connections.
    pub(super) fn discard_input(&mut self, key: Key) {
        let number = self.number(key);
        let Some(slot) = self.connections.find(key) else { return };
        if slot.driver.in_flight.contains(InFlight::MULTISHOT) {
            self.cancel_receive(key);
        } else if !slot.driver.in_flight.contains(InFlight::RECEIVING) {
            slot.driver.in_flight |= InFlight::RECEIVING;
            self.ring.discard_input(number, tag(OperationKind::Receive, key));
        }
    }
}

/// Whether the receive only needs to be started again: no buffer was free (ENOBUFS), it was cancelled (ECANCELED), or
/// there were no bytes (EINTR, EAGAIN).
fn transient(result: i32) -> bool {
    matches!(-result, errno::ENOBUFS | errno::ECANCELED | errno::EINTR | errno::EAGAIN)
}
