//! Received frames (RFC 9113 §6).

use tenfold_wire::frame::{
    ErrorCode, Frame, FrameError, FrameHeader, FrameKind, Receiver, Setting, SettingIter, write,
};

use super::connection::{Fatal, Http2Connection, OpenBlock};
use super::leaving::FAREWELL;
use super::rest::{INITIAL_WINDOW, MOST_FRAME, Stage};
use super::stream::{Server, StreamResponse, now};
use crate::io::Io;
use crate::limits::Limits;
use crate::mux::account::Account;
use crate::mux::priority::Priority;
use crate::out::Out;
use crate::service::Service;

/// The largest window (§6.9.1).
const MOST_WINDOW: i64 = (1 << 31) - 1;

/// An increment below this many bytes, or content below it that does not end a message, is charged as a frame without
/// an effect.
const TINY: usize = 128;

impl Http2Connection {
    /// Processes received frames until no whole frame is left, the turn's requests are answered, or the output is full.
    /// Returns whether bytes are left that can be processed without a receive.
    pub(super) fn receive_frames<I: Io>(
        &mut self,
        io: &mut I,
        service: &dyn Service,
        limits: &Limits,
    ) -> Result<bool, Fatal> {
        let connection = &io.connection().clone();
        let server = Server { service, limits, connection };
        loop {
            if self.rest.stage == Stage::Preface && !self.read_preface(io)? {
                return Ok(false);
            }
            let (input, out) = io.split();
            let Some(header) = input.first_chunk().map(FrameHeader::parse) else { return Ok(false) };
            if out.full() || self.requests_left == 0 {
                return Ok(!out.full());
            }
            let is_request = header.kind == FrameKind::HEADERS && header.stream > self.rest.last_stream;
            if is_request && self.defers_requests(limits) {
                return Ok(false);
            }
            let open_block = self.block.as_ref().map(|block| block.stream);
            header.check(Receiver::Server, MOST_FRAME, open_block).map_err(fatal)?;
            if self.rest.stage == Stage::FirstSettings && header.kind != FrameKind::SETTINGS {
                return Err(Fatal::GoAway(ErrorCode::PROTOCOL_ERROR));
            }
            let length = FrameHeader::LENGTH + header.length as usize;
            let Some(payload) = input.get(FrameHeader::LENGTH..length) else { return Ok(false) };
            let outcome = match Frame::parse(header, payload, Receiver::Server) {
                Ok(frame) => self.process(header, frame, out, server),
                Err(error) => Err(error),
            };
            match outcome {
                Ok(()) => {}
                // An idle stream cannot be reset (§5.1).
                Err(FrameError::Stream(code, _)) if self.is_idle(header.stream) => {
                    return Err(Fatal::GoAway(code));
                }
                Err(FrameError::Stream(code, _)) => self.fail_stream(header.stream, code, out)?,
                Err(error) => return Err(fatal(error)),
            }
            io.consume(length);
        }
    }

    fn process(
        &mut self,
        header: FrameHeader,
        frame: Frame<'_>,
        out: &mut Out,
        server: Server<'_>,
    ) -> Result<(), FrameError> {
        match frame {
            Frame::Data { content, end_stream } => {
                self.receive_data(header, content, end_stream, out, server)
            }
            Frame::Headers { fragment, priority, end_stream, end_headers } => {
                if header.stream.is_multiple_of(2) {
                    return Err(protocol("a client's stream is even"));
                }
                self.block = Some(OpenBlock {
                    stream: header.stream,
                    end_stream,
                    weight: priority.map(|priority| priority.weight),
                    depends_on_itself: priority.is_some_and(|priority| priority.dependency == header.stream),
                    fragment: Vec::new(),
                    by: now() + server.limits.head_timeout,
                });
                self.receive_block(fragment, end_headers, out, server)
            }
            Frame::Continuation { fragment, end_headers } => {
                self.charge(Account::FRAME)?;
                self.receive_block(fragment, end_headers, out, server)
            }
            Frame::Priority(priority) => {
                self.charge(Account::FRAME)?;
                if priority.dependency == header.stream {
                    return Err(FrameError::Stream(ErrorCode::PROTOCOL_ERROR, "a stream depends on itself"));
                }
                self.weigh(header.stream, priority.weight);
                Ok(())
            }
            Frame::ResetStream(_) => {
                if self.is_idle(header.stream) {
                    return Err(protocol("RST_STREAM for an idle stream"));
                }
                self.counts.client_resets += 1;
                let price = self.find(header.stream).map_or(Account::RESET, |index| self.abandon(index));
                self.charge(price)
            }
            Frame::Settings(settings) => self.receive_settings(settings, out),
            Frame::SettingsAck => self.charge(Account::FRAME),
            Frame::Ping { opaque, is_ack: true } => {
                if opaque == FAREWELL && matches!(self.rest.stage, Stage::Announced(_)) {
                    self.fix_last_stream(out);
                }
                self.charge(Account::FRAME)
            }
            Frame::Ping { opaque, is_ack: false } => {
                out.stage_by(|bytes| write::ping(opaque, true, bytes));
                self.charge(Account::FRAME)
            }
            Frame::GoAway { .. } => {
                // The client opens no further streams; the open ones finish.
                if !matches!(self.rest.stage, Stage::Leaving(_)) {
                    self.fix_last_stream(out);
                }
                self.charge(Account::FRAME)
            }
            Frame::WindowUpdate(increment) => self.widen(header.stream, increment.get()),
            Frame::PriorityUpdate { stream, value } => {
                self.charge(Account::FRAME)?;
                self.rest.weights = false;
                if stream.is_multiple_of(2) {
                    return Err(protocol("PRIORITY_UPDATE for a stream that the client cannot open"));
                }
                if let Some(index) = self.find(stream) {
                    let stream = &mut self.streams[index];
                    if let Some(priority) = Priority::default().apply(value) {
                        (stream.priority, stream.has_priority) = (priority, true);
                    }
                } else if stream > self.rest.last_stream {
                    self.remember_priority(stream, value);
                }
                Ok(())
            }
            Frame::Unknown => self.charge(Account::FRAME),
        }
    }

    /// Returns the index of an open stream.
    pub(super) fn find(&self, id: u32) -> Option<usize> {
        self.streams.binary_search_by_key(&id, |stream| stream.id).ok()
    }

    /// Whether the client has not opened this stream. Streams with even numbers are never opened.
    fn is_idle(&self, id: u32) -> bool {
        id > self.rest.last_stream || id.is_multiple_of(2)
    }

    /// Charges unpaid work to the connection.
    pub(super) fn charge(&mut self, price: u32) -> Result<(), FrameError> {
        let overdrawn =
            FrameError::Connection(ErrorCode::ENHANCE_YOUR_CALM, "too much work without responses");
        self.rest.account.charge(price, now()).map_err(|_| overdrawn)
    }

    /// Ends a stream by our own reset. The peer provoked it, so it is charged.
    pub(super) fn fail_stream(&mut self, id: u32, code: ErrorCode, out: &mut Out) -> Result<(), Fatal> {
        let price = self.find(id).map_or(Account::RESET, |index| self.abandon(index));
        self.reset_stream(id, code, out);
        self.charge(price).map_err(fatal)
    }

    /// Takes a weight of RFC 7540 as the priority of a stream, if the client has no other means.
    fn weigh(&mut self, id: u32, weight: u16) {
        if let Some(priority) = Priority::of_weight(weight).filter(|_| self.rest.weights)
            && let Some(index) = self.find(id)
        {
            let stream = &mut self.streams[index];
            (stream.priority, stream.has_priority) = (priority, true);
        }
    }

    fn receive_settings(&mut self, settings: SettingIter<'_>, out: &mut Out) -> Result<(), FrameError> {
        // A frame may have thousands of settings, and only the last size of the window has an effect.
        let window = self.rest.peer_window;
        for setting in settings {
            match setting? {
                Setting::HeaderTableSize(size) => self.rest.encoder.set_limit(size),
                Setting::InitialWindowSize(size) => self.rest.peer_window = i64::from(size),
                Setting::MaxFrameSize(size) => self.rest.peer_frame = size,
                Setting::NoRfc7540Priorities(is_set) => self.rest.weights &= !is_set,
                _ => {}
            }
        }
        let change = self.rest.peer_window - window;
        if change != 0 {
            self.streams.iter_mut().for_each(|stream| stream.send_window += change);
            if self.streams.iter().any(|stream| stream.send_window > MOST_WINDOW) {
                return Err(flow("a change of the initial window makes a window too large"));
            }
        }
        if (1..i64::from(MOST_FRAME)).contains(&change) {
            // Each stream may send a short frame.
            self.charge(Account::FRAME.saturating_mul(self.streams.len() as u32))?;
        }
        out.stage_by(write::settings_ack);
        if self.rest.stage == Stage::FirstSettings {
            self.rest.stage = Stage::Open;
            return Ok(());
        }
        self.charge(Account::FRAME)
    }

    /// Adds to a window of ours (§6.9).
    fn widen(&mut self, id: u32, increment: u32) -> Result<(), FrameError> {
        if (increment as usize) < TINY {
            self.charge(Account::FRAME)?;
        }
        if id == 0 {
            self.rest.send_window += i64::from(increment);
            return match self.rest.send_window > MOST_WINDOW {
                true => Err(flow("the window of the connection is too large")),
                false => Ok(()),
            };
        }
        if self.is_idle(id) {
            return Err(protocol("WINDOW_UPDATE for an idle stream"));
        }
        // An update for a closed stream may have crossed its end.
        let Some(index) = self.find(id) else { return self.charge(Account::FRAME) };
        let stream = &mut self.streams[index];
        stream.send_window += i64::from(increment);
        match stream.send_window > MOST_WINDOW {
            true => Err(FrameError::Stream(ErrorCode::FLOW_CONTROL_ERROR, "the window is too large")),
            false => Ok(()),
        }
    }

    fn receive_data(
        &mut self,
        header: FrameHeader,
        content: &[u8],
        end_stream: bool,
        out: &mut Out,
        server: Server<'_>,
    ) -> Result<(), FrameError> {
        // Flow control counts the padding (§6.9.1).
        let length = i64::from(header.length);
        self.rest.receive_window -= length;
        if self.rest.receive_window < 0 {
            return Err(flow("DATA exceeds the window of the connection"));
        }
        self.rest.due += header.length;
        self.return_window(out);
        if content.len() < TINY && !end_stream {
            self.charge(Account::FRAME)?;
        }
        if self.is_idle(header.stream) {
            return Err(protocol("DATA for an idle stream"));
        }
        let closed = FrameError::Stream(ErrorCode::STREAM_CLOSED, "DATA for a closed stream");
        let Some(index) = self.find(header.stream) else {
            self.charge(Account::FRAME)?;
            return if self.ignores(header.stream) { Ok(()) } else { Err(closed) };
        };
        let stream = &mut self.streams[index];
        if !stream.content.open {
            return Err(closed);
        }
        stream.content.window -= length;
        if stream.content.window < 0 {
            return Err(FrameError::Stream(ErrorCode::FLOW_CONTROL_ERROR, "DATA exceeds its window"));
        }
        if !stream.content.receive(content.len()) || (end_stream && !stream.content.end()) {
            let reason = "the content differs from Content-Length";
            return Err(FrameError::Stream(ErrorCode::PROTOCOL_ERROR, reason));
        }
        stream.content.due += header.length;
        let due = stream.content.due;
        if stream.content.open && i64::from(due) >= INITIAL_WINDOW / 2 {
            stream.content.window += i64::from(due);
            stream.content.due = 0;
            let id = stream.id;
            out.stage_by(|bytes| write::window_update(id, due, bytes));
        }
        if matches!(stream.response, StreamResponse::Upload(_)) {
            self.receive_content(index, content, end_stream, out, server);
        }
        Ok(())
    }

    /// Returns the received bytes to the window of the connection.
    fn return_window(&mut self, out: &mut Out) {
        let due = self.rest.due;
        if i64::from(due) >= INITIAL_WINDOW / 2 {
            self.rest.receive_window += i64::from(due);
            self.rest.due = 0;
            out.stage_by(|bytes| write::window_update(0, due, bytes));
        }
    }
}

pub(super) fn protocol(reason: &'static str) -> FrameError {
    FrameError::Connection(ErrorCode::PROTOCOL_ERROR, reason)
}

fn flow(reason: &'static str) -> FrameError {
    FrameError::Connection(ErrorCode::FLOW_CONTROL_ERROR, reason)
}

/// Returns the end of the connection that an error demands.
pub(super) fn fatal(error: FrameError) -> Fatal {
    Fatal::GoAway(error.code())
}
