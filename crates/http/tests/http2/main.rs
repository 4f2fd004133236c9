//! HTTP/2 connections: frames in, frames out (RFC 9113).

#[path = "../common/mod.rs"]
mod common;

mod bodies;
mod bounds;
mod frames;
mod leaving;
mod requests;

use std::collections::BTreeMap;
use std::time::Duration;

use common::{COPIED, Gate, LARGE, SECOND, SHARED, Site, limits};
use tenfold_http::script::{BEGIN, Outcome, Script};
use tenfold_http::{IoError, Limits, Next, clock};
use tenfold_wire::frame::header::{END_HEADERS, END_STREAM, PADDED, PRIORITY};
use tenfold_wire::frame::write;
use tenfold_wire::frame::{
    ErrorCode, Frame, FrameHeader, FrameKind, MOST_31_BITS, PREFACE, Receiver, Setting,
};
use tenfold_wire::hpack::{Decoder, FieldList, ListLimits};
use tenfold_wire::integer;

/// The bytes of a client.
#[derive(Clone, Default)]
struct Client(Vec<u8>);

impl Client {
    /// The preface with these settings.
    fn new(settings: &[Setting]) -> Client {
        let mut bytes = PREFACE.to_vec();
        write::settings(settings, &mut bytes);
        Client(bytes)
    }

    fn with(mut self, add: impl FnOnce(&mut Vec<u8>)) -> Client {
        add(&mut self.0);
        self
    }

    /// A frame of any form.
    fn frame(self, kind: FrameKind, flags: u8, stream: u32, payload: &[u8]) -> Client {
        let length = u32::try_from(payload.len()).expect("a short payload");
        let header = FrameHeader { length, kind, flags, stream };
        self.with(|bytes| {
            bytes.extend(header.to_bytes());
            bytes.extend(payload);
        })
    }

    /// HEADERS with these fields.
    fn headers(self, stream: u32, flags: u8, fields: &[(&str, &str)]) -> Client {
        self.frame(FrameKind::HEADERS, END_HEADERS | flags, stream, &block(fields))
    }

    /// A request for `path` without content.
    fn get(self, stream: u32, path: &str) -> Client {
        self.headers(stream, END_STREAM, &request("GET", path))
    }

    fn data(self, stream: u32, flags: u8, content: &[u8]) -> Client {
        self.frame(FrameKind::DATA, flags, stream, content)
    }

    fn window(self, stream: u32, increment: u32) -> Client {
        self.with(|bytes| write::window_update(stream, increment, bytes))
    }

    fn reset(self, stream: u32) -> Client {
        self.with(|bytes| write::reset_stream(stream, ErrorCode::CANCEL, bytes))
    }
}

fn request<'a>(method: &'a str, path: &'a str) -> [(&'a str, &'a str); 4] {
    [(":method", method), (":scheme", "http"), (":path", path), (":authority", "here")]
}

/// A field block of literals, which may be malformed.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
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

/// The frames of the server that matter to a test.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Event {
    Headers(u32, Vec<(String, String)>, bool),
    Data(u32, Vec<u8>, bool),
    Reset(u32, ErrorCode),
    GoAway(u32, ErrorCode),
    Window(u32, u32),
    Ping([u8; 8], bool),
    Settings,
    Acknowledged,
}

/// Parses the bytes of the server, which are whole frames.
fn events(mut sent: &[u8]) -> Vec<Event> {
    let (mut events, mut decoder) = (Vec::new(), Decoder::new());
    while !sent.is_empty() {
        let header = FrameHeader::parse(sent.first_chunk().expect("a whole header"));
        let (frame, rest) = sent[9..].split_at(header.length as usize);
        header.check(Receiver::Client, 16_384, None).expect("a frame at its place");
        let stream = header.stream;
        events.push(match Frame::parse(header, frame, Receiver::Client).expect("a right frame") {
            Frame::Headers { fragment, end_stream, end_headers, .. } => {
                assert!(end_headers, "the blocks of these tests are short");
                let mut list = FieldList::new(ListLimits { size: 1 << 16, fields: 100 });
                decoder.decode(fragment, true, &mut list).expect("a right block");
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
                let fields = list.iter().map(|(name, value)| (text(name), text(value))).collect();
                Event::Headers(stream, fields, end_stream)
            }
            Frame::Data { content, end_stream } => Event::Data(stream, content.to_vec(), end_stream),
            Frame::ResetStream(code) => Event::Reset(stream, code),
            Frame::GoAway { last_stream, code, .. } => Event::GoAway(last_stream, code),
            Frame::WindowUpdate(increment) => Event::Window(stream, increment.get()),
            Frame::Ping { opaque, is_ack } => Event::Ping(opaque, is_ack),
            Frame::Settings(_) => Event::Settings,
            Frame::SettingsAck => Event::Acknowledged,
            other => panic!("a server does not send {other:?}"),
        });
        sent = rest;
    }
    events
}

/// The responses by stream: status, body, and whether the stream ended by END_STREAM.
fn responses(sent: &[u8]) -> BTreeMap<u32, (String, Vec<u8>, bool)> {
    let mut responses: BTreeMap<u32, (String, Vec<u8>, bool)> = BTreeMap::new();
    for event in events(sent) {
        match event {
            Event::Headers(stream, fields, end) => {
                assert_eq!(fields[0].0, ":status");
                let response = responses.entry(stream).or_default();
                assert!(!response.2, "HEADERS after the end");
                (response.0, response.2) = (fields[0].1.clone(), end);
            }
            Event::Data(stream, content, end) => {
                let response = responses.get_mut(&stream).expect("HEADERS precede DATA");
                assert!(!response.2, "DATA after the end");
                response.1.extend(content);
                response.2 = end;
            }
            _ => {}
        }
    }
    responses
}

fn run(client: &Client) -> Outcome {
    Script::new().sends(&client.0).run(&Site::default(), &limits())
}

fn codes(sent: &[u8]) -> Vec<Event> {
    let is_code = |event: &Event| matches!(event, Event::Reset(..) | Event::GoAway(..));
    events(sent).into_iter().filter(is_code).collect()
}
