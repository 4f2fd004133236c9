//! Receiving: one-shot first, then multishot, and bounded while nobody reads.

use std::future::Future;

use tenfold_http::IoError;
use tenfold_sys::errno;

use super::io::RingIo;
use super::link::{LOST, RECEIVED};
use super::proactor::Proactor;
use super::ring::Ring;
use super::state::{CANCELLING, ENDED, GREETED, MULTISHOT, RECEIVING};
use super::tag::{Kind, tag};
use crate::protocol::Protocol;
use crate::worker::slots::{Key, State};
use crate::worker::tasks::Finished;

/// Bytes received while nobody reads, at which receiving is stopped.
const INBOX_BYTES: usize = 16 * 1024;

impl<R, P, F, M> Proactor<'_, R, P, F, M>
where
    R: Ring,
    P: Protocol,
    F: Future<Output = Finished<RingIo<R::Buffer>, P::State>>,
    M: Fn(Box<RingIo<R::Buffer>>, P::State) -> F,
{
    /// A cancellation has come back. What it did not reach has completed by itself, or is about to; one that
    /// failed otherwise is tried again with what comes next.
    pub(super) fn cancelled(&mut self, key: Key, result: i32) {
        let Some(slot) = self.connections.find(key) else { return };
        if result < 0 && !matches!(-result, errno::ENOENT | errno::EALREADY) {
            slot.interest &= !CANCELLING;
        }
    }

    /// Sees to it that a receive is in flight for connection `key`. The first is one-shot: a connection
    /// that is served once has nothing to cancel then.
    pub(super) fn receive(&mut self, key: Key) {
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

    pub(super) fn received(&mut self, key: Key, result: i32, more: bool, buffer: Option<R::Buffer>) {
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

    fn received_active(&mut self, key: Key, result: i32, buffer: Option<R::Buffer>) {
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
                if interest & RECEIVING == 0 && link.wants(LOST) && inbox.len() < INBOX_BYTES {
                    // Nobody else would say that the peer is gone.
                    return self.receive(key);
                }
                // A multishot receive knows no back pressure: it is ended, and begun again when wanted.
                if inbox.len() >= INBOX_BYTES && interest & (MULTISHOT | CANCELLING) == MULTISHOT {
                    if let Some(slot) = self.connections.find(key) {
                        slot.interest |= CANCELLING;
                    }
                    let number = self.number(key);
                    self.ring.cancel(number, tag(Kind::Receive, key), tag(Kind::Cancel, key));
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

    /// Counts what was thrown away on a connection whose output is shut down.
    pub(super) fn lingered(&mut self, key: Key, count: u32) {
        let Some(slot) = self.connections.find(key) else { return };
        slot.link = slot.link.saturating_add(count);
        if u64::from(slot.link) > self.plan.bounds.linger_bytes {
            self.close(key);
        } else {
            self.receive(key);
        }
    }
}

/// Whether a receive only has to be begun again: no buffer was free (ENOBUFS), it was cancelled (ECANCELED), or
/// it found nothing after all (EINTR, EAGAIN).
fn transient(result: i32) -> bool {
    matches!(-result, errno::ENOBUFS | errno::ECANCELED | errno::EINTR | errno::EAGAIN)
}
