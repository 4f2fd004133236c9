//! A connection of HTTP/2: streams, windows and the bytes to send (RFC 9113).
//!
//! A request waits in the queue of its connection until its stream may begin. [`Http2Session::fill`] then moves it to a
//! stream and appends its frames to the output. `receive` has the other direction.

mod client;
mod reader;
mod receive;

use std::collections::VecDeque;

use sha2::{Digest, Sha256};
use tenfold_wire::frame::{ErrorCode, MOST_31_BITS, PREFACE, Setting, Settings, write};
use tenfold_wire::hpack::{Decoder, Encoder};

use crate::connection::http2::reader::FrameReader;
use crate::connection::judge::ExchangeError;
use crate::connection::pending::PendingRequest;
use crate::measure::record::ErrorKind;
use crate::message::http2::RequestsToSend;

/// The window of each stream, and of the connection, so large that it never limits a server that has a response.
const WINDOW: u32 = (1 << 30) - 1;
/// The most streams before the first SETTINGS of the server. RFC 9113 §6.5.2 recommends that servers allow as many.
const FIRST_STREAMS: u32 = 100;
/// The bytes of output above which requests wait.
const ENOUGH: usize = 64 << 10;
/// The most content of a DATA frame.
const MOST_CONTENT: u32 = 16 << 10;

/// The state of HTTP/2 on a connection.
#[derive(Debug)]
pub(super) struct Http2Session {
    reader: FrameReader,
    decoder: Decoder,
    encoder: Encoder,
    /// Frames. The first `sent` bytes are sent.
    output: Vec<u8>,
    sent: usize,
    /// Streams with a request in flight, in the order of their ids.
    streams: VecDeque<ClientStream>,
    /// The id of the next stream.
    next_stream: u32,
    /// The settings of the server.
    peer: Settings,
    /// Whether the server has sent SETTINGS.
    has_settings: bool,
    /// The content that the server's window of the connection allows, in bytes.
    window: i64,
    /// Bytes that arrived since the last WINDOW_UPDATE of the connection.
    unreturned: u32,
    /// Streams whose request is not completely in the output.
    uploads: usize,
    /// Whether these streams wait for a WINDOW_UPDATE.
    is_stalled: bool,
    /// The first fragments of a field block.
    block: Vec<u8>,
    /// The stream of this block, and whether the stream ends with it.
    open_block: Option<(u32, bool)>,
}

/// A stream with a request in flight.
#[derive(Debug)]
struct ClientStream {
    id: u32,
    request: PendingRequest,
    /// Bytes of the request's body that are not in the output.
    unsent: usize,
    /// The content that the server's window of the stream allows; below 0 after a change of settings (§6.9.2).
    window: i64,
    /// The status of the response; 0 before its head.
    status: u16,
    /// The length that the head of the response announced.
    announced: Option<u64>,
    /// The length of the content so far.
    length: u64,
    hasher: Option<Box<Sha256>>,
    /// Bytes that arrived since the last WINDOW_UPDATE of the stream.
    unreturned: u32,
}

impl Default for Http2Session {
    /// A new connection, with its preface in the output.
    fn default() -> Http2Session {
        let mut output = PREFACE.to_vec();
        write::settings(&[Setting::EnablePush(false), Setting::InitialWindowSize(WINDOW)], &mut output);
        write::window_update(0, WINDOW - Settings::INITIAL.initial_window_size, &mut output);
        Http2Session {
            reader: FrameReader::default(),
            decoder: Decoder::new(),
            encoder: Encoder::new(),
            output,
            sent: 0,
            streams: VecDeque::new(),
            next_stream: 1,
            peer: Settings::INITIAL,
            has_settings: false,
            window: Settings::INITIAL.initial_window_size.into(),
            unreturned: 0,
            uploads: 0,
            is_stalled: false,
            block: Vec::new(),
            open_block: None,
        }
    }
}

impl Http2Session {
    /// The number of streams with a request in flight.
    #[inline]
    pub(super) fn streams(&self) -> usize {
        self.streams.len()
    }

    /// The requests in flight.
    pub(super) fn requests(&self) -> impl Iterator<Item = &PendingRequest> {
        self.streams.iter().map(|stream| &stream.request)
    }

    /// The oldest request in flight.
    pub(super) fn oldest(&self) -> Option<&PendingRequest> {
        self.streams.front().map(|stream| &stream.request)
    }

    /// The most streams that the server allows.
    #[inline]
    pub(super) fn most_streams(&self) -> usize {
        let limit = self.peer.max_concurrent_streams;
        (if self.has_settings { limit } else { limit.min(FIRST_STREAMS) }) as usize
    }

    /// Whether the server allows another stream.
    #[inline]
    pub(super) fn has_place(&self) -> bool {
        self.streams.len() < self.most_streams()
    }

    /// Whether bytes are ready to be sent, or appended to the output.
    #[inline]
    pub(super) fn has_output(&self) -> bool {
        self.sent < self.output.len() || (self.uploads > 0 && !self.is_stalled)
    }

    /// The bytes to send next.
    pub(super) fn output(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// Counts `count` bytes of output as sent.
    pub(super) fn advance(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.output.len() {
            self.output.clear();
            self.sent = 0;
        } else if self.sent >= ENOUGH {
            self.output.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Appends frames of requests to the output, up to its bound. With `may_open`, begins streams for `requests`.
    /// Returns the number of these streams.
    fn fill(
        &mut self,
        requests: &mut VecDeque<PendingRequest>,
        may_open: bool,
        all: RequestsToSend<'_>,
        now: u64,
    ) -> u64 {
        let mut begun = 0;
        while may_open
            && self.output().len() < ENOUGH
            && self.has_place()
            && self.next_stream <= MOST_31_BITS
            && let Some(mut request) = requests.pop_front()
        {
            request.sent = now;
            self.open(request, all);
            begun += 1;
        }
        self.upload(all.body);
        begun
    }

    /// Begins a stream.
    fn open(&mut self, request: PendingRequest, all: RequestsToSend<'_>) {
        let id = self.next_stream;
        self.next_stream += 2;
        let prepared = &all.prepared[request.target as usize];
        let headers = write::OpenHeaders::begin(id, all.body.is_empty(), &mut self.output);
        self.encoder.write(&prepared.constants, &prepared.block, &mut self.output);
        headers.finish(self.peer.max_frame_size, &mut self.output);
        if !all.body.is_empty() {
            self.uploads += 1;
            self.is_stalled = false;
        }
        self.streams.push_back(ClientStream {
            id,
            request,
            unsent: all.body.len(),
            window: self.peer.initial_window_size.into(),
            status: 0,
            announced: None,
            length: 0,
            hasher: all.hash.then(|| Box::new(Sha256::new())),
            unreturned: 0,
        });
    }

    /// Appends content of requests, as far as the windows and the bound of the output allow.
    fn upload(&mut self, body: &[u8]) {
        if self.uploads == 0 || self.is_stalled {
            return;
        }
        let most = MOST_CONTENT.min(self.peer.max_frame_size);
        for stream in self.streams.iter_mut().filter(|stream| stream.unsent > 0) {
            while stream.unsent > 0 {
                if self.output.len() - self.sent >= ENOUGH {
                    return;
                }
                let room = self.window.min(stream.window).min(most.into());
                let count = usize::try_from(room).unwrap_or(0).min(stream.unsent);
                if count == 0 {
                    break;
                }
                let start = body.len() - stream.unsent;
                stream.unsent -= count;
                stream.window -= count as i64;
                self.window -= count as i64;
                write::data_header(stream.id, count as u32, stream.unsent == 0, &mut self.output);
                self.output.extend_from_slice(&body[start..start + count]);
            }
            self.uploads -= usize::from(stream.unsent == 0);
        }
        self.is_stalled = self.uploads > 0;
    }

    /// Removes a stream. If its request is incomplete, the server gets RST_STREAM.
    fn remove(&mut self, at: usize) -> Option<ClientStream> {
        let stream = if at == 0 { self.streams.pop_front() } else { self.streams.remove(at) }?;
        if stream.unsent > 0 {
            self.uploads -= 1;
            write::reset_stream(stream.id, ErrorCode::CANCEL, &mut self.output);
        }
        Some(stream)
    }

    /// Checks the end of the connection. `is_chosen`: the server has chosen HTTP/2 by ALPN.
    pub(super) fn check_end(&self, is_chosen: bool) -> Result<(), ExchangeError> {
        if self.has_settings || is_chosen || self.streams.is_empty() {
            return Ok(());
        }
        let why = format!("the server closed the connection before its SETTINGS{REMEDY}");
        Err(ExchangeError::new(ErrorKind::NoHttp2, why))
    }
}

/// The end of an error of a server without HTTP/2.
const REMEDY: &str = "; if it does not use HTTP/2 without TLS, use https or --http 1.1";

#[cfg(test)]
mod tests;
