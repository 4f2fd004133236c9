//! Requests and their responses.

use super::*;

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
fn a_blocking_driver_sends_and_receives_between_deferred_responses() {
    let client = Client::new(&[]).get(1, "/slow").get(3, "/slow").get(5, "/slow");
    let script = Script::new().blocking().sends(&client.0).waits(SECOND / 2);
    let outcome = script.sends(&Client::default().reset(5).0).run(&Site::default(), &limits());
    assert_eq!(responses(&outcome.sent).keys().copied().collect::<Vec<_>>(), [1, 3]);
    // SETTINGS come before these responses, and GOAWAY after the idle time.
    assert_eq!((outcome.took, outcome.flushes), (2 * SECOND + limits().idle_timeout, 4));
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
