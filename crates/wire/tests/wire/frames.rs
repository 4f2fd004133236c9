//! The rules of each frame, with the scope and the code of RFC 9113 §6.

use tenfold_wire::frame::header::{ACK, END_HEADERS, END_STREAM, PADDED, PRIORITY};
use tenfold_wire::frame::{
    ErrorCode, Frame, FrameError, FrameHeader, FrameKind, Priority, Receiver, Setting, Settings, write,
};

const SERVER: Receiver = Receiver::Server;

/// The checks of a whole frame, as its receiver makes them.
fn receive(
    receiver: Receiver,
    (kind, flags, stream): (FrameKind, u8, u32),
    payload: &[u8],
) -> Result<Frame<'_>, FrameError> {
    let header = FrameHeader { length: payload.len() as u32, kind, flags, stream };
    header.check(receiver, 16_384, None)?;
    let frame = Frame::parse(header, payload, receiver)?;
    if let Frame::Settings(settings) = frame {
        for setting in settings {
            setting?;
        }
    }
    Ok(frame)
}

/// The scope and the code of the error.
fn error(frame: (FrameKind, u8, u32), payload: &[u8]) -> (bool, ErrorCode) {
    let error = receive(SERVER, frame, payload).expect_err("the frame breaks a rule");
    (error.ends_connection(), error.code())
}

const PROTOCOL: (bool, ErrorCode) = (true, ErrorCode::PROTOCOL_ERROR);
const SIZE: (bool, ErrorCode) = (true, ErrorCode::FRAME_SIZE_ERROR);

#[test]
fn a_header_survives_and_the_reserved_bit_is_ignored() {
    let header =
        FrameHeader { length: 0x01_02_03, kind: FrameKind::HEADERS, flags: 0x25, stream: 0x7fff_fffe };
    let mut bytes = header.to_bytes();
    assert_eq!(bytes, [1, 2, 3, 1, 0x25, 0x7f, 0xff, 0xff, 0xfe]);
    bytes[5] |= 0x80;
    assert_eq!(FrameHeader::parse(&bytes), header);
}

#[test]
fn frames_on_the_wrong_stream_end_the_connection() {
    for kind in [FrameKind::DATA, FrameKind::HEADERS, FrameKind::PRIORITY, FrameKind::RST_STREAM] {
        assert_eq!(error((kind, 0, 0), &[0; 5]), PROTOCOL);
    }
    for kind in [FrameKind::SETTINGS, FrameKind::PING, FrameKind::GOAWAY, FrameKind::PRIORITY_UPDATE] {
        assert_eq!(error((kind, 0, 1), &[0; 8]), PROTOCOL);
    }
}

#[test]
fn a_frame_above_the_setting_ends_the_connection() {
    for kind in [FrameKind::DATA, FrameKind::HEADERS, FrameKind(0xbe)] {
        let header = |length| FrameHeader { length, kind, flags: 0, stream: 1 };
        assert_eq!(header(16_384).check(SERVER, 16_384, None), Ok(()));
        let error = header(16_385).check(SERVER, 16_384, None).expect_err("the frame is too large");
        assert_eq!((error.ends_connection(), error.code()), SIZE);
    }
}

#[test]
fn only_continuation_of_its_stream_follows_an_open_block() {
    let check = |kind, stream, open| {
        let header = FrameHeader { length: 0, kind, flags: 0, stream };
        header.check(SERVER, 16_384, open).map_err(|error| (error.ends_connection(), error.code()))
    };
    assert_eq!(check(FrameKind::CONTINUATION, 1, Some(1)), Ok(()));
    assert_eq!(check(FrameKind::CONTINUATION, 3, Some(1)), Err(PROTOCOL));
    assert_eq!(check(FrameKind::CONTINUATION, 1, None), Err(PROTOCOL));
    assert_eq!(check(FrameKind::CONTINUATION, 0, None), Err(PROTOCOL));
    for kind in [FrameKind::HEADERS, FrameKind::PING, FrameKind(0xbe)] {
        assert_eq!(check(kind, 1, Some(1)), Err(PROTOCOL));
    }
}

#[test]
fn padding_is_removed_and_shorter_than_the_payload() {
    let data = |payload| receive(SERVER, (FrameKind::DATA, PADDED | END_STREAM, 1), payload);
    let content = |content| Ok(Frame::Data { content, end_stream: true });
    assert_eq!(data(&[2, b'a', b'b', 0, 0]), content(b"ab"));
    assert_eq!(data(&[4, 0, 0, 0, 0]), content(b""));
    assert_eq!(data(&[0]), content(b""));
    for kind in [FrameKind::DATA, FrameKind::HEADERS] {
        assert_eq!(error((kind, PADDED, 1), &[5, 0, 0, 0, 0]), PROTOCOL);
        assert_eq!(error((kind, PADDED, 1), &[1]), PROTOCOL);
        assert_eq!(error((kind, PADDED, 1), &[]), SIZE);
    }
    let header = FrameHeader { length: 1000, kind: FrameKind::DATA, flags: PADDED, stream: 1 };
    assert_eq!(header.content(Some(9)), Ok(1..991), "only the first byte of the payload is needed");
}

#[test]
fn headers_have_a_fragment_and_a_priority() {
    let payload = [1, 0x80, 0, 0, 3, 219, 0x82, 0];
    let flags = PADDED | PRIORITY | END_HEADERS;
    let priority = Some(Priority { is_exclusive: true, dependency: 3, weight: 220 });
    let headers = Frame::Headers { fragment: &[0x82], priority, end_stream: false, end_headers: true };
    assert_eq!(receive(SERVER, (FrameKind::HEADERS, flags, 1), &payload), Ok(headers));
    assert_eq!(error((FrameKind::HEADERS, PRIORITY, 1), &[0; 4]), SIZE);
    assert_eq!(error((FrameKind::HEADERS, PRIORITY | PADDED, 1), &[0; 5]), SIZE);
    assert_eq!(error((FrameKind::HEADERS, PRIORITY | PADDED, 1), &[1, 0, 0, 0, 0, 0]), PROTOCOL);
}

#[test]
fn frames_of_fixed_size_have_it() {
    assert_eq!(error((FrameKind::PRIORITY, 0, 1), &[0; 4]), (false, ErrorCode::FRAME_SIZE_ERROR));
    assert_eq!(error((FrameKind::PRIORITY, 0, 1), &[0; 6]), (false, ErrorCode::FRAME_SIZE_ERROR));
    assert_eq!(error((FrameKind::RST_STREAM, 0, 1), &[0; 3]), SIZE);
    assert_eq!(error((FrameKind::PING, 0, 0), &[0; 7]), SIZE);
    assert_eq!(error((FrameKind::GOAWAY, 0, 0), &[0; 7]), SIZE);
    assert_eq!(error((FrameKind::WINDOW_UPDATE, 0, 1), &[0; 5]), SIZE);
    assert_eq!(error((FrameKind::SETTINGS, 0, 0), &[0; 7]), SIZE);
    assert_eq!(error((FrameKind::SETTINGS, ACK, 0), &[0; 6]), SIZE);
    assert_eq!(error((FrameKind::PRIORITY_UPDATE, 0, 0), &[0; 3]), SIZE);
}

#[test]
fn an_increment_of_zero_ends_the_stream_or_the_connection() {
    let increment = |stream| error((FrameKind::WINDOW_UPDATE, 0, stream), &[0x80, 0, 0, 0]);
    assert_eq!(increment(1), (false, ErrorCode::PROTOCOL_ERROR));
    assert_eq!(increment(0), PROTOCOL);
}

#[test]
fn push_and_frames_of_the_other_side_are_refused() {
    assert_eq!(error((FrameKind::PUSH_PROMISE, 0, 1), &[0; 4]), PROTOCOL);
    assert_eq!(error((FrameKind::PRIORITY_UPDATE, 0, 0), &[0x80, 0, 0, 0]), PROTOCOL);
    let update = (FrameKind::PRIORITY_UPDATE, 0, 0);
    let payload = b"\0\0\0\x05u=1, i";
    assert_eq!(receive(SERVER, update, payload), Ok(Frame::PriorityUpdate { stream: 5, value: b"u=1, i" }));
    assert!(receive(Receiver::Client, update, payload).is_err());
}

#[test]
fn values_of_settings_are_checked() {
    let parse = |id, value| Setting::parse(SERVER, id, value).map_err(|error| error.code());
    assert_eq!(parse(1, u32::MAX), Ok(Setting::HeaderTableSize(u32::MAX)));
    assert_eq!(parse(2, 1), Ok(Setting::EnablePush(true)));
    assert_eq!(parse(2, 2), Err(ErrorCode::PROTOCOL_ERROR));
    assert!(Setting::parse(Receiver::Client, 2, 1).is_err());
    assert_eq!(parse(4, 1 << 31), Err(ErrorCode::FLOW_CONTROL_ERROR));
    assert_eq!(parse(4, (1 << 31) - 1), Ok(Setting::InitialWindowSize((1 << 31) - 1)));
    assert_eq!(parse(5, 16_383), Err(ErrorCode::PROTOCOL_ERROR));
    assert_eq!(parse(5, 1 << 24), Err(ErrorCode::PROTOCOL_ERROR));
    assert_eq!(parse(5, 16_384), Ok(Setting::MaxFrameSize(16_384)));
    assert_eq!(parse(8, 2), Err(ErrorCode::PROTOCOL_ERROR));
    assert_eq!(parse(9, 2), Err(ErrorCode::PROTOCOL_ERROR));
    assert_eq!(parse(0x7777, 5), Ok(Setting::Unknown(0x7777, 5)));
}

#[test]
fn settings_are_applied_in_order() {
    let sent = [
        Setting::MaxConcurrentStreams(100),
        Setting::HeaderTableSize(0),
        Setting::HeaderTableSize(8192),
        Setting::MaxHeaderListSize(16_384),
        Setting::NoRfc7540Priorities(true),
        Setting::Unknown(0xffff, 1),
    ];
    let mut bytes = Vec::new();
    write::settings(&sent, &mut bytes);
    let (header, payload) = bytes.split_first_chunk().expect("a header");
    let frame = Frame::parse(FrameHeader::parse(header), payload, SERVER);
    let Ok(Frame::Settings(received)) = frame else { panic!("{frame:?}") };
    assert_eq!(received.collect::<Result<Vec<_>, _>>(), Ok(sent.to_vec()));
    let mut settings = Settings::default();
    received.flatten().for_each(|setting| settings.apply(setting));
    let expected = Settings {
        header_table_size: 8192,
        max_concurrent_streams: 100,
        max_header_list_size: 16_384,
        no_rfc7540_priorities: true,
        ..Settings::INITIAL
    };
    assert_eq!(settings, expected);
}

#[test]
fn codes_have_names() {
    assert_eq!(ErrorCode::HTTP_1_1_REQUIRED.name(), "HTTP_1_1_REQUIRED");
    assert_eq!(ErrorCode::ENHANCE_YOUR_CALM.to_string(), "ENHANCE_YOUR_CALM");
    assert_eq!(ErrorCode(14).name(), "UNKNOWN");
}

#[test]
fn a_long_block_is_divided_into_headers_and_continuation() {
    for (length, sizes) in [
        (0, &[0][..]),
        (10, &[10]),
        (100, &[100]),
        (101, &[100, 1]),
        (200, &[100, 100]),
        (250, &[100, 100, 50]),
    ] {
        let block: Vec<u8> = (0..length).map(|at| at as u8).collect();
        let mut out = b"before".to_vec();
        let open = write::OpenHeaders::begin(7, true, &mut out);
        out.extend(&block);
        open.finish(100, &mut out);
        let mut rest = &out[6..];
        let mut joined = Vec::new();
        for (number, &size) in sizes.iter().enumerate() {
            let (header, payload) = rest.split_first_chunk().expect("a header");
            let header = FrameHeader::parse(header);
            assert_eq!((header.length, header.stream), (size, 7));
            assert_eq!(header.has(END_HEADERS), number + 1 == sizes.len());
            let kind = if number == 0 { FrameKind::HEADERS } else { FrameKind::CONTINUATION };
            assert_eq!((header.kind, header.has(END_STREAM)), (kind, number == 0));
            let (part, after) = payload.split_at(size as usize);
            joined.extend_from_slice(part);
            rest = after;
        }
        assert!(rest.is_empty());
        assert_eq!(joined, block);
    }
}
