//! Sends: one write of a socket at a time, repeated until all is sent, in submission order.

use std::os::fd::RawFd;

use super::{CompletionContext, GO_ON, WRITTEN, key};
use crate::completion::Bytes;
use crate::completion::asio::buffer::AsioCompletion;
use crate::completion::asio::declared as c;
use crate::completion::asio::handles::success;
use crate::completion::asio::stream::{QueuedSend, StreamOperations};

impl CompletionContext {
    /// Sends all of `bytes` (repeated `async_write_some`), after the sends already queued. `more` announces that more
    /// follows immediately (`MSG_MORE`). If a send fails, those after it are cancelled.
    pub fn send(&mut self, number: RawFd, bytes: Bytes, more: bool, tag: u64) {
        match self.stream(number) {
            Ok((place, _)) => {
                let sends = &mut self.streams[place].sends;
                sends.push_back(QueuedSend { tag, bytes, sent: 0, more });
                if sends.len() == 1 {
                    self.write(place);
                }
            }
            Err(result) => self.done.push(AsioCompletion::plain(tag, result)),
        }
    }

    /// Handles the result `value` of a write of the first send.
    pub(super) fn written(&mut self, place: usize, value: i32) {
        let StreamOperations { sends, exhausted, .. } = &mut self.streams[place];
        let first = sends.front_mut().expect("what was written was being sent");
        let count = usize::try_from(value).unwrap_or(0);
        first.sent += count;
        let left = first.rest().1;
        *exhausted = left > 0 && first.may_fault();
        if count == 0 {
            return self.fail(place, if value < 0 { value } else { -libc::EPIPE });
        }
        if left == 0 {
            let result = i32::try_from(first.sent).unwrap_or(i32::MAX);
            self.done.extend(sends.pop_front().map(|sending| sending.over(result)));
        }
        self.go_on(place);
    }

    /// Continues with the sends, unless they were cancelled before their result was handled.
    pub(super) fn go_on(&mut self, place: usize) {
        if self.streams[place].cancelled { self.fail(place, -libc::ECANCELED) } else { self.write(place) }
    }

    /// Starts the next write of the first send; after the last send, closes the socket if a close is pending.
    fn write(&mut self, place: usize) {
        let stream = &mut self.streams[place];
        let Some(first) = stream.sends.front() else { return self.close_behind(place) };
        let (from, count) = first.rest();
        let raw = stream.handle.as_ref().expect("what was given back sends nothing").address();
        let (context, more) = (self.context.address(), first.more);
        let result = if std::mem::take(&mut stream.exhausted) {
            debug_assert!(stream.room.is_none(), "room that two wait for is asked for once");
            // Waiting for room queries the kernel again, so stale readiness is corrected.
            // SAFETY: the context and the stream are live.
            unsafe { c::tenfold_asio_wait_room(context, raw, key(GO_ON, place)) }
        } else {
            // SAFETY: the context and the stream are live. The stream keeps the bytes until the result is returned.
            unsafe { c::tenfold_asio_write_some(context, raw, from.cast(), count, more, key(WRITTEN, place)) }
        };
        match success(result) {
            Ok(()) => stream.in_flight += 1,
            Err(result) => self.fail(place, result),
        }
    }

    /// Fails the first send and cancels the others.
    pub(super) fn fail(&mut self, place: usize, result: i32) {
        let results = std::iter::once(result).chain(std::iter::repeat(-libc::ECANCELED));
        self.streams[place].cancelled = false;
        let sends = self.streams[place].sends.drain(..).zip(results);
        self.done.extend(sends.map(|(sending, result)| sending.over(result)));
        self.close_behind(place);
    }

    fn close_behind(&mut self, place: usize) {
        if let Some((tag, socket)) = self.streams[place].close.take() {
            self.discard(socket);
            self.done.push(AsioCompletion::plain(tag, 0));
        }
    }
}
