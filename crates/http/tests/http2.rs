//! HTTP/2 connections: frames in, frames out (RFC 9113).

mod common;

use std::collections::BTreeMap;

use common::{Gate, LARGE, SECOND, SHARED, Site, limits};
use tenfold_http::script::{BEGIN, Outcome, Script};
use tenfold_http::{IoError, Limits, Next};
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

#[test]
fn requests_get_their_responses_and_the_connection_parks() {
    let outcome = run(&Client::new(&[]).get(1, "/a?b").get(3, "/shared"));
    let all = events(&outcome.sent);
    assert_eq!(all[..2], [Event::Settings, Event::Acknowledged]);
    let Event::Headers(1, fields, false) = &all[2] else { panic!("{all:?}") };
    assert_eq!(fields[0], (":status".to_owned(), "200".to_owned()));
    assert!(fields.contains(&("server".to_owned(), "tenfold".to_owned())), "{fields:?}");
    assert!(fields.iter().any(|(name, value)| name == "date" && value.ends_with("GMT")), "{fields:?}");
    let found = responses(&outcome.sent);
    let text = b"GET /a Some(\"b\") host=here Empty\n".to_vec();
    assert_eq!(found[&1], ("200".to_owned(), text, true));
    assert_eq!(found[&3], ("200".to_owned(), SHARED.to_vec(), true));
    assert_eq!(outcome.next, Next::Park(BEGIN + limits().idle_timeout));
}

#[test]
fn every_split_gives_the_same_responses() {
    let client = Client::new(&[Setting::InitialWindowSize(10)])
        .get(1, "/shared")
        .headers(3, 0, &request("POST", "/echo"))
        .data(3, 0, b"con")
        .data(3, END_STREAM, b"tent")
        .window(1, 1 << 20)
        .window(3, 1 << 20);
    let whole = responses(&run(&client).sent);
    assert_eq!(whole[&1].1, SHARED);
    assert_eq!(whole[&3], ("200".to_owned(), b"content".to_vec(), true));
    for at in 0..=client.0.len() {
        let (begin, end) = client.0.split_at(at);
        let script = Script::new().sends(begin).waits(SECOND / 2).sends(end);
        let outcome = script.run(&Site::default(), &limits());
        assert_eq!(responses(&outcome.sent), whole, "split at {at}");
    }
    let pausing = Script::new().sends(&client.0).pausing().run(&Site::default(), &limits());
    assert_eq!(responses(&pausing.sent), whole);
}

#[test]
fn an_error_of_the_driver_at_any_operation_ends_the_connection() {
    let client = Client::new(&[]).get(1, "/a").get(3, "/large");
    let operations = run(&client).operations;
    for at in 0..operations {
        let script = Script::new().sends(&client.0).failing_at(at, IoError::Gone);
        let outcome = script.run(&Site::default(), &limits());
        assert_eq!(outcome.next, Next::Close, "{at} of {operations}");
    }
}

#[test]
fn a_parked_connection_keeps_its_tables_and_windows() {
    let mut encoded = Client::new(&[]);
    // The second request refers to the entry of the first.
    let inserted = [&block(&request("GET", "/a"))[..], &[0x40, 1, b'x', 1, b'y']].concat();
    let indexed = [&block(&request("GET", "/b"))[..], &[0x80 | 62]].concat();
    encoded = encoded.frame(FrameKind::HEADERS, END_HEADERS | END_STREAM, 1, &inserted);
    let second = Client::default().frame(FrameKind::HEADERS, END_HEADERS | END_STREAM, 3, &indexed);
    let script = Script::new().sends(&encoded.0).waits(SECOND).sends(&second.0);
    let outcome = script.run(&Site::default(), &limits());
    assert_eq!(outcome.parked, 1);
    let found = responses(&outcome.sent);
    assert_eq!((&*found[&1].0, &*found[&3].0), ("200", "200"));
    // PING and WINDOW_UPDATE do not prolong the idle time.
    let mut script = Script::new().sends(&encoded.0);
    for _ in 0..100 {
        let ping = Client::default().with(|bytes| write::ping([7; 8], false, bytes)).window(0, 1000);
        script = script.waits(SECOND).sends(&ping.0);
    }
    let outcome = script.run(&Site::default(), &limits());
    assert_eq!(outcome.next, Next::Park(BEGIN + limits().idle_timeout));
}

#[test]
fn content_arrives_within_its_bounds() {
    let long = vec![b'x'; 2001];
    for (length, content, expected) in [
        (None, &b"abc"[..], Ok("200")),
        (Some("3"), b"abc", Ok("200")),
        (Some("0"), b"", Ok("200")),
        (Some("2"), b"abc", Err(ErrorCode::PROTOCOL_ERROR)),
        (Some("4"), b"abc", Err(ErrorCode::PROTOCOL_ERROR)),
        (Some("x"), b"abc", Err(ErrorCode::PROTOCOL_ERROR)),
        (None, &long, Ok("413")),
        (Some("2001"), &long, Ok("413")),
    ] {
        let mut fields = request("POST", "/echo").to_vec();
        fields.extend(length.map(|length| ("content-length", length)));
        let client = Client::new(&[]).headers(1, 0, &fields).data(1, END_STREAM, content);
        let outcome = run(&client.get(3, "/a"));
        let found = responses(&outcome.sent);
        match expected {
            Ok(status) => assert_eq!(found[&1].0, status, "{length:?}"),
            Err(code) => assert!(codes(&outcome.sent).contains(&Event::Reset(1, code)), "{length:?}"),
        }
        assert_eq!(found[&3].0, "200", "{length:?}: the connection goes on");
    }
    // The sum of several frames counts. Trailers end the content, and must be well-formed (RFC 9113 §8.1).
    let mut fields = request("POST", "/echo").to_vec();
    let upload = || Client::new(&[]).headers(1, 0, &request("POST", "/echo")).data(1, 0, b"abc");
    fields.push(("content-length", "4"));
    for client in [
        Client::new(&[]).headers(1, 0, &fields).data(1, 0, b"abc").data(1, END_STREAM, b"de"),
        upload().headers(1, 0, &[("a", "b")]),
        upload().headers(1, END_STREAM, &[(":path", "/")]),
        upload().headers(1, END_STREAM, &[("A", "b")]),
    ] {
        assert_eq!(codes(&run(&client).sent), [Event::Reset(1, ErrorCode::PROTOCOL_ERROR)]);
    }
    let outcome = run(&upload().headers(1, END_STREAM, &[("a", "b")]));
    assert_eq!(responses(&outcome.sent)[&1], ("200".to_owned(), b"abc".to_vec(), true));
    // A client that waits for 100 gets it; a response before the end of the content asks the client to stop.
    let mut fields = request("POST", "/echo").to_vec();
    fields.push(("expect", "100-continue"));
    let outcome = run(&Client::new(&[]).headers(1, 0, &fields).data(1, END_STREAM, b"abc"));
    let statuses: Vec<_> = events(&outcome.sent)
        .into_iter()
        .filter_map(|event| match event {
            Event::Headers(_, fields, _) => Some(fields[0].1.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(statuses, ["100", "200"]);
    let outcome = run(&Client::new(&[]).headers(1, 0, &request("POST", "/a")));
    assert_eq!(codes(&outcome.sent), [Event::Reset(1, ErrorCode::NO_ERROR)]);
}

#[test]
fn malformed_requests_reset_their_stream() {
    let base = request("GET", "/a");
    let with = |fields: &[(&'static str, &'static str)]| [&base[..], fields].concat();
    for fields in [
        with(&[("Upper", "a")]),
        with(&[("a b", "c")]),
        with(&[("", "c")]),
        with(&[("a", "b\r\nc")]),
        with(&[("a", " b")]),
        with(&[("connection", "close")]),
        with(&[("proxy-connection", "close")]),
        with(&[("keep-alive", "1")]),
        with(&[("transfer-encoding", "chunked")]),
        with(&[("upgrade", "h2c")]),
        with(&[("te", "gzip")]),
        with(&[("host", "elsewhere")]),
        with(&[("host", "here"), ("host", "here")]),
        with(&[("a", "b"), (":path", "/b")]),
        with(&[(":path", "/b")]),
        with(&[(":status", "200")]),
        with(&[(":unknown", "200")]),
        with(&[("content-length", "1")]),
        base[1..].to_vec(),
        [&base[..1], &base[2..]].concat(),
        [&base[..2], &base[3..]].concat(),
        base[..3].to_vec(),
        request("GET", "a").to_vec(),
        request("GET", "").to_vec(),
        request("GET", "*").to_vec(),
        request("GET", "http://here/").to_vec(),
        request("CONNECT", "/").to_vec(),
        request("G T", "/").to_vec(),
        vec![base[0], base[1], base[2], (":authority", "user@here")],
        vec![base[0], base[1], base[2], (":authority", "")],
    ] {
        let outcome = run(&Client::new(&[]).headers(1, END_STREAM, &fields).get(3, "/a"));
        let expected = [Event::Reset(1, ErrorCode::PROTOCOL_ERROR)];
        assert_eq!(codes(&outcome.sent), expected, "{fields:?}");
        assert_eq!(responses(&outcome.sent)[&3].0, "200", "{fields:?}");
    }
}

#[test]
fn refused_requests_get_a_response_and_the_connection_goes_on() {
    let base = request("GET", "/a");
    let long = format!("/{}", "a".repeat(400));
    let large = "a".repeat(1000);
    for (fields, status) in [
        (vec![base[0], (":scheme", "https"), base[2], base[3]], "421"),
        (vec![base[0], (":scheme", "ftp"), base[2], base[3]], "421"),
        (request("BREW", "/a").to_vec(), "501"),
        (request("GET", &long).to_vec(), "414"),
        ([&base[..], &[("a", &large)]].concat(), "431"),
        ([&base[..], &[("a", "b"); 17]].concat(), "431"),
        ([&base[..], &[("expect", "more")]].concat(), "417"),
        (vec![(":method", "CONNECT"), (":authority", "here:80")], "200"),
        ([&base[..], &[("te", "trailers"), ("host", "HERE")]].concat(), "200"),
        (request("OPTIONS", "*").to_vec(), "200"),
    ] {
        let outcome = run(&Client::new(&[]).headers(1, END_STREAM, &fields).get(3, "/a"));
        let found = responses(&outcome.sent);
        assert_eq!((&*found[&1].0, found[&1].2), (status, true), "{fields:?}");
        assert_eq!(found[&3].0, "200", "{fields:?}");
        assert_eq!(codes(&outcome.sent), [], "{fields:?}");
    }
}

#[test]
fn wrong_frames_end_the_connection_with_their_code() {
    use ErrorCode as C;
    let open = || Client::new(&[]).get(1, "/never");
    let cases = [
        ("SETTINGS on a stream", open().frame(FrameKind::SETTINGS, 0, 1, b""), C::PROTOCOL_ERROR),
        ("SETTINGS of 5 bytes", open().frame(FrameKind::SETTINGS, 0, 0, b"12345"), C::FRAME_SIZE_ERROR),
        ("DATA on stream 0", open().data(0, 0, b"a"), C::PROTOCOL_ERROR),
        ("DATA for an idle stream", open().data(3, 0, b"a"), C::PROTOCOL_ERROR),
        ("padding", open().frame(FrameKind::DATA, PADDED, 1, &[5, 1]), C::PROTOCOL_ERROR),
        ("PING of 7 bytes", open().frame(FrameKind::PING, 0, 0, b"1234567"), C::FRAME_SIZE_ERROR),
        ("an even stream", open().get(2, "/a"), C::PROTOCOL_ERROR),
        ("a lower stream", open().get(5, "/a").get(3, "/a"), C::STREAM_CLOSED),
        ("CONTINUATION alone", open().frame(FrameKind::CONTINUATION, 0, 1, b""), C::PROTOCOL_ERROR),
        (
            "an interrupted block",
            open().frame(FrameKind::HEADERS, 0, 3, &block(&request("GET", "/a"))).get(5, "/a"),
            C::PROTOCOL_ERROR,
        ),
        ("a wrong block", open().frame(FrameKind::HEADERS, END_HEADERS, 3, &[0x80]), C::COMPRESSION_ERROR),
        ("RST_STREAM for an idle stream", open().reset(3), C::PROTOCOL_ERROR),
        ("an increment for an idle stream", open().window(3, 1), C::PROTOCOL_ERROR),
        ("a window too large", open().window(0, MOST_31_BITS), C::FLOW_CONTROL_ERROR),
        ("PUSH_PROMISE", open().frame(FrameKind::PUSH_PROMISE, 4, 1, b"12345"), C::PROTOCOL_ERROR),
        (
            "a window by settings too large",
            open().window(1, MOST_31_BITS - 65_535).with(|bytes| {
                write::settings(&[Setting::InitialWindowSize(65_536)], bytes);
            }),
            C::FLOW_CONTROL_ERROR,
        ),
    ];
    for (what, client, code) in cases {
        let outcome = run(&client);
        let found = codes(&outcome.sent);
        assert!(matches!(found[..], [.., Event::GoAway(_, found)] if found == code), "{what}: {found:?}");
        assert_eq!(outcome.next, Next::Linger, "{what}");
    }
    // Frames before SETTINGS, and another preface.
    let early = Client(PREFACE.to_vec()).get(1, "/a");
    assert_eq!(codes(&run(&early).sent), [Event::GoAway(0, C::PROTOCOL_ERROR)]);
    let mut other = PREFACE.to_vec();
    other[20] = b'x';
    assert_eq!(codes(&run(&Client(other)).sent), [Event::GoAway(0, C::PROTOCOL_ERROR)]);
    // A stream error leaves the connection open.
    let client = open().window(1, MOST_31_BITS).get(3, "/a");
    let outcome = run(&client);
    assert_eq!(codes(&outcome.sent), [Event::Reset(1, C::FLOW_CONTROL_ERROR)]);
    assert_eq!(responses(&outcome.sent)[&3].0, "200");
}

#[test]
fn bodies_respect_windows_of_the_stream_and_of_the_connection() {
    let client = Client::new(&[Setting::InitialWindowSize(0)]).get(1, "/shared");
    let mut script = Script::new().sends(&client.0);
    for _ in 0..SHARED.len() {
        script = script.waits(SECOND / 100).sends(&Client::default().window(1, 1).0);
    }
    let outcome = script.run(&Site::default(), &limits());
    assert_eq!(responses(&outcome.sent)[&1], ("200".to_owned(), SHARED.to_vec(), true));
    let pieces = events(&outcome.sent).iter().filter(|event| matches!(event, Event::Data(..))).count();
    assert_eq!(pieces, SHARED.len());
    // The connection's window bounds all streams together.
    let outcome = run(&Client::new(&[Setting::InitialWindowSize(1 << 20)]).get(1, "/large").get(3, "/large"));
    let sent: usize = responses(&outcome.sent).values().map(|response| response.1.len()).sum();
    assert_eq!(sent, 65_535);
    // A change of the initial window can make a window negative.
    let client = Client::new(&[]).get(1, "/large").window(0, 1 << 20);
    let smaller = Client::default().with(|bytes| write::settings(&[Setting::InitialWindowSize(0)], bytes));
    let script = Script::new().sends(&client.0).waits(SECOND).sends(&smaller.window(1, 1000).0);
    let outcome = script.run(&Site::default(), &limits());
    assert_eq!(responses(&outcome.sent)[&1].1.len(), 65_535);
}

#[test]
fn a_stream_that_waits_for_its_window_ends_and_others_go_on() {
    let client = Client::new(&[Setting::InitialWindowSize(10)]).get(1, "/large");
    let more = Client::default().get(3, "/a").window(3, 1000);
    let script = Script::new().sends(&client.0).waits(125 * SECOND).sends(&more.0);
    let outcome = script.run(&Site::default(), &Limits { idle_timeout: 300 * SECOND, ..limits() });
    assert_eq!(codes(&outcome.sent), [Event::Reset(1, ErrorCode::CANCEL)]);
    assert_eq!(responses(&outcome.sent)[&3].0, "200");
}

#[test]
fn urgent_streams_come_first() {
    let urgent = |urgency| {
        let mut fields = request("GET", "/large").to_vec();
        fields.push(("priority", urgency));
        fields
    };
    let order_of = |script: Script| -> Vec<u32> {
        let outcome = script.run(&Site::default(), &limits());
        let mut order = Vec::new();
        for event in events(&outcome.sent) {
            if let Event::Data(stream, ..) = event
                && order.last() != Some(&stream)
            {
                order.push(stream);
            }
        }
        order
    };
    let order = |client: Client| order_of(Script::new().sends(&client.window(0, 1 << 20).0));
    let settings = [Setting::InitialWindowSize(100_000)];
    let both = |one, other| {
        Client::new(&settings).headers(1, END_STREAM, &urgent(one)).headers(3, END_STREAM, &urgent(other))
    };
    assert_eq!(order(both("u=5", "u=1")), [3, 1]);
    assert_eq!(order(both("u=3", "u=3")), [1, 3]);
    assert!(order(both("u=3, i", "u=3, i")).starts_with(&[1, 3, 1, 3]));
    // PRIORITY_UPDATE, before its stream and after.
    let client = Client::new(&settings).with(|bytes| write::priority_update(3, b"u=0", bytes));
    let later = Client::default().window(0, 1 << 20).get(1, "/large").get(3, "/large");
    assert_eq!(order_of(Script::new().sends(&client.0).waits(SECOND).sends(&later.0)), [3, 1]);
    assert_eq!(order(client.get(1, "/large").get(3, "/large")), [3, 1]);
    let client = Client::new(&settings).get(1, "/large").get(3, "/large");
    assert_eq!(order(client.with(|bytes| write::priority_update(3, b"u=0", bytes))), [3, 1]);
    // Chromium's weights, which setting 9 cancels.
    let weighted = |client: Client, stream, weight: u8| {
        let payload = [&[0, 0, 0, 0, weight][..], &block(&request("GET", "/large"))].concat();
        client.frame(FrameKind::HEADERS, END_HEADERS | END_STREAM | PRIORITY, stream, &payload)
    };
    let client = weighted(weighted(Client::new(&settings), 1, 109), 3, 255);
    assert_eq!(order(client), [3, 1]);
    let off = [settings[0], Setting::NoRfc7540Priorities(true)];
    let client = weighted(weighted(Client::new(&off), 1, 109), 3, 255);
    assert_eq!(order(client), [1, 3]);
}

#[test]
fn deferred_responses_do_not_delay_other_streams() {
    let gate = Gate::default();
    let site = Site { gate: gate.clone(), ..Site::default() };
    let client = Client::new(&[]).get(1, "/later").get(3, "/a");
    let script = Script::new().sends(&client.0).waits(SECOND).meanwhile(move || gate.keep());
    let outcome = script.run(&site, &limits());
    let order: Vec<_> = events(&outcome.sent)
        .into_iter()
        .filter_map(|event| match event {
            Event::Headers(stream, ..) => Some(stream),
            _ => None,
        })
        .collect();
    assert_eq!(order, [3, 1]);
    assert_eq!(responses(&outcome.sent)[&1].1, b"later\n");
    // A reset drops the future, and the deadline refuses it.
    let gate = Gate::default();
    let site = Site { gate: gate.clone(), ..Site::default() };
    let reset = Client::default().reset(1);
    let script = Script::new().sends(&Client::new(&[]).get(1, "/never").0).waits(SECOND).sends(&reset.0);
    script.run(&site, &limits());
    assert!(gate.is_kept());
    let outcome = run(&Client::new(&[]).get(1, "/never"));
    assert_eq!(responses(&outcome.sent)[&1].0, "503");
}

#[test]
fn the_work_of_a_reset_stream_keeps_its_place_until_it_is_done() {
    let limits = Limits { max_streams: 2, ..limits() };
    let refused = Event::Reset(5, ErrorCode::REFUSED_STREAM);
    // The client resets the stream, or provokes a reset of the server.
    for (reset, code) in [
        (Client::default().reset(1), None),
        (Client::default().window(1, MOST_31_BITS), Some(Event::Reset(1, ErrorCode::FLOW_CONTROL_ERROR))),
    ] {
        let gate = Gate::default();
        let site = Site { gate: gate.clone(), ..Site::default() };
        let script = Script::new()
            .sends(&Client::new(&[]).get(1, "/later").0)
            .waits(SECOND)
            .sends(&reset.get(3, "/later").get(5, "/a").0)
            .waits(SECOND)
            .meanwhile(move || gate.keep())
            .waits(SECOND)
            .sends(&Client::default().get(7, "/a").get(9, "/a").0);
        let outcome = script.run(&site, &limits);
        let expected: Vec<_> = code.into_iter().chain([refused.clone()]).collect();
        assert_eq!(codes(&outcome.sent), expected);
        let found = responses(&outcome.sent);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [3, 7, 9], "a reset stream has no response");
    }
    // Abandoned work has the deadline of its response; a connection with such work is not idle.
    let client = Client::new(&[]).get(1, "/never").get(3, "/never");
    let script = Script::new()
        .sends(&client.0)
        .waits(SECOND)
        .sends(&Client::default().reset(1).reset(3).get(5, "/a").0)
        .waits(31 * SECOND)
        .sends(&Client::default().get(7, "/a").0);
    let outcome = script.run(&Site::default(), &limits);
    assert_eq!((codes(&outcome.sent), outcome.parked), (vec![refused], 1));
    assert_eq!(responses(&outcome.sent)[&7].0, "200");
    // Work that has not begun is dropped.
    let client = (0..10).fold(Client::new(&[]), |made, at| made.get(2 * at + 1, "/never").reset(2 * at + 1));
    let outcome = Script::new().sends(&client.get(21, "/a").0).run(&Site::default(), &limits);
    assert_eq!((codes(&outcome.sent), outcome.next), (vec![], Next::Park(BEGIN + limits.idle_timeout)));
}

#[test]
fn requests_and_copied_bodies_of_all_streams_have_a_common_bound() {
    let limits = Limits { max_head: 8192, ..limits() };
    let long = "a".repeat(4000);
    let with = |stream: u32, path: &'static str, client: Client| {
        let fields = [&request("GET", path)[..], &[("a", &*long)]].concat();
        client.headers(stream, END_STREAM, &fields)
    };
    let many = |path: &'static str| (0..40).fold(Client::new(&[]), |made, at| with(2 * at + 1, path, made));
    // Further requests wait for deferred responses.
    let gate = Gate::default();
    let site = Site { gate: gate.clone(), ..Site::default() };
    let script = Script::new().sends(&many("/later").0).waits(SECOND).meanwhile(move || gate.keep());
    let outcome = script.run(&site, &limits);
    assert_eq!(responses(&outcome.sent).len(), 40);
    assert_eq!(codes(&outcome.sent), []);
    let waiting = Site::default();
    Script::new().sends(&many("/later").0).waits(SECOND).resets().run(&waiting, &limits);
    let asked = waiting.asked.lock().expect("no test panics here").len();
    assert!((20..=25).contains(&asked), "{asked} requests of about 3 KiB besides the first KiB hold 64 KiB");
    // Requests that wait for content are refused past the bound, because the content may follow them.
    let uploads = (0..40).fold(Client::new(&[]), |made, at| {
        let fields = [&request("POST", "/echo")[..], &[("a", &*long)]].concat();
        made.headers(2 * at + 1, 0, &fields)
    });
    let outcome = Script::new().sends(&uploads.data(1, END_STREAM, b"abc").0).run(&Site::default(), &limits);
    assert!(codes(&outcome.sent).contains(&Event::Reset(79, ErrorCode::REFUSED_STREAM)));
    assert!(!codes(&outcome.sent).contains(&Event::Reset(1, ErrorCode::REFUSED_STREAM)));
    assert_eq!(responses(&outcome.sent)[&1].1, b"abc");
    // Copied bodies that wait for a window: the request is in the body of this service.
    let limits = Limits { max_target: 4096, ..limits };
    let path = format!("/{}", "b".repeat(3000));
    let zero = [Setting::InitialWindowSize(0)];
    let client = (0..60).fold(Client::new(&zero), |made, at| made.get(2 * at + 1, &path));
    let outcome = Script::new().sends(&client.0).run(&Site::default(), &limits);
    let is_refused = |event: &&Event| matches!(event, Event::Reset(_, ErrorCode::REFUSED_STREAM));
    let refused = codes(&outcome.sent).iter().filter(is_refused).count();
    assert!((20..=30).contains(&refused), "{refused} of 60 bodies of 3 KB are refused");
}

#[test]
fn floods_end_the_connection() {
    let calm = Event::GoAway;
    let client = || Client::new(&[]);
    let repeated =
        |add: &dyn Fn(Client, u32) -> Client| (0..2000).fold(client(), |made, at| add(made, 2 * at + 1));
    let floods: [(&str, Client); 11] = [
        ("rapid resets", repeated(&|made, id| made.get(id, "/never").reset(id))),
        ("provoked resets", repeated(&|made, id| made.headers(id, END_STREAM, &[(":method", "GET")]))),
        ("PING", repeated(&|made, _| made.with(|bytes| write::ping([0; 8], false, bytes)))),
        ("SETTINGS", repeated(&|made, _| made.with(|bytes| write::settings(&[], bytes)))),
        (
            "GOAWAY",
            repeated(&|made, id| match id {
                1 => made.get(1, "/never"),
                _ => made.with(|bytes| write::goaway(0, ErrorCode::NO_ERROR, b"", bytes)),
            }),
        ),
        (
            "requests after GOAWAY",
            repeated(&|made, id| match id {
                1 => made.get(1, "/never").with(|bytes| write::goaway(0, ErrorCode::NO_ERROR, b"", bytes)),
                _ => made.get(id, "/never"),
            }),
        ),
        ("unknown frames", repeated(&|made, _| made.frame(FrameKind(0x40), 0, 0, b""))),
        ("PRIORITY", repeated(&|made, id| made.frame(FrameKind::PRIORITY, 0, id, &[0, 0, 0, 0, 1]))),
        (
            "empty DATA",
            repeated(&|made, id| match id {
                1 => made.headers(1, 0, &request("POST", "/echo")),
                _ => made.data(1, 0, b""),
            }),
        ),
        ("tiny increments", repeated(&|made, _| made.window(0, 1))),
        (
            "CONTINUATION",
            repeated(&|made, id| match id {
                1 => made.frame(FrameKind::HEADERS, 0, 1, b""),
                _ => made.frame(FrameKind::CONTINUATION, 0, 1, b""),
            }),
        ),
    ];
    for (what, client) in floods {
        let outcome = run(&client);
        let last = events(&outcome.sent).pop();
        assert!(
            matches!(last, Some(Event::GoAway(_, ErrorCode::ENHANCE_YOUR_CALM))),
            "{what}: {last:?}, not {:?}",
            calm(0, ErrorCode::ENHANCE_YOUR_CALM)
        );
    }
}

#[test]
fn more_streams_than_allowed_are_refused() {
    let client = (0..102).fold(Client::new(&[]), |made, at| made.get(2 * at + 1, "/never"));
    let outcome = run(&client);
    let refused: Vec<_> =
        codes(&outcome.sent).into_iter().filter(|event| matches!(event, Event::Reset(..))).collect();
    let expected = [201, 203].map(|stream| Event::Reset(stream, ErrorCode::REFUSED_STREAM));
    assert_eq!(refused, expected);
}

#[test]
fn a_draining_server_announces_the_end_and_finishes_its_streams() {
    let gate = Gate::default();
    let site = Site { gate: gate.clone(), ..Site::default() };
    let last = Client::default().with(|bytes| write::ping(*b"farewell", true, bytes)).get(5, "/a");
    let script = Script::new()
        .sends(&Client::new(&[]).get(1, "/later").0)
        .waits(SECOND)
        .drains()
        .sends(&Client::default().get(3, "/a").0)
        .waits(SECOND / 2)
        .sends(&last.0)
        .waits(SECOND)
        .meanwhile(move || gate.keep());
    let outcome = script.run(&site, &limits());
    let goaways: Vec<_> = codes(&outcome.sent);
    let expected = [Event::GoAway(MOST_31_BITS, ErrorCode::NO_ERROR), Event::GoAway(3, ErrorCode::NO_ERROR)];
    assert_eq!(goaways, expected);
    let found = responses(&outcome.sent);
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), [1, 3]);
    assert!(found.values().all(|response| response.2));
}

/// A client that reads responses in front of GOAWAY makes further requests, which it then may not send. libnghttp2 fails
/// them.
#[test]
fn a_draining_server_announces_the_end_in_front_of_its_responses() {
    let script = Script::new()
        .blocking()
        .sends(&Client::new(&[]).get(1, "/a").0)
        .waits(SECOND)
        .drains()
        .sends(&Client::default().get(3, "/a").0)
        .waits(SECOND);
    let all = events(&script.run(&Site::default(), &limits()).sent);
    let at =
        |wanted: &dyn Fn(&Event) -> bool| all.iter().position(wanted).unwrap_or_else(|| panic!("{all:?}"));
    let announced = at(&|event| *event == Event::GoAway(MOST_31_BITS, ErrorCode::NO_ERROR));
    let answered = at(&|event| matches!(event, Event::Headers(3, ..)));
    assert!(announced < answered, "{all:?}");
}

#[test]
fn a_large_file_leaves_in_frames_of_whole_records() {
    let client = Client::new(&[Setting::InitialWindowSize(MOST_31_BITS)]).window(0, 1 << 30).get(1, "/large");
    let outcome = run(&client);
    let all = events(&outcome.sent);
    let lengths: Vec<_> = all
        .iter()
        .filter_map(|event| match event {
            Event::Data(_, content, _) => Some(content.len()),
            _ => None,
        })
        .collect();
    assert!(lengths.iter().take(4).all(|length| *length == 16_375 || *length < 200), "{:?}", &lengths[..5]);
    assert_eq!(lengths.iter().sum::<usize>() as u64, LARGE);
    let body = &responses(&outcome.sent)[&1].1;
    assert!(body.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8));
}

#[test]
fn a_window_that_grows_while_the_output_is_full_is_used() {
    let client = Client::new(&[]).get(1, "/large");
    let more = Client::default().window(0, 1 << 20).window(1, 1 << 20);
    let script = Script::new().sends(&client.0).takes(4096, SECOND / 4).waits(SECOND).sends(&more.0);
    let outcome = script.run(&Site::default(), &limits());
    assert_eq!(responses(&outcome.sent)[&1].1.len() as u64, LARGE);
}

#[test]
fn a_file_that_shrinks_resets_its_stream() {
    let client = Client::new(&[Setting::InitialWindowSize(MOST_31_BITS)])
        .window(0, 1 << 30)
        .get(1, "/large")
        .get(3, "/a");
    let script = Script::new().sends(&client.0).reading_files_with(|_, range, to| {
        to.extend(range.clone().map(|_| b'x'));
        if range.end > LARGE / 2 { Err(IoError::Truncated) } else { Ok(()) }
    });
    let outcome = script.run(&Site::default(), &limits());
    assert_eq!(codes(&outcome.sent), [Event::Reset(1, ErrorCode::INTERNAL_ERROR)]);
    let found = responses(&outcome.sent);
    assert!(!found[&1].2, "the end of a file that is not whole");
    assert_eq!((&*found[&3].0, found[&3].2), ("200", true));
    assert!(matches!(outcome.next, Next::Park(_)));
}

#[test]
fn a_stream_that_waits_for_its_turn_is_not_cancelled() {
    // The urgent stream takes every byte of the window of the connection.
    let urgent = [&request("GET", "/large")[..], &[("priority", "u=0")]].concat();
    let client = Client::new(&[Setting::InitialWindowSize(MOST_31_BITS)])
        .headers(1, END_STREAM, &urgent)
        .get(3, "/large");
    let mut script = Script::new().sends(&client.0);
    for _ in 0..200 {
        script = script.waits(SECOND).sends(&Client::default().window(0, 10_000).0);
    }
    let outcome = script.run(&Site::default(), &Limits { idle_timeout: 300 * SECOND, ..limits() });
    assert_eq!(codes(&outcome.sent), []);
    assert!(responses(&outcome.sent)[&3].1.len() > 500_000);
}

#[test]
fn the_idle_time_begins_after_the_last_byte_of_a_response() {
    let client = Client::new(&[Setting::InitialWindowSize(MOST_31_BITS)]).window(0, 1 << 30).get(1, "/large");
    let outcome = Script::new().sends(&client.0).takes(10_000, SECOND).run(&Site::default(), &limits());
    let Next::Park(by) = outcome.next else { panic!("{:?}", outcome.next) };
    assert!(outcome.took >= 100 * SECOND && by >= BEGIN + 99 * SECOND + limits().idle_timeout, "{by:?}");
    assert_eq!(responses(&outcome.sent)[&1].1.len() as u64, LARGE);
}

#[test]
fn drops_of_a_frame_do_not_keep_a_connection() {
    let mut script = Script::new().sends(&Client::new(&[]).get(1, "/a").0);
    for byte in Client::default().data(1, 0, &[0; 1000]).0 {
        script = script.waits(SECOND).sends([byte]);
    }
    let outcome = script.run(&Site::default(), &limits());
    assert!(outcome.took <= limits().idle_timeout + 2 * limits().head_timeout, "{:?}", outcome.took);
}

#[test]
fn a_path_has_only_bytes_of_a_path() {
    for path in ["/a b", "/a\tb", "/a#b", "/a\u{e4}", "/<", "a"] {
        let outcome = run(&Client::new(&[]).get(1, path));
        let refused = codes(&outcome.sent) == [Event::Reset(1, ErrorCode::PROTOCOL_ERROR)];
        assert!(refused || responses(&outcome.sent)[&1].0 == "400", "{path}: {:?}", events(&outcome.sent));
    }
    let trailers = Client::new(&[]).headers(1, 0, &request("POST", "/echo")).headers(
        1,
        END_STREAM,
        &[("transfer-encoding", "chunked")],
    );
    assert_eq!(codes(&run(&trailers).sent), [Event::Reset(1, ErrorCode::PROTOCOL_ERROR)]);
}
