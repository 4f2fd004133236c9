//! A connection without a socket, and the bytes of a scripted server.

use proptest::prelude::*;
use tenfold_wire::frame::header::{ACK, END_HEADERS, END_STREAM, PADDED};
use tenfold_wire::frame::{Frame, FrameHeader, FrameKind, Receiver};
use tenfold_wire::hpack::{Block, Constants, FieldList};

use super::super::{ClientConnection, ConnectionState, WorkerContext};
use super::*;
use crate::connection::IoProgress;
use crate::measure::record::Record;
use crate::measure::recorder::Recorder;
use crate::message::http2::{LIST_LIMITS, PreparedRequest};
use crate::message::request;
use crate::plan::{LoadPlan, RequestVersion};

/// A plan, whose requests a script makes.
struct Script {
    plan: LoadPlan,
    prepared: Vec<PreparedRequest>,
}

impl Script {
    fn new(change: impl FnOnce(&mut LoadPlan)) -> Script {
        let mut plan = LoadPlan::new(vec!["http://h/a".parse().expect("a URL")]);
        (plan.version, plan.streams) = (RequestVersion::Http2, 3);
        change(&mut plan);
        let prepared = PreparedRequest::all(&plan);
        Script { plan, prepared }
    }

    /// An open connection with `count` requests.
    fn open(&self, count: u32) -> Run<'_> {
        let mut context = WorkerContext {
            encoded: &[],
            http2: RequestsToSend {
                prepared: &self.prepared,
                body: &self.plan.body,
                hash: self.plan.expect.hash.is_some(),
            },
            fields: FieldList::new(LIST_LIMITS),
            traits: request::traits(&self.plan),
            expect: &self.plan.expect,
            known: Vec::new(),
            buffer: Box::default(),
            gathered: Vec::new(),
            recorder: Recorder::new(0, 1_000_000),
            pending: 0,
        };
        let mut connection = ClientConnection::new(true);
        connection.connect(None, RequestVersion::Http2, false, 1);
        context.recorder.opened();
        connection.state = ConnectionState::Open;
        (0..count).for_each(|_| connection.begin(1, 0, &mut context));
        Run { connection, context, now: 1 }
    }
}

struct Run<'a> {
    connection: ClientConnection,
    context: WorkerContext<'a>,
    now: u64,
}

impl Run<'_> {
    /// Sends everything, and returns the sent bytes.
    fn sent(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while self.connection.has_unsent() {
            self.connection.prepare(&mut self.context, self.now);
            let bytes = self.connection.waiting(&mut self.context, usize::MAX).to_vec();
            // A new window may be too small for content.
            assert!(!bytes.is_empty() || !self.connection.has_unsent(), "each attempt makes progress");
            self.connection.advance(bytes.len(), &mut self.context, self.now);
            all.extend(bytes);
        }
        all
    }

    /// Sends everything, and returns type, flags, stream and payload of each frame.
    fn frames(&mut self) -> Vec<(FrameKind, u8, u32, Vec<u8>)> {
        let bytes = self.sent();
        let mut rest = bytes.strip_prefix(PREFACE).unwrap_or(&bytes);
        let mut frames = Vec::new();
        while let Some((head, after)) = rest.split_first_chunk() {
            let header = FrameHeader::parse(head);
            header.check(Receiver::Server, 16_384, None).expect("a valid header");
            let (payload, after) = after.split_at(header.length as usize);
            Frame::parse(header, payload, Receiver::Server).expect("a valid frame");
            frames.push((header.kind, header.flags, header.stream, payload.to_vec()));
            rest = after;
        }
        frames
    }

    /// The frames without those of the start.
    fn shown(&mut self) -> Vec<String> {
        let shown = |(kind, flags, stream, payload): (FrameKind, u8, u32, Vec<u8>)| match kind {
            FrameKind::HEADERS => format!("HEADERS {stream}{}", end(flags)),
            FrameKind::DATA => format!("DATA {stream} {}{}", payload.len(), end(flags)),
            FrameKind::RST_STREAM => format!("RST {stream} {}", payload[3]),
            FrameKind::SETTINGS if flags & ACK != 0 => "ACK".to_owned(),
            FrameKind::PING => format!("PING {flags}"),
            FrameKind::GOAWAY => "GOAWAY".to_owned(),
            FrameKind::WINDOW_UPDATE => format!("WINDOW {stream}"),
            _ => String::new(),
        };
        fn end(flags: u8) -> &'static str {
            if flags & END_STREAM != 0 { " end" } else { "" }
        }
        self.frames().into_iter().map(shown).filter(|text| !text.is_empty() && text != "WINDOW 0").collect()
    }

    fn arrived(&mut self, bytes: &[u8]) -> Result<(), ExchangeError> {
        self.now += 1;
        self.connection.arrived(bytes, &mut self.context, self.now)
    }

    fn record(self) -> Record {
        self.context.recorder.finish(self.now)
    }
}

fn frame(kind: FrameKind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let header = FrameHeader { length: payload.len() as u32, kind, flags, stream };
    [&header.to_bytes()[..], payload].concat()
}

fn settings(settings: &[Setting]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write::settings(settings, &mut bytes);
    bytes
}

/// The block of a head, of one encoder for each call, whose table stays empty.
fn block(status: u16, fields: &[(&str, &str)]) -> Vec<u8> {
    let (constants, mut block, mut bytes) = (Constants::default(), Block::new(), Vec::new());
    if status > 0 {
        block.status(status);
    }
    fields.iter().for_each(|(name, value)| block.field(&constants, name.as_bytes(), value.as_bytes()));
    Encoder::new().write(&constants, &block, &mut bytes);
    bytes
}

fn head(stream: u32, status: u16, fields: &[(&str, &str)], flags: u8) -> Vec<u8> {
    frame(FrameKind::HEADERS, flags | END_HEADERS, stream, &block(status, fields))
}

fn data(stream: u32, content: &[u8], flags: u8) -> Vec<u8> {
    frame(FrameKind::DATA, flags, stream, content)
}

fn reset(stream: u32, code: ErrorCode) -> Vec<u8> {
    frame(FrameKind::RST_STREAM, 0, stream, &code.0.to_be_bytes())
}

fn goaway(last: u32, code: ErrorCode) -> Vec<u8> {
    let mut bytes = Vec::new();
    write::goaway(last, code, b"why", &mut bytes);
    bytes
}

/// Every form of a correct response, to streams 1, 3 and 5.
fn responses() -> Vec<u8> {
    let fields = [("content-length", "5"), ("server", "a server with a long name")];
    let long = block(200, &fields);
    let (first, second) = long.split_at(7);
    [
        settings(&[Setting::MaxConcurrentStreams(100)]),
        frame(FrameKind(0xbe), 0xff, 7, b"of an unknown type"),
        head(3, 103, &[("link", "<a>")], 0),
        frame(FrameKind::HEADERS, 0, 3, first),
        frame(FrameKind::CONTINUATION, END_HEADERS, 3, second),
        head(5, 200, &[], 0),
        // Padding of 3 bytes.
        data(5, b"\x03abc\0\0\0", PADDED),
        data(3, b"123", 0),
        data(5, b"", 0),
        frame(FrameKind::PING, 0, 0, b"12345678"),
        data(5, b"\0def", PADDED),
        data(3, b"45", END_STREAM),
        frame(FrameKind::WINDOW_UPDATE, 0, 5, &[0, 0, 1, 0]),
        head(5, 0, &[("x-sum", "1")], END_STREAM),
        head(1, 204, &[], END_STREAM),
    ]
    .concat()
}

#[test]
fn a_connection_begins_with_preface_settings_and_a_large_window() {
    let script = Script::new(|_| {});
    let mut run = script.open(0);
    let bytes = run.sent();
    assert!(bytes.starts_with(PREFACE));
    assert_eq!(bytes[24 + 3], FrameKind::SETTINGS.0);
    assert!(bytes.ends_with(&frame(FrameKind::WINDOW_UPDATE, 0, 0, &(WINDOW - 65_535).to_be_bytes())));
}

#[test]
fn responses_are_complete_however_their_bytes_are_split() {
    let script = Script::new(|plan| plan.expect.statuses = vec![200, 204]);
    let bytes = responses();
    for size in (1..40).chain([bytes.len()]) {
        let mut run = script.open(3);
        assert_eq!(run.shown(), ["HEADERS 1 end", "HEADERS 3 end", "HEADERS 5 end"]);
        bytes.chunks(size).for_each(|piece| run.arrived(piece).expect("correct frames"));
        assert_eq!(run.connection.in_flight(), 0, "{size}");
        assert_eq!((run.context.pending, run.connection.answers), (0, 3), "{size}");
        assert_eq!(run.shown(), ["ACK", "PING 1"], "{size}");
        let record = run.record();
        assert_eq!(record.statuses, [(200, 2), (204, 1)].into());
        assert_eq!(record.http2.least_limit, Some(100));
    }
}

#[test]
fn a_length_and_a_hash_are_checked_for_each_stream() {
    // The SHA-256 of "abc" and of nothing else.
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let script = Script::new(|plan| plan.expect.hash = Some(abc.parse().expect("a hash")));
    let mut run = script.open(3);
    run.sent();
    let bytes = [
        settings(&[]),
        head(1, 200, &[], 0),
        head(3, 200, &[], 0),
        data(1, b"ab", 0),
        data(3, b"abd", END_STREAM),
        data(1, b"c", END_STREAM),
        head(5, 200, &[("content-length", "4")], 0),
        data(5, b"abc", END_STREAM),
    ];
    run.arrived(&bytes.concat()).expect("correct frames");
    assert_eq!(run.connection.answers, 1);
    assert_eq!(run.record().errors, [(ErrorKind::Malformed, 1), (ErrorKind::Hash, 1)].into());
}

#[test]
fn malformed_responses_end_only_their_stream() {
    for (bytes, why) in [
        (data(1, b"a", 0), "precedes"),
        (head(1, 0, &[("x", "")], 0), ":status"),
        (head(1, 100, &[], END_STREAM), "interim"),
        ([head(1, 200, &[], 0), head(1, 200, &[], 0)].concat(), "name"),
        ([head(1, 200, &[], 0), head(1, 0, &[("x", "")], 0)].concat(), "second head"),
    ] {
        let script = Script::new(|_| {});
        let mut run = script.open(2);
        run.sent();
        let rest = [data(1, b"late", END_STREAM), head(3, 200, &[], END_STREAM)];
        let all = [settings(&[]), bytes, rest.concat()].concat();
        run.arrived(&all).expect("the connection continues");
        assert_eq!(run.shown(), ["ACK", "RST 1 1"], "{why}");
        assert_eq!(run.connection.answers, 1);
        let record = run.record();
        assert_eq!(record.errors, [(ErrorKind::Malformed, 1)].into(), "{why}");
        assert!(record.examples[&ErrorKind::Malformed].contains(why), "{:?}", record.examples);
    }
}

#[test]
fn resets_are_counted_by_kind_and_code() {
    let script = Script::new(|_| {});
    let mut run = script.open(3);
    run.sent();
    let bytes = [
        settings(&[]),
        reset(3, ErrorCode::REFUSED_STREAM),
        reset(1, ErrorCode::INTERNAL_ERROR),
        // A stream that ended.
        reset(1, ErrorCode::NO_ERROR),
        head(5, 200, &[], END_STREAM),
    ];
    run.arrived(&bytes.concat()).expect("correct frames");
    assert_eq!(run.connection.in_flight(), 0);
    let record = run.record();
    assert_eq!(record.errors, [(ErrorKind::StreamReset, 1), (ErrorKind::StreamRefused, 1)].into());
    assert_eq!(record.examples[&ErrorKind::StreamReset], "RST_STREAM with INTERNAL_ERROR");
    let codes = ["INTERNAL_ERROR", "REFUSED_STREAM"].map(|code| (code.to_owned(), 1));
    assert_eq!(record.http2.resets, codes.into());
}

#[test]
fn after_goaway_the_rest_is_repeated_on_another_connection() {
    let script = Script::new(|_| {});
    let mut run = script.open(3);
    run.sent();
    let bytes = [settings(&[]), goaway(1, ErrorCode::NO_ERROR), head(1, 200, &[], 0)];
    run.arrived(&bytes.concat()).expect("correct frames");
    assert_eq!(run.connection.in_flight(), 3);
    assert_eq!(run.connection.most_at_once(&script.plan), 0);
    assert!(!run.connection.is_over(), "stream 1 is open");
    assert_eq!(run.shown(), ["ACK"], "no stream begins");
    run.arrived(&data(1, b"a", END_STREAM)).expect("correct frames");
    assert!(run.connection.is_over());
    run.connection.close(&mut run.context, 9, None);
    assert_eq!(run.connection.in_flight(), 2);
    run.connection.connect(None, RequestVersion::Http2, false, 10);
    run.context.recorder.opened();
    run.connection.state = ConnectionState::Open;
    assert_eq!(run.shown(), ["HEADERS 1 end", "HEADERS 3 end"]);
    let record = run.record();
    assert!(record.errors.is_empty());
    assert_eq!(record.http2.goaways, [("NO_ERROR".to_owned(), 1)].into());
}

#[test]
fn goaway_with_an_error_fails_the_requests_in_flight() {
    let script = Script::new(|_| {});
    let mut run = script.open(2);
    run.sent();
    let bytes = [settings(&[]), goaway(3, ErrorCode::ENHANCE_YOUR_CALM)].concat();
    let error = run.arrived(&bytes).expect_err("the connection ends");
    assert_eq!((error.kind, &*error.message), (ErrorKind::Goaway, "GOAWAY with ENHANCE_YOUR_CALM: why"));
    run.connection.close(&mut run.context, 9, Some(&error));
    assert_eq!((run.context.pending, run.connection.in_flight()), (0, 0));
    assert_eq!(run.record().errors, [(ErrorKind::Goaway, 2)].into());
}

#[test]
fn the_server_limits_streams_and_the_content_of_requests() {
    let script = Script::new(|plan| (plan.method, plan.body) = ("POST".into(), vec![b'x'; 100_000]));
    let mut run = script.open(3);
    run.arrived(&settings(&[Setting::MaxConcurrentStreams(2), Setting::InitialWindowSize(20_000)]))
        .expect("correct frames");
    assert_eq!(run.connection.most_at_once(&script.plan), 2);
    let sent = run.shown();
    let expected =
        ["ACK", "HEADERS 1", "HEADERS 3", "DATA 1 16384", "DATA 1 3616", "DATA 3 16384", "DATA 3 3616"];
    assert_eq!(sent, expected);
    // The window of stream 1 becomes -9,000, and then 1,000.
    let smaller = settings(&[Setting::InitialWindowSize(11_000)]);
    run.arrived(&smaller).expect("correct frames");
    assert_eq!(run.shown(), ["ACK"]);
    run.arrived(&frame(FrameKind::WINDOW_UPDATE, 0, 1, &10_000u32.to_be_bytes())).expect("correct frames");
    assert_eq!(run.shown(), ["DATA 1 1000"]);
    // A response ends the upload, and the third request begins.
    run.arrived(&head(1, 200, &[], END_STREAM)).expect("correct frames");
    assert_eq!(run.shown(), ["RST 1 8", "HEADERS 5", "DATA 5 11000"]);
    // The window of the connection had 65,535 bytes.
    let more = 100_000u32.to_be_bytes();
    run.arrived(&frame(FrameKind::WINDOW_UPDATE, 0, 3, &more)).expect("correct frames");
    assert_eq!(run.shown(), ["DATA 3 13535"]);
    run.arrived(&frame(FrameKind::WINDOW_UPDATE, 0, 0, &more)).expect("correct frames");
    let sent = run.shown();
    assert_eq!(sent.last().map(String::as_str), Some("DATA 3 929 end"), "{sent:?}");
}

#[test]
fn a_broken_connection_has_a_reason() {
    let oversized = FrameHeader { length: 16_385, kind: FrameKind::DATA, flags: 0, stream: 1 };
    let window = (1u32 << 31) - 1;
    for (bytes, why) in [
        (oversized.to_bytes().to_vec(), "FRAME_SIZE_ERROR"),
        (frame(FrameKind::HEADERS, END_HEADERS, 1, &[0xff, 0xff]), "field"),
        (head(7, 200, &[], 0), "without a request"),
        (head(2, 200, &[], 0), "without a request"),
        (frame(FrameKind::PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2]), "PUSH_PROMISE"),
        ([frame(FrameKind::HEADERS, 0, 1, &[]), data(1, b"", 0)].concat(), "interrupts"),
        (frame(FrameKind::WINDOW_UPDATE, 0, 0, &window.to_be_bytes()), "FLOW_CONTROL_ERROR"),
        (data(1, b"\x02a", PADDED), "padding"),
        (frame(FrameKind::PING, 0, 0, b"12345678").repeat(70_000), "does not read"),
    ] {
        let script = Script::new(|_| {});
        let mut run = script.open(1);
        run.sent();
        run.arrived(&settings(&[])).expect("correct frames");
        let error = run.arrived(&bytes).expect_err(why);
        if why != "field" {
            assert!(error.message.contains(why), "{why}: {}", error.message);
        }
        assert_eq!(error.kind, ErrorKind::Malformed);
    }
}

#[test]
fn a_server_without_http2_is_named() {
    let script = Script::new(|_| {});
    for bytes in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], &data(1, b"", 0)] {
        let mut run = script.open(1);
        run.sent();
        let error = run.arrived(bytes).expect_err("no SETTINGS");
        assert_eq!(error.kind, ErrorKind::NoHttp2);
        assert!(error.message.contains("--http 1.1"), "{}", error.message);
    }
    let mut run = script.open(1);
    run.sent();
    let error = run.connection.end(&mut run.context, 2).expect_err("no SETTINGS");
    assert_eq!(error.kind, ErrorKind::NoHttp2);
    run.arrived(&settings(&[])).expect("correct frames");
    let error = run.connection.end(&mut run.context, 2).expect_err("no response");
    assert_eq!(error.kind, ErrorKind::Closed);
    run.arrived(&head(1, 200, &[], END_STREAM)).expect("correct frames");
    assert!(matches!(run.connection.end(&mut run.context, 2), Ok(IoProgress::Over)));
}

/// A field counts its name, its value and 32 bytes (RFC 9113 §6.5.2).
#[test]
fn a_request_above_the_limit_of_the_server_is_an_error() {
    let script = Script::new(|_| {});
    let size = script.prepared[0].size as u32;
    assert_eq!(size, 7 + 3 + 7 + 4 + 10 + 1 + 5 + 2 + 4 * 32);
    let mut run = script.open(1);
    run.arrived(&settings(&[Setting::MaxHeaderListSize(size)])).expect("the limit is its size");
    let error = run.arrived(&settings(&[Setting::MaxHeaderListSize(size - 1)])).expect_err("a lower limit");
    assert_eq!(error.kind, ErrorKind::HeadLimit);
    assert!(
        error.message.contains(&format!("allows {} (MAX_HEADER_LIST_SIZE)", size - 1)),
        "{}",
        error.message
    );
}

#[test]
fn a_late_response_is_cancelled_and_others_continue() {
    let script = Script::new(|_| {});
    let mut run = script.open(1);
    run.sent();
    run.arrived(&settings(&[])).expect("correct frames");
    let late = ExchangeError::new(ErrorKind::Timeout, "late");
    assert!(!run.connection.cancel_late(&mut run.context, 1_001, 1_000, &late), "nothing else is in flight");
    run.now = 500;
    run.connection.begin(500, 0, &mut run.context);
    run.sent();
    assert!(run.connection.cancel_late(&mut run.context, 1_001, 1_000, &late));
    assert_eq!(run.shown(), ["RST 1 8"]);
    run.arrived(&[head(1, 200, &[], END_STREAM), head(3, 200, &[], END_STREAM)].concat())
        .expect("correct frames");
    assert_eq!((run.connection.answers, run.context.pending), (1, 0));
    assert_eq!(run.record().errors, [(ErrorKind::Timeout, 1)].into());
}

proptest! {
    #[test]
    fn arbitrary_changes_never_panic(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
        size in 1usize..60,
        body in 0usize..70_000,
    ) {
        let script = Script::new(|plan| plan.body = vec![b'x'; body]);
        let mut run = script.open(4);
        let mut bytes = responses();
        changes.iter().for_each(|(at, byte)| *at.get_mut(&mut bytes) = *byte);
        for piece in bytes.chunks(size) {
            run.sent();
            if let Err(error) = run.arrived(piece) {
                run.connection.close(&mut run.context, 9, Some(&error));
                break;
            }
        }
        prop_assert_eq!(run.context.pending as usize, run.connection.in_flight());
    }
}
