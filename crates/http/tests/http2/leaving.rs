//! The end of a connection, and its deadlines.

use super::*;

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
fn the_idle_time_begins_after_the_last_byte_of_a_response() {
    let client = Client::new(&[Setting::InitialWindowSize(MOST_31_BITS)]).window(0, 1 << 30).get(1, "/large");
    let outcome = Script::new().sends(&client.0).takes(10_000, SECOND).run(&Site::default(), &limits());
    let Next::Park(by) = outcome.next else { panic!("{:?}", outcome.next) };
    assert!(outcome.took >= 100 * SECOND && by >= BEGIN + 99 * SECOND + limits().idle_timeout, "{by:?}");
    assert_eq!(responses(&outcome.sent)[&1].1.len() as u64, LARGE);
}

#[test]
fn a_client_that_ends_its_output_gets_its_response_or_an_error_in_time() {
    for script in [Script::new(), Script::new().blocking()] {
        let outcome =
            script.sends(&Client::new(&[]).get(1, "/never").0).ends().run(&Site::default(), &limits());
        assert_eq!(responses(&outcome.sent)[&1].0, "503");
        assert!(outcome.took < 2 * limits().later_timeout, "{:?}", outcome.took);
    }
}

#[test]
fn a_connection_without_a_request_has_the_time_of_a_head() {
    let outcome = run(&Client::new(&[]));
    assert_eq!(outcome.next, Next::Park(BEGIN + limits().head_timeout));
    assert!(!outcome.session.has_answered(), "a draining server would close it");
    assert!(run(&Client::new(&[]).get(1, "/a")).session.has_answered());
}

#[test]
fn the_last_stream_of_a_goaway_never_increases() {
    let gate = Gate::default();
    let site = Site { gate: gate.clone(), ..Site::default() };
    // The client's GOAWAY fixes the last stream. A wrong frame after a later stream ends the connection.
    let client = Client::new(&[])
        .get(1, "/later")
        .with(|bytes| write::goaway(0, ErrorCode::NO_ERROR, b"", bytes))
        .get(3, "/a")
        .data(0, 0, b"a");
    let outcome = Script::new().sends(&client.0).meanwhile(move || gate.keep()).run(&site, &limits());
    let expected = [Event::GoAway(1, ErrorCode::NO_ERROR), Event::GoAway(1, ErrorCode::PROTOCOL_ERROR)];
    assert_eq!(codes(&outcome.sent), expected);
}

#[test]
fn a_connection_whose_end_is_announced_waits_for_the_answer() {
    let gate = Gate::default();
    let site = Site { gate: gate.clone(), ..Site::default() };
    let script = Script::new()
        .sends(&Client::new(&[]).get(1, "/later").0)
        .waits(SECOND)
        .drains()
        .meanwhile(move || gate.keep())
        .waits(SECOND / 4)
        .sends(&Client::default().with(|bytes| write::ping(*b"farewell", true, bytes)).0);
    let outcome = script.run(&site, &limits());
    assert_eq!((outcome.parked, outcome.next), (0, Next::Linger));
    let expected = [Event::GoAway(MOST_31_BITS, ErrorCode::NO_ERROR), Event::GoAway(1, ErrorCode::NO_ERROR)];
    assert_eq!(codes(&outcome.sent), expected);
}

#[test]
fn frames_of_streams_after_the_last_are_ignored() {
    let gate = Gate::default();
    let site = Site { gate: gate.clone(), ..Site::default() };
    let post = request("POST", "/echo");
    let client = Client::new(&[])
        .get(1, "/later")
        .with(|bytes| write::goaway(0, ErrorCode::NO_ERROR, b"", bytes))
        .headers(3, 0, &post)
        .data(3, 0, &[b'a'; 1000])
        .headers(3, END_STREAM, &[("a", "b")]);
    let script = Script::new().sends(&client.0).waits(SECOND).meanwhile(move || gate.keep()).waits(SECOND);
    let outcome = script.run(&site, &limits());
    assert_eq!(codes(&outcome.sent), [Event::GoAway(1, ErrorCode::NO_ERROR)]);
    assert!(responses(&outcome.sent)[&1].2);
}
