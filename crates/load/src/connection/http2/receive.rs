//! Received frames: responses, settings, windows, and the ends of streams and connections.

use sha2::Digest;
use tenfold_wire::frame::header::END_STREAM;
use tenfold_wire::frame::{
    ErrorCode, Frame, FrameError, FrameHeader, MOST_31_BITS, Setting, SettingIter, write,
};

use super::super::{ClientConnection, WorkerContext};
use super::reader::{FrameReader, Piece};
use super::{ClientStream, Http2Session, REMEDY, WINDOW};
use crate::connection::judge::ExchangeError;
use crate::measure::record::{ErrorKind, Http2Stats};
use crate::message::http2::{LIST_LIMITS, ReceivedHead, check_trailers};
use crate::message::response::ReceivedResponse;

/// The most bytes of a field block.
const MOST_BLOCK: usize = 64 << 10;
/// The most bytes of output for a server that sends and does not read.
const MOST_OUTPUT: usize = 1 << 20;

/// A frame that ends the connection.
fn protocol(reason: &'static str) -> FrameError {
    FrameError::Connection(ErrorCode::PROTOCOL_ERROR, reason)
}

/// A malformed part of the server's output.
fn malformed(why: impl std::fmt::Display) -> ExchangeError {
    ExchangeError::new(ErrorKind::Malformed, why.to_string())
}

impl From<FrameError> for ExchangeError {
    fn from(error: FrameError) -> ExchangeError {
        malformed(error)
    }
}

/// The state of a worker that the response to a stream changes.
struct Exchange<'e, 'a> {
    connection: &'e mut ClientConnection,
    context: &'e mut WorkerContext<'a>,
    now: u64,
}

impl Exchange<'_, '_> {
    fn fail(&mut self, stream: &ClientStream, kind: ErrorKind, why: impl Into<String>) {
        let error = ExchangeError::new(kind, why);
        self.connection.fail_stream(stream, self.context, self.now, &error);
    }

    fn stats(&mut self) -> &mut Http2Stats {
        &mut self.context.recorder.record.http2
    }
}

impl ClientConnection {
    /// Handles received bytes of HTTP/2.
    pub(in crate::connection) fn read_http2(
        &mut self,
        bytes: &[u8],
        context: &mut WorkerContext<'_>,
        now: u64,
    ) -> Result<(), ExchangeError> {
        let Some(mut http2) = self.http2.take() else { return Ok(()) };
        let mut reader = std::mem::take(&mut http2.reader);
        let result = http2.read(&mut reader, bytes, &mut Exchange { connection: self, context, now });
        http2.reader = reader;
        let has_settings = http2.has_settings;
        self.http2 = Some(http2);
        match result {
            Err(error) if !has_settings => {
                let why = format!("the server does not answer with HTTP/2: {}{REMEDY}", error.message);
                Err(ExchangeError::new(ErrorKind::NoHttp2, why))
            }
            result => result,
        }
    }
}

impl Http2Session {
    fn read(
        &mut self,
        reader: &mut FrameReader,
        bytes: &[u8],
        exchange: &mut Exchange<'_, '_>,
    ) -> Result<(), ExchangeError> {
        let mut rest = bytes;
        while let Some(piece) = reader.next(&mut rest, self.open_block.map(|(stream, _)| stream))? {
            match piece {
                Piece::Content { stream, bytes, end } => self.on_content(stream, bytes, end, exchange)?,
                Piece::Frame(header, frame) => self.on_frame(header.stream, frame, exchange)?,
            }
        }
        Ok(())
    }

    /// The place of a stream; `None` if it ended.
    #[inline]
    fn find(&self, id: u32) -> Result<Option<usize>, FrameError> {
        if self.streams.front().is_some_and(|stream| stream.id == id) {
            return Ok(Some(0));
        }
        if id.is_multiple_of(2) || id >= self.next_stream {
            return Err(protocol("a frame is for a stream without a request"));
        }
        Ok(self.streams.binary_search_by_key(&id, |stream| stream.id).ok())
    }

    #[inline]
    fn on_content(
        &mut self,
        id: u32,
        bytes: &[u8],
        end: Option<FrameHeader>,
        exchange: &mut Exchange<'_, '_>,
    ) -> Result<(), FrameError> {
        let at = self.find(id)?;
        if let Some(at) = at {
            let stream = &mut self.streams[at];
            if stream.status == 0 {
                self.reject(at, "content precedes the head of its response", exchange);
            } else {
                stream.length += bytes.len() as u64;
                if let Some(hasher) = &mut stream.hasher {
                    hasher.update(bytes);
                }
            }
        }
        let Some(header) = end else { return Ok(()) };
        // Flow control counts the whole payload, also of a stream that ended (RFC 9113 §6.9).
        self.unreturned += header.length;
        if self.unreturned > WINDOW / 2 {
            write::window_update(0, std::mem::take(&mut self.unreturned), &mut self.output);
        }
        let Some(at) = at.filter(|at| self.streams.get(*at).is_some_and(|stream| stream.id == id)) else {
            return Ok(());
        };
        if header.has(END_STREAM) {
            self.finish(at, exchange);
            return Ok(());
        }
        let stream = &mut self.streams[at];
        stream.unreturned += header.length;
        if stream.unreturned > WINDOW / 2 {
            write::window_update(id, std::mem::take(&mut stream.unreturned), &mut self.output);
        }
        Ok(())
    }

    fn on_frame(
        &mut self,
        id: u32,
        frame: Frame<'_>,
        exchange: &mut Exchange<'_, '_>,
    ) -> Result<(), ExchangeError> {
        match frame {
            Frame::Headers { fragment, end_stream, end_headers, .. } => {
                if end_headers {
                    return self.on_block(id, end_stream, fragment, exchange);
                }
                self.block.clear();
                self.block.extend_from_slice(fragment);
                self.open_block = Some((id, end_stream));
            }
            Frame::Continuation { fragment, end_headers } => {
                if self.block.len() + fragment.len() > MOST_BLOCK {
                    return Err(malformed("a field block is larger than 64 KiB"));
                }
                self.block.extend_from_slice(fragment);
                if let Some((id, end_stream)) = self.open_block.take_if(|_| end_headers) {
                    let block = std::mem::take(&mut self.block);
                    let result = self.on_block(id, end_stream, &block, exchange);
                    self.block = block;
                    return result;
                }
            }
            Frame::ResetStream(code) => self.on_reset(id, code, exchange)?,
            Frame::Settings(settings) => self.on_settings(settings, exchange)?,
            Frame::Ping { opaque, is_ack: false } => write::ping(opaque, true, &mut self.output),
            Frame::WindowUpdate(increment) => self.on_window_update(id, increment.get())?,
            Frame::GoAway { last_stream, code, debug } => {
                return self.on_goaway(last_stream, code, debug, exchange);
            }
            // The reader returns DATA in parts, and a server may send neither PUSH_PROMISE nor PRIORITY_UPDATE.
            Frame::Data { .. }
            | Frame::Priority(_)
            | Frame::PriorityUpdate { .. }
            | Frame::SettingsAck
            | Frame::Ping { is_ack: true, .. }
            | Frame::Unknown => {}
        }
        if self.output().len() > MOST_OUTPUT {
            return Err(malformed("the server sends PING or SETTINGS, and does not read the replies"));
        }
        Ok(())
    }

    fn on_block(
        &mut self,
        id: u32,
        end_stream: bool,
        block: &[u8],
        exchange: &mut Exchange<'_, '_>,
    ) -> Result<(), ExchangeError> {
        // Also for a stream that ended, because later blocks may refer to its fields.
        let fields = &mut exchange.context.fields;
        fields.clear(LIST_LIMITS);
        self.decoder.decode(block, true, fields).map_err(malformed)?;
        let Some(at) = self.find(id)? else { return Ok(()) };
        let stream = &mut self.streams[at];
        if stream.request.first == 0 {
            stream.request.first = exchange.now;
        }
        if stream.status != 0 {
            match check_trailers(fields) {
                Ok(()) if end_stream => self.finish(at, exchange),
                Ok(()) => self.reject(at, "a second head follows the response", exchange),
                Err(why) => self.reject(at, why, exchange),
            }
            return Ok(());
        }
        match ReceivedHead::parse(fields) {
            Ok(head) if head.is_interim() => {
                if end_stream {
                    self.reject(at, "the stream ends with an interim response", exchange);
                }
            }
            Ok(head) => {
                let is_empty = exchange.context.traits.head || matches!(head.status, 204 | 304);
                stream.status = head.status;
                stream.announced = if is_empty { Some(0) } else { head.length };
                if end_stream {
                    self.finish(at, exchange);
                }
            }
            Err(why) => self.reject(at, why, exchange),
        }
        Ok(())
    }

    /// Ends a stream with a complete response.
    #[inline]
    fn finish(&mut self, at: usize, exchange: &mut Exchange<'_, '_>) {
        let Some(stream) = self.remove(at) else { return };
        if stream.announced.is_some_and(|length| length != stream.length) {
            let why = format!("the content has {} bytes, unlike Content-Length", stream.length);
            return exchange.fail(&stream, ErrorKind::Malformed, why);
        }
        let ClientStream { request, status, length, hasher, .. } = stream;
        let hash = hasher.map(|hasher| hasher.finalize().into());
        let response = ReceivedResponse { status, length, hash, persistent: true };
        exchange.connection.complete(&request, &response, exchange.context, exchange.now);
    }

    /// Resets a stream whose response is malformed (RFC 9113 §8.1.1).
    fn reject(&mut self, at: usize, why: &'static str, exchange: &mut Exchange<'_, '_>) {
        let Some(stream) = self.remove(at) else { return };
        if stream.unsent == 0 {
            write::reset_stream(stream.id, ErrorCode::PROTOCOL_ERROR, &mut self.output);
        }
        exchange.fail(&stream, ErrorKind::Malformed, why);
    }

    fn on_reset(
        &mut self,
        id: u32,
        code: ErrorCode,
        exchange: &mut Exchange<'_, '_>,
    ) -> Result<(), FrameError> {
        let Some(at) = self.find(id)? else { return Ok(()) };
        // The stream is closed, so no RST_STREAM follows.
        self.uploads -= usize::from(std::mem::take(&mut self.streams[at].unsent) > 0);
        let Some(stream) = self.remove(at) else { return Ok(()) };
        *exchange.stats().resets.entry(code.to_string()).or_default() += 1;
        let kind = match code {
            ErrorCode::REFUSED_STREAM => ErrorKind::StreamRefused,
            _ => ErrorKind::StreamReset,
        };
        exchange.fail(&stream, kind, format!("RST_STREAM with {code}"));
        Ok(())
    }

    fn on_settings(
        &mut self,
        settings: SettingIter<'_>,
        exchange: &mut Exchange<'_, '_>,
    ) -> Result<(), ExchangeError> {
        for setting in settings {
            let setting = setting?;
            match setting {
                Setting::InitialWindowSize(size) => {
                    let change = i64::from(size) - i64::from(self.peer.initial_window_size);
                    self.streams.iter_mut().for_each(|stream| stream.window += change);
                    if self.streams.iter().any(|stream| stream.window > MOST_31_BITS.into()) {
                        return Err(window_error().into());
                    }
                }
                Setting::HeaderTableSize(size) => self.encoder.set_limit(size),
                Setting::MaxConcurrentStreams(limit) => {
                    let least = &mut exchange.stats().least_limit;
                    *least = Some(least.map_or(limit, |least| least.min(limit)));
                }
                _ => {}
            }
            self.peer.apply(setting);
        }
        (self.has_settings, self.is_stalled) = (true, false);
        let (largest, most) = (exchange.context.http2.largest_head(), self.peer.max_header_list_size);
        if largest > most.into() {
            let why = format!(
                "the head of a request has {largest} bytes, and the server allows {most} (MAX_HEADER_LIST_SIZE); use fewer or shorter --header fields, or a shorter URL"
            );
            return Err(ExchangeError::new(ErrorKind::HeadLimit, why));
        }
        write::settings_ack(&mut self.output);
        Ok(())
    }

    fn on_window_update(&mut self, id: u32, increment: u32) -> Result<(), FrameError> {
        let window = match id {
            0 => &mut self.window,
            _ => match self.find(id)? {
                Some(at) => &mut self.streams[at].window,
                None => return Ok(()),
            },
        };
        *window += i64::from(increment);
        if *window > MOST_31_BITS.into() {
            return Err(window_error());
        }
        self.is_stalled = false;
        Ok(())
    }

    /// After GOAWAY without an error, the server completes the streams up to `last_stream`. The other requests are
    /// repeated on the next connection (RFC 9113 §6.8).
    fn on_goaway(
        &mut self,
        last_stream: u32,
        code: ErrorCode,
        debug: &[u8],
        exchange: &mut Exchange<'_, '_>,
    ) -> Result<(), ExchangeError> {
        *exchange.stats().goaways.entry(code.to_string()).or_default() += 1;
        if code != ErrorCode::NO_ERROR {
            let debug = String::from_utf8_lossy(debug);
            let why = if debug.is_empty() { String::new() } else { format!(": {}", debug.escape_debug()) };
            return Err(ExchangeError::new(ErrorKind::Goaway, format!("GOAWAY with {code}{why}")));
        }
        exchange.connection.persistent = false;
        let mut returned = 0;
        while let Some(mut stream) = self.streams.pop_back_if(|stream| stream.id > last_stream) {
            self.uploads -= usize::from(stream.unsent > 0);
            (stream.request.sent, stream.request.first) = (0, 0);
            exchange.connection.requests.push_front(stream.request);
            returned += 1;
        }
        if exchange.connection.measured && returned > 0 {
            exchange.context.recorder.ended(exchange.now, returned);
        }
        Ok(())
    }
}

fn window_error() -> FrameError {
    FrameError::Connection(ErrorCode::FLOW_CONTROL_ERROR, "a window exceeds 2^31 - 1 bytes")
}
