//! Sends: one write of a socket at a time, as often as it takes, in the order in which they were begun.

use std::os::fd::RawFd;

use super::{GO_ON, Proactor, WRITTEN, key};
use crate::completion::Bytes;
use crate::completion::asio::buffer::Completion;
use crate::completion::asio::declared as c;
use crate::completion::asio::handles::success;
use crate::completion::asio::stream::{Sending, Stream};

impl Proactor {
    /// Sends all of `bytes` (`async_write_some`, as often as it takes), behind what is being sent already.
    /// `more` says that more follows at once (`MSG_MORE`). Where a send fails, those behind it are cancelled.
    pub fn send(&mut self, number: RawFd, bytes: Bytes, more: bool, tag: u64) {
        match self.stream(number) {
            Ok((place, _)) => {
                let sends = &mut self.streams[place].sends;
                sends.push_back(Sending { tag, bytes, sent: 0, more });
                if sends.len() == 1 {
                    self.write(place);
                }
            }
            Err(result) => self.done.push(Completion::plain(tag, result)),
        }
    }

    /// What the first of the sends was begun with has come to `value`.
    pub(super) fn written(&mut self, place: usize, value: i32) {
        let Stream { sends, exhausted, .. } = &mut self.streams[place];
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

    /// Goes on with the sends, unless they were cancelled while a result of theirs waited to be heard.
    pub(super) fn go_on(&mut self, place: usize) {
        if self.streams[place].cancelled { self.fail(place, -libc::ECANCELED) } else { self.write(place) }
    }

    /// Goes on with the first of the sends; behind the last, closes where that was asked for.
    fn write(&mut self, place: usize) {
        let stream = &mut self.streams[place];
        let Some(first) = stream.sends.front() else { return self.close_behind(place) };
        let (from, count) = first.rest();
        let raw = stream.handle.as_ref().expect("what was given back sends nothing").address();
        let (context, more) = (self.context.address(), first.more);
        let result = if std::mem::take(&mut stream.exhausted) {
            debug_assert!(stream.room.is_none(), "room that two wait for is asked for once");
            // To be waited for, the kernel is asked anew, and says what is so now.
            // SAFETY: the context and the stream are live.
            unsafe { c::tenfold_asio_wait_room(context, raw, key(GO_ON, place)) }
        } else {
            // SAFETY: the context and the stream are live. The bytes are kept in the stream until the result
            // is handed out.
            unsafe { c::tenfold_asio_write_some(context, raw, from.cast(), count, more, key(WRITTEN, place)) }
        };
        match success(result) {
            Ok(()) => stream.in_flight += 1,
            Err(result) => self.fail(place, result),
        }
    }

    /// The first of the sends has failed, and takes the others along.
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
            self.done.push(Completion::plain(tag, 0));
        }
    }
}
