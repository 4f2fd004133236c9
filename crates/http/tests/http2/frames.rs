//! Wrong frames, and floods of right ones.

use super::*;

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
fn drops_of_a_frame_do_not_keep_a_connection() {
    let mut script = Script::new().sends(&Client::new(&[]).get(1, "/a").0);
    for byte in Client::default().data(1, 0, &[0; 1000]).0 {
        script = script.waits(SECOND).sends([byte]);
    }
    let outcome = script.run(&Site::default(), &limits());
    assert!(outcome.took <= limits().idle_timeout + 2 * limits().head_timeout, "{:?}", outcome.took);
}

#[test]
fn a_stream_that_depends_on_itself_does_not_change_the_header_table() {
    // Its block inserts an entry, to which the next request refers.
    let inserted = [&block(&request("GET", "/a"))[..], &[0x40, 1, b'x', 1, b'y']].concat();
    let itself = [&[0, 0, 0, 1, 15][..], &inserted].concat();
    let indexed = [&block(&request("GET", "/b"))[..], &[0x80 | 62]].concat();
    let client = Client::new(&[])
        .frame(FrameKind::HEADERS, END_HEADERS | END_STREAM | PRIORITY, 1, &itself)
        .frame(FrameKind::HEADERS, END_HEADERS | END_STREAM, 3, &indexed);
    let outcome = run(&client);
    assert_eq!(codes(&outcome.sent), [Event::Reset(1, ErrorCode::PROTOCOL_ERROR)]);
    assert_eq!(responses(&outcome.sent)[&3].0, "200");
}

#[test]
fn a_stream_that_the_client_did_not_open_is_never_reset() {
    let open = || Client::new(&[]).get(5, "/a");
    for client in [
        open().window(4, 1),
        open().data(4, 0, b"a"),
        open().reset(4),
        open().frame(FrameKind::PRIORITY, 0, 9, &[0, 0, 0, 9, 15]),
        open().frame(FrameKind::WINDOW_UPDATE, 0, 9, &[0; 4]),
    ] {
        assert_eq!(codes(&run(&client).sent), [Event::GoAway(5, ErrorCode::PROTOCOL_ERROR)]);
    }
}
