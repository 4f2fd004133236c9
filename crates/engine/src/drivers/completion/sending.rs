//! Sending: the output of tasks, and its completions.

use std::rc::Rc;

use tenfold_http::IoError;
use tenfold_sys::completion::{Bytes, ROOM};
use tenfold_sys::errno;

use super::event_loop::CompletionLoop;
use super::io::RingIo;
use super::link::{HandedBytes, RingLink, Wants};
use super::ring::OperationQueue;
use super::state::{InFlight, Past};
use super::tag::{OperationKind, tag};
use crate::protocol::{Event, Protocol};
use crate::worker::slots::{Key, Slot, SlotState};
use crate::worker::tasks::Start;

/// The number of staging buffers to keep, and the largest capacity of each.
const SPARE: usize = 64;
const SPARE_BYTES: usize = 32 * 1024;

impl<R: OperationQueue, P: Protocol, M: Start<RingIo<R::Buffer>, P::State>> CompletionLoop<'_, R, P, M> {
    /// Submits the output of connection `key` as a chain of operations that run one after the other. `closing`: a
    /// close is linked to the last one. Returns whether there was any output.
    pub(super) fn hand_over(&mut self, key: Key, link: &Rc<RingLink<R::Buffer>>, closing: bool) -> bool {
        let mut outgoing = link.outgoing.borrow_mut();
        let count = outgoing.len();
        if count == 0 {
            return false;
        }
        let number = self.number(key);
        let Some(slot) = self.connections.find(key) else { return false };
        slot.driver.sending += count as u8;
        link.sending.set(slot.driver.sending);
        for (place, piece) in outgoing.drain(..).enumerate() {
            let linked = closing || place + 1 < count;
            match piece {
                HandedBytes { bytes: Bytes::Mapped(mapped), more, held: true } if count == 1 && !closing => {
                    link.held.replace(Some((mapped.clone(), more)));
                    self.ring.send_held(number, mapped, more, tag(OperationKind::Held, key));
                }
                HandedBytes { bytes, more, .. } => {
                    self.ring.send(number, bytes, more, linked, tag(OperationKind::Send, key));
                }
            }
        }
        true
    }

    /// A zero-copy send has completed. If the kernel refused to lock its memory, the bytes are sent again with a copy.
    pub(super) fn sent_held(&mut self, key: Key, result: i32) {
        // Too much memory is locked, or the socket is not TCP.
        const WILL_NOT: [i32; 3] = [-errno::ENOMEM, -errno::ENOBUFS, -errno::EOPNOTSUPP];
        if let Some(Slot { state: SlotState::Active { task }, .. }) = self.connections.find(key)
            && let task = *task
            && let Some((mapped, more)) = self.tasks.attached(task).link.held.take()
            && WILL_NOT.contains(&result)
        {
            self.protocol.observe(Event::Substituted(1));
            let number = self.number(key);
            return self.ring.send(number, Bytes::Mapped(mapped), more, false, tag(OperationKind::Send, key));
        }
        self.sent(key, result, None);
    }

    pub(super) fn sent(&mut self, key: Key, result: i32, memory: Option<Vec<u8>>) {
        if let Some(memory) = memory {
            self.keep_spare(memory);
        }
        if result > 0 {
            self.protocol.observe(Event::Sent(result as u64));
        }
        let Some(slot) = self.connections.find(key) else { return };
        slot.driver.sending -= 1;
        let sending = slot.driver.sending;
        if result < 0 {
            slot.driver.past |= Past::FAILED;
        }
        match slot.state {
            SlotState::Active { task } => {
                let link = self.tasks.attached(task).link.clone();
                link.sending.set(sending);
                if result < 0 {
                    link.failed.set(Some(of_failed_send(result)));
                } else {
                    link.sent.set(link.sent.get() + result as u64);
                }
                if link.wants(Wants::SENT) && (sending == 0 || result < 0) {
                    self.poll(key, task);
                }
            }
            SlotState::Closing { .. } => self.close_when_done(key),
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

    pub(super) fn writable(&mut self, key: Key, result: i32, more: bool) {
        let Some(slot) = self.connections.find(key) else { return };
        if !more {
            slot.driver.in_flight -= InFlight::POLLING | InFlight::CANCELLING;
        }
        match slot.state {
            SlotState::Active { task } if result < 0 || result & ROOM != 0 => {
                let link = self.tasks.attached(task).link.clone();
                link.writable.set(true);
                if link.wants(Wants::WRITABLE) {
                    self.poll(key, task);
                }
            }
            SlotState::Closing { .. } => self.close_when_done(key),
            _ => {}
        }
    }

    pub(super) fn file_read(&mut self, key: Key, result: i32, memory: Option<Vec<u8>>) {
        let Some(slot) = self.connections.find(key) else { return };
        if let SlotState::Active { task } = slot.state {
            let link = self.tasks.attached(task).link.clone();
            link.reading.set(false);
            link.file_done.replace(memory.map(|memory| (memory, result)));
            if link.wants(Wants::FILE_READ) {
                self.poll(key, task);
            }
        }
    }
}

/// Translates a failed send: a mapped file has lost a page, or the peer is gone.
fn of_failed_send(result: i32) -> IoError {
    if result == -errno::EFAULT { IoError::Truncated } else { IoError::Gone }
}
