//! From a field block to a response.

use tenfold_wire::frame::{ErrorCode, FrameError};
use tenfold_wire::hpack::ListLimits;

use super::connection::{Http2Connection, list_size};
use super::frames::protocol;
use super::head::{self, HeadContext, HeadError};
use super::rest::{INITIAL_WINDOW, Rest, Stage};
use super::stream::{Content, Server, Stream, StreamResponse, Upload, now};
use crate::h1::head::FieldTable;
use crate::message::header_lines::HeaderLines;
use crate::message::refusal::Refusal;
use crate::message::request::{Body, Method, Request, RequestSummary};
use crate::mux::account::Account;
use crate::mux::priority::Priority;
use crate::out::Out;
use crate::response::encoder::Encoder;
use crate::response::http2::{Http2Encoder, StreamHeads};
use crate::response::value::Response;
use crate::response::writer::ResponseWriter;
use crate::serve::session::Pace;
use crate::service::Answer;

/// The pseudo-fields of a request, which count as fields of its list.
const PSEUDO_FIELDS: u32 = 4;

/// The most PRIORITY_UPDATE frames that come before their streams.
const MOST_EARLY: usize = 16;

/// The facts of a new stream besides its request.
struct NewStream {
    id: u32,
    end_stream: bool,
    weight: Option<u16>,
}

impl Http2Connection {
    /// Adds a fragment to the open field block, and answers the request if the block ends.
    pub(super) fn receive_block(
        &mut self,
        fragment: &[u8],
        end_headers: bool,
        out: &mut Out,
        server: Server<'_>,
    ) -> Result<(), FrameError> {
        let Some(block) = &mut self.block else { return Err(protocol("no field block is open")) };
        if !end_headers || !block.fragment.is_empty() {
            // Huffman codes have at least 5 bits a byte, and a field of the list counts 32 bytes.
            if block.fragment.len() + fragment.len() > 2 * server.limits.max_head {
                let reason = "a field block is too large";
                return Err(FrameError::Connection(ErrorCode::ENHANCE_YOUR_CALM, reason));
            }
            block.fragment.extend_from_slice(fragment);
        }
        if !end_headers {
            return Ok(());
        }
        let Some(block) = self.block.take() else { return Ok(()) };
        let whole = if block.fragment.is_empty() { fragment } else { &block.fragment };
        let fields =
            u32::try_from(server.limits.max_headers).unwrap_or(u32::MAX).saturating_add(PSEUDO_FIELDS);
        self.list.clear(ListLimits { size: list_size(server.limits), fields });
        if self.rest.decoder.decode(whole, true, &mut self.list).is_err() {
            return Err(FrameError::Connection(ErrorCode::COMPRESSION_ERROR, "a field block is wrong"));
        }
        if block.depends_on_itself {
            // The block has changed the table of the header compression.
            self.rest.last_stream = self.rest.last_stream.max(block.stream);
            return Err(FrameError::Stream(ErrorCode::PROTOCOL_ERROR, "a stream depends on itself"));
        }
        if block.stream <= self.rest.last_stream {
            return self.receive_trailers(block.stream, block.end_stream, out, server);
        }
        self.rest.last_stream = block.stream;
        if matches!(self.rest.stage, Stage::Leaving(_)) {
            // The GOAWAY states that the stream is not processed.
            return self.charge(Account::RESET);
        }
        if self.places() >= server.limits.max_streams || self.refuses_requests(server.limits) {
            return Err(FrameError::Stream(ErrorCode::REFUSED_STREAM, "too many streams"));
        }
        self.requests_left -= 1;
        self.rest.requests = self.rest.requests.saturating_add(1);
        self.rest.last_use = now();
        let new = NewStream { id: block.stream, end_stream: block.end_stream, weight: block.weight };
        self.answer(&new, out, server)
    }

    /// Processes the fields after the content, which are dropped (§8.1).
    fn receive_trailers(
        &mut self,
        id: u32,
        end_stream: bool,
        out: &mut Out,
        server: Server<'_>,
    ) -> Result<(), FrameError> {
        let closed = FrameError::Connection(ErrorCode::STREAM_CLOSED, "HEADERS for a closed stream");
        let Some(index) = self.find(id) else {
            self.charge(Account::FRAME)?;
            return if self.ignores(id) { Ok(()) } else { Err(closed) };
        };
        let content = &mut self.streams[index].content;
        if !content.open {
            return Err(FrameError::Stream(ErrorCode::STREAM_CLOSED, "HEADERS after the end of a request"));
        }
        if !end_stream || !head::are_trailers(&self.list) || !content.end() {
            return Err(FrameError::Stream(ErrorCode::PROTOCOL_ERROR, "the trailers are malformed"));
        }
        self.receive_content(index, b"", true, out, server);
        Ok(())
    }

    /// Answers the request of the decoded list.
    fn answer(&mut self, new: &NewStream, out: &mut Out, server: Server<'_>) -> Result<(), FrameError> {
        let mut table = FieldTable::new();
        let Server { service, limits, connection } = server;
        let context = HeadContext { scheme: connection.scheme, end_stream: new.end_stream, limits };
        let room = self.room(self.rest.peer_window, out);
        let mut heads = StreamHeads::new(new.id, self.rest.peer_frame, room);
        let Http2Connection { rest, list, head: block, cookie, body, .. } = self;
        let mut writer = ResponseWriter::new(
            body,
            Encoder::Http2(Http2Encoder { stream: &mut heads, out, hpack: &mut rest.encoder, block }),
        );
        let (response, method, declared, stated) = match head::read(list, &mut table, cookie, &context) {
            Ok(head) => {
                let request = &head.request;
                let answer = service.answer(request, connection, &mut writer);
                let response = continue_answer(answer, request, server, &mut writer);
                (response, request.method, head.declared, head.priority)
            }
            Err(HeadError::Malformed(reason)) => {
                return Err(FrameError::Stream(ErrorCode::PROTOCOL_ERROR, reason));
            }
            Err(HeadError::Refused(refusal)) => {
                let method =
                    list.iter().find(|(name, _)| *name == b":method").map_or(&b""[..], |field| field.1);
                service.refuse(refusal, RequestSummary::Unparsed(method), connection, &mut writer);
                (Some(StreamResponse::Sending), Method::Get, None, None)
            }
        };
        writer.end();
        if matches!(response, Some(StreamResponse::Sending)) && new.end_stream && !self.body.has_bytes() {
            // Most streams end here, without an entry in the list of open streams.
            heads.end(out);
            self.body.take_front(0, out);
            self.rest.send_window -= heads.complete.unwrap_or(0).cast_signed();
            self.end_response();
            self.rest.early.retain(|(id, _)| *id > new.id);
            return Ok(());
        }
        let weight = new.weight.filter(|_| self.rest.weights).and_then(Priority::of_weight);
        let priority = self.early_priority(new.id).or(stated).or(weight);
        let content =
            Content { open: !new.end_stream, declared, received: 0, window: INITIAL_WINDOW, due: 0 };
        let Some(response) = response else {
            let reason = "the service has no response";
            return Err(FrameError::Stream(ErrorCode::INTERNAL_ERROR, reason));
        };
        self.streams.push(Stream {
            id: new.id,
            method,
            priority: priority.or(heads.priority).unwrap_or_default(),
            has_priority: priority.is_some(),
            last_turn: 0,
            send_window: self.rest.peer_window,
            content,
            response,
            body: Out::new(),
            waiting: None,
            stalled: None,
            progress: 0,
            request: self.list.bytes().len(),
            kept_content: 0,
        });
        self.settle(self.streams.len() - 1, &mut heads, out);
        Ok(())
    }

    /// The bytes of a body that may leave with their head.
    fn room(&self, stream_window: i64, out: &Out) -> u64 {
        let windows = stream_window.min(self.rest.send_window).max(0).unsigned_abs();
        // Bodies that wait come before the body of a later stream of the same urgency.
        let is_first = self.streams.iter().all(|stream| !stream.body.has_bytes());
        if is_first && !out.full() { windows } else { 0 }
    }

    /// Takes over what a response wrote: accounts for a complete response, and keeps the rest of its body.
    fn settle(&mut self, index: usize, heads: &mut StreamHeads, out: &mut Out) {
        let stream = &mut self.streams[index];
        if !matches!(stream.response, StreamResponse::Sending) {
            return;
        }
        if !stream.has_priority {
            stream.priority = heads.priority.unwrap_or(stream.priority);
        }
        if let Some(sent) = heads.complete {
            stream.send_window -= sent.cast_signed();
            self.rest.send_window -= sent.cast_signed();
            stream.progress += sent;
        }
        std::mem::swap(&mut stream.body, &mut self.body);
        if !stream.body.has_bytes() {
            heads.end(out);
            self.finish_stream(index, out);
        }
    }

    /// Writes a response value to the stream at `index`.
    pub(super) fn write_value(&mut self, index: usize, response: Response, out: &mut Out) {
        let stream = &mut self.streams[index];
        stream.response = StreamResponse::Sending;
        if response.heads.last.is_none() {
            return self.drop_stream(index, ErrorCode::INTERNAL_ERROR, out);
        }
        let ((), mut heads) = self.write(index, out, |writer| writer.append(response));
        self.settle(index, &mut heads, out);
    }

    /// Writes the response of the stream at `index`. Returns the result of `write` and the written heads.
    fn write<T>(
        &mut self,
        index: usize,
        out: &mut Out,
        write: impl FnOnce(&mut ResponseWriter<'_>) -> T,
    ) -> (T, StreamHeads) {
        let (id, window) = (self.streams[index].id, self.streams[index].send_window);
        let mut heads = StreamHeads::new(id, self.rest.peer_frame, self.room(window, out));
        let Http2Connection { rest, head: block, body, .. } = self;
        let mut writer = ResponseWriter::new(
            body,
            Encoder::Http2(Http2Encoder { stream: &mut heads, out, hpack: &mut rest.encoder, block }),
        );
        let written = write(&mut writer);
        writer.end();
        (written, heads)
    }

    /// Receives content for a service that needs it, and answers at its end.
    pub(super) fn receive_content(
        &mut self,
        index: usize,
        content: &[u8],
        end_stream: bool,
        out: &mut Out,
        server: Server<'_>,
    ) {
        // All streams of a connection together hold at most `max-body`.
        let held = self.streams.iter().map(Stream::held_content);
        let held: u64 = held.chain(self.abandoned.iter().map(|work| work.kept_content)).sum();
        let stream = &mut self.streams[index];
        let StreamResponse::Upload(upload) = &mut stream.response else { return };
        let fits = upload.content.len() as u64 + content.len() as u64 <= upload.most;
        if !fits || held + content.len() as u64 > server.limits.max_body {
            self.refuse_stream(index, Refusal::BodyTooLarge, out, server);
            return;
        }
        upload.content.extend_from_slice(content);
        if !end_stream {
            return;
        }
        let StreamResponse::Upload(upload) = std::mem::replace(&mut stream.response, StreamResponse::Sending)
        else {
            return;
        };
        let (response, mut heads) = self.write(index, out, |writer| {
            upload.request.read(|request| {
                let answer = server.service.answer_body(request, &upload.content, server.connection, writer);
                continue_answer(answer, request, server, writer)
            })
        });
        match response {
            Some(StreamResponse::Upload(_)) | None => {
                self.drop_stream(index, ErrorCode::INTERNAL_ERROR, out);
            }
            Some(response) => {
                let stream = &mut self.streams[index];
                (stream.response, stream.kept_content) = (response, upload.content.len() as u64);
                self.settle(index, &mut heads, out);
            }
        }
    }

    /// Responds to a stream with a refusal.
    fn refuse_stream(&mut self, index: usize, refusal: Refusal, out: &mut Out, server: Server<'_>) {
        let Server { service, connection, .. } = server;
        let stream = &mut self.streams[index];
        let method = stream.method;
        let before = std::mem::replace(&mut stream.response, StreamResponse::Sending);
        let ((), mut heads) = self.write(index, out, |writer| match &before {
            StreamResponse::Upload(upload) => upload.request.read(|request| {
                service.refuse(refusal, request.summary(), connection, writer);
            }),
            _ => {
                let summary = RequestSummary::Unparsed(method.as_str().as_bytes());
                service.refuse(refusal, summary, connection, writer);
            }
        });
        self.settle(index, &mut heads, out);
    }

    /// Ends the wait of the stream at `index`, whose deadline has passed. Returns whether the stream is still at this
    /// index.
    pub(super) fn expire_stream(&mut self, index: usize, out: &mut Out, server: Server<'_>) -> bool {
        let (count, window) = (self.streams.len(), self.rest.send_window);
        let stream = &mut self.streams[index];
        match &mut stream.response {
            StreamResponse::Upload(upload) => {
                if upload.pace.renew(stream.content.received).is_ok() {
                    return true;
                }
                self.refuse_stream(index, Refusal::TimedOut, out, server);
            }
            StreamResponse::Later(..) => self.refuse_stream(index, Refusal::Overdue, out, server),
            StreamResponse::Sending => {
                if !stream.is_stalled(window) {
                    stream.stalled = None;
                    return true;
                }
                let progress = stream.progress;
                if stream.stalled.as_mut().is_some_and(|pace| pace.renew(progress).is_ok()) {
                    return true;
                }
                self.drop_stream(index, ErrorCode::CANCEL, out);
            }
        }
        self.streams.len() == count
    }

    /// Keeps the priority of a PRIORITY_UPDATE for a stream that is not open yet.
    pub(super) fn remember_priority(&mut self, stream: u32, value: &[u8]) {
        let Rest { early, last_stream, .. } = &mut self.rest;
        early.retain(|(id, _)| *id != stream && *id > *last_stream);
        if early.len() < MOST_EARLY
            && let Some(priority) = Priority::default().apply(value)
        {
            early.push((stream, priority));
        }
    }

    /// Takes the priority of an earlier PRIORITY_UPDATE for this stream.
    fn early_priority(&mut self, stream: u32) -> Option<Priority> {
        let index = self.rest.early.iter().position(|(id, _)| *id == stream)?;
        Some(self.rest.early.swap_remove(index).1)
    }
}

/// Returns the next step of a response; `None` if the service has no response.
fn continue_answer(
    answer: Answer,
    request: &Request<'_>,
    server: Server<'_>,
    writer: &mut ResponseWriter<'_>,
) -> Option<StreamResponse> {
    let Server { service, limits, connection } = server;
    match answer {
        Answer::Done => Some(StreamResponse::Sending),
        Answer::Close => writer.has_begun().then_some(StreamResponse::Sending),
        Answer::Later(deferred) => Some(StreamResponse::Later(deferred, now() + limits.later_timeout)),
        Answer::NeedBody { max } => {
            let most = max.min(limits.max_body);
            if request.body == Body::Empty {
                return match service.answer_body(request, b"", connection, writer) {
                    Answer::NeedBody { .. } => None,
                    answer => continue_answer(answer, request, server, writer),
                };
            }
            if matches!(request.body, Body::Length(length) if length > most) {
                service.refuse(Refusal::BodyTooLarge, request.summary(), connection, writer);
                return Some(StreamResponse::Sending);
            }
            if request.expects_continue {
                writer.interim(100, "Continue", &HeaderLines::default());
            }
            let pace = Pace::begin(limits.body_timeout, limits.min_rate, Some(0));
            let upload = Upload { request: request.to_owned(), content: Vec::new(), most, pace };
            Some(StreamResponse::Upload(Box::new(upload)))
        }
    }
}
