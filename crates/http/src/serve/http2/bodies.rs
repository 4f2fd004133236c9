//! Bodies of responses: DATA by the priorities of the streams, and the end of a stream.

use std::time::Duration;

use tenfold_wire::frame::{ErrorCode, FrameHeader, write};

use super::connection::Http2Connection;
use super::rest::Stage;
use super::stream::{Stream, StreamResponse, now};
use crate::io::Io;
use crate::limits::Limits;
use crate::mux::schedule::{self, Ready};
use crate::out::Out;

/// The bytes of output that a turn fills with DATA: four whole frames.
const QUANTUM: u64 = 64 * 1024;

/// The most content of a frame that we send: with its header it fills one TLS record.
const MOST_DATA: u64 = 16_384 - FrameHeader::LENGTH as u64;

/// The time after a RST_STREAM of ours during which frames of its stream may arrive.
const UNDER_WAY: Duration = Duration::from_secs(5);

impl Http2Connection {
    /// Whether a stream can send.
    pub(super) fn can_fill(&self) -> bool {
        self.rest.send_window > 0 && self.streams.iter().any(Stream::can_send)
    }

    /// Fills the output with DATA by the priorities of the streams.
    pub(super) fn fill<I: Io>(&mut self, io: &mut I, limits: &Limits) {
        // The stream whose file was checked: a file that has become shorter resets its stream.
        let mut checked = None;
        while self.rest.send_window > 0 {
            let ready = self.streams.iter().map(|stream| {
                stream.can_send().then_some(Ready { priority: stream.priority, last_turn: stream.last_turn })
            });
            let Some(index) = schedule::next(ready) else { break };
            let stream = &mut self.streams[index];
            if checked != Some(stream.id)
                && let Some((file, range)) = stream.body.next_file()
                && !io.holds(file, range.end.min(range.start + QUANTUM))
            {
                self.drop_stream(index, ErrorCode::INTERNAL_ERROR, io.split().1);
                continue;
            }
            checked = Some(stream.id);
            let out = io.split().1;
            let windows = stream.send_window.min(self.rest.send_window).unsigned_abs();
            let length = stream.body.len();
            let count = length.min(windows).min(MOST_DATA).min(u64::from(self.rest.peer_frame));
            let is_last = count == length;
            let filled = out.len() + FrameHeader::LENGTH as u64 + count;
            if filled > QUANTUM && !out.is_empty() {
                break;
            }
            self.turns += 1;
            stream.last_turn = self.turns;
            out.stage_by(|bytes| write::data_header(stream.id, count as u32, is_last, bytes));
            stream.body.take_front(count, out);
            stream.send_window -= count.cast_signed();
            self.rest.send_window -= count.cast_signed();
            for (at, stream) in self.streams.iter_mut().enumerate() {
                if at == index || stream.send_window > 0 {
                    stream.progress += count;
                }
            }
            if is_last {
                self.finish_stream(index, out);
            }
        }
        let window = self.rest.send_window;
        self.streams.iter_mut().for_each(|stream| stream.note_stall(limits, window));
    }

    /// Removes a stream whose response is complete in the output. A client that still sends content is told to stop
    /// (§8.1).
    pub(super) fn finish_stream(&mut self, index: usize, out: &mut Out) {
        let mut stream = self.streams.remove(index);
        // Observers after the last byte.
        stream.body.take_front(0, out);
        if stream.content.open {
            self.reset_stream(stream.id, ErrorCode::NO_ERROR, out);
        }
        self.end_response();
    }

    /// Records that a response is complete in the output.
    pub(super) fn end_response(&mut self) {
        self.rest.account.pay();
        self.answered = true;
    }

    /// Ends a stream whose response cannot be completed.
    pub(super) fn drop_stream(&mut self, index: usize, code: ErrorCode, out: &mut Out) {
        let id = self.streams.remove(index).id;
        self.reset_stream(id, code, out);
    }

    /// Sends RST_STREAM. The client may send frames before it receives it.
    pub(super) fn reset_stream(&mut self, id: u32, code: ErrorCode, out: &mut Out) {
        out.stage_by(|bytes| write::reset_stream(id, code, bytes));
        self.counts.server_resets += u32::from(code != ErrorCode::NO_ERROR);
        self.rest.reset = (self.rest.reset.0.max(id), now() + UNDER_WAY);
    }

    /// Whether frames of a closed stream are ignored, because the client may have sent them before it knew of the end
    /// (§5.1, §6.8).
    pub(super) fn ignores(&self, id: u32) -> bool {
        let (last, until) = self.rest.reset;
        matches!(self.rest.stage, Stage::Leaving(last) if id > last) || id <= last && now() < until
    }

    /// Removes the streams whose responses are complete.
    pub(super) fn remove_finished(&mut self, out: &mut Out) {
        let mut index = 0;
        while index < self.streams.len() {
            let stream = &self.streams[index];
            match matches!(stream.response, StreamResponse::Sending) && !stream.body.has_bytes() {
                true => self.finish_stream(index, out),
                false => index += 1,
            }
        }
    }
}
