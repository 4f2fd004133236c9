//! A client of HTTP/2, which shows responses in the form of HTTP/1.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tenfold_wire::frame::header::{END_HEADERS, END_STREAM};
use tenfold_wire::frame::{
    ErrorCode, Frame, FrameHeader, FrameKind, MOST_31_BITS, PREFACE, Receiver, Setting, write,
};
use tenfold_wire::hpack::{Decoder, FieldList, ListLimits};
use tenfold_wire::integer;

use crate::response::WireResponse;
use crate::wire::Wire;

/// A connection whose windows are large.
#[derive(Debug)]
pub struct Http2Wire {
    wire: Wire,
    scheme: &'static str,
    decoder: Decoder,
    next: u32,
    streams: BTreeMap<u32, StreamEnd>,
    goaway: Option<(u32, ErrorCode)>,
}

/// The frames of a stream so far.
#[derive(Clone, Debug, Default)]
struct StreamEnd {
    interim: Vec<WireResponse>,
    response: Option<WireResponse>,
    ended: bool,
    reset: Option<ErrorCode>,
}

impl Http2Wire {
    /// Sends the preface over `wire`, whose TLS must offer `h2`.
    #[track_caller]
    pub fn new(mut wire: Wire) -> Http2Wire {
        let mut bytes = PREFACE.to_vec();
        write::settings(&[Setting::InitialWindowSize(MOST_31_BITS), Setting::EnablePush(false)], &mut bytes);
        write::window_update(0, MOST_31_BITS - 65_535, &mut bytes);
        let scheme = if wire.has_tls() { "https" } else { "http" };
        wire.send(bytes);
        Http2Wire { wire, scheme, decoder: Decoder::new(), next: 1, streams: BTreeMap::new(), goaway: None }
    }

    /// Opens a stream with a request for `localhost`, and returns its number.
    #[track_caller]
    pub fn begin(&mut self, method: &str, target: &str, fields: &[(&str, &str)], body: &[u8]) -> u32 {
        let mut all = vec![(":method", method), (":scheme", self.scheme), (":path", target)];
        if !fields.iter().any(|(name, _)| *name == ":authority") {
            all.push((":authority", "localhost"));
        }
        all.extend(fields);
        let stream = self.next;
        self.next += 2;
        let mut bytes = Vec::new();
        let flags = if body.is_empty() { END_STREAM } else { 0 };
        frame(FrameKind::HEADERS, END_HEADERS | flags, stream, &block(&all), &mut bytes);
        // A short body fits the initial windows.
        let pieces = body.chunks(16_384).count();
        for (at, piece) in body.chunks(16_384).enumerate() {
            let flags = if at + 1 == pieces { END_STREAM } else { 0 };
            frame(FrameKind::DATA, flags, stream, piece, &mut bytes);
        }
        self.streams.insert(stream, StreamEnd::default());
        self.wire.send(bytes);
        stream
    }

    /// Opens a stream with a field block of any form, and returns its number.
    #[track_caller]
    pub fn begin_with(&mut self, fields: &[u8]) -> u32 {
        self.open(fields, END_STREAM)
    }

    /// Opens a stream with a field block of any form, whose content follows. Returns its number.
    #[track_caller]
    pub fn begin_open(&mut self, fields: &[u8]) -> u32 {
        self.open(fields, 0)
    }

    #[track_caller]
    fn open(&mut self, fields: &[u8], flags: u8) -> u32 {
        let stream = self.next;
        self.next += 2;
        let mut bytes = Vec::new();
        frame(FrameKind::HEADERS, END_HEADERS | flags, stream, fields, &mut bytes);
        self.streams.insert(stream, StreamEnd::default());
        self.wire.send(bytes);
        stream
    }

    /// Sends bytes of any form.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.wire.send(bytes);
    }

    /// Receives the rest of the response of a stream.
    #[track_caller]
    pub fn response(&mut self, stream: u32) -> WireResponse {
        loop {
            let state = &self.streams[&stream];
            if let Some(code) = state.reset.filter(|code| *code != ErrorCode::NO_ERROR) {
                panic!("stream {stream} was reset: {code}");
            }
            if state.ended {
                return state.response.clone().expect("a response precedes the end");
            }
            self.receive();
        }
    }

    /// Receives until a stream ends. Returns the code of its reset.
    #[track_caller]
    pub fn reset(&mut self, stream: u32) -> ErrorCode {
        loop {
            if let Some(code) = self.streams[&stream].reset {
                return code;
            }
            self.receive();
        }
    }

    /// Makes a request, and receives its response.
    #[track_caller]
    pub fn ask(&mut self, method: &str, target: &str, fields: &[(&str, &str)], body: &[u8]) -> WireResponse {
        let stream = self.begin(method, target, fields, body);
        self.response(stream)
    }

    /// The interim responses of a stream.
    pub fn interim(&self, stream: u32) -> &[WireResponse] {
        &self.streams[&stream].interim
    }

    /// Receives until the server announces the end of the connection. Returns its last stream and the code.
    #[track_caller]
    pub fn goaway(&mut self) -> (u32, ErrorCode) {
        while self.goaway.is_none() {
            self.receive();
        }
        self.goaway.take().expect("it came")
    }

    /// The connection itself.
    pub fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }

    /// Receives and processes a frame.
    #[track_caller]
    pub fn receive(&mut self) {
        let header: [u8; FrameHeader::LENGTH] =
            self.wire.take(FrameHeader::LENGTH).try_into().expect("9 bytes");
        let header = FrameHeader::parse(&header);
        header.check(Receiver::Client, 16_384, None).expect("a frame at its place");
        let payload = self.wire.take(header.length as usize);
        let frame = Frame::parse(header, &payload, Receiver::Client).expect("a right frame");
        let state = self.streams.entry(header.stream).or_default();
        match frame {
            Frame::Headers { fragment, end_stream, end_headers, .. } => {
                assert!(end_headers, "the heads of these tests are short");
                let mut list = FieldList::new(ListLimits { size: 1 << 20, fields: 1000 });
                self.decoder.decode(fragment, true, &mut list).expect("a right block");
                let response = head(&list);
                match response.status {
                    100..=199 => state.interim.push(response),
                    _ => state.response = Some(response),
                }
                state.ended |= end_stream;
            }
            Frame::Data { content, end_stream } => {
                assert!(!state.ended, "DATA after the end of stream {}", header.stream);
                state.response.as_mut().expect("HEADERS precede DATA").body.extend_from_slice(content);
                state.ended |= end_stream;
            }
            Frame::ResetStream(code) => state.reset = Some(code),
            Frame::GoAway { last_stream, code, .. } => self.goaway = Some((last_stream, code)),
            Frame::Ping { opaque, is_ack: false } => {
                let mut bytes = Vec::new();
                write::ping(opaque, true, &mut bytes);
                self.wire.send(bytes);
            }
            Frame::Settings(_) => {
                let mut bytes = Vec::new();
                write::settings_ack(&mut bytes);
                self.wire.send(bytes);
            }
            _ => {}
        }
    }
}

/// Appends a frame of any form.
pub fn frame(kind: FrameKind, flags: u8, stream: u32, payload: &[u8], to: &mut Vec<u8>) {
    let length = u32::try_from(payload.len()).expect("a short payload");
    to.extend(FrameHeader { length, kind, flags, stream }.to_bytes());
    to.extend(payload);
}

/// A field block of literals, which may be malformed.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in fields {
        bytes.push(0);
        for text in [name, value] {
            integer::encode(text.len() as u64, 7, 0, &mut bytes);
            bytes.extend(text.as_bytes());
        }
    }
    bytes
}

/// The head of a response in the form of HTTP/1, without a reason phrase.
fn head(list: &FieldList) -> WireResponse {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    let mut fields = list.iter();
    let (name, status) = fields.next().expect("a head has a status");
    assert_eq!(name, b":status");
    let status = text(status);
    let mut head = format!("HTTP/2 {status}\r\n");
    for (name, value) in fields {
        assert!(!name.iter().any(u8::is_ascii_uppercase), "a name in upper case");
        let _ = write!(head, "{}: {}\r\n", text(name), text(value));
    }
    WireResponse { status: status.parse().expect("three digits"), head, body: Vec::new() }
}
