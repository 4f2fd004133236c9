//! The bounds that all streams of a connection share.

use std::fs::File;

use tenfold_http::OpenFile;

use super::*;

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
fn a_deferred_response_counts_as_a_file_if_the_process_has_many() {
    let file = File::open("/dev/null").expect("/dev/null opens");
    let _open = OpenFile::new(file, 0);
    for (open_files, asked) in [(0, 1), (usize::MAX, 3)] {
        let limits = Limits { open_files, ..limits() };
        let client = Client::new(&[]).get(1, "/later").get(3, "/later").get(5, "/a");
        let waiting = Site::default();
        Script::new().sends(&client.0).waits(SECOND).resets().run(&waiting, &limits);
        assert_eq!(waiting.asked.lock().expect("no test panics here").len(), asked);
        let gate = Gate::default();
        let site = Site { gate: gate.clone(), ..Site::default() };
        let script = Script::new().sends(&client.0).waits(SECOND).meanwhile(move || gate.keep());
        assert_eq!(responses(&script.run(&site, &limits).sent).len(), 3);
    }
}

#[test]
fn deferred_responses_have_a_common_bound() {
    let run = |settings: &[Setting], end: Client| {
        let gate = Gate::default();
        let site = Site { gate: gate.clone(), ..Site::default() };
        let client = (0..20).fold(Client::new(settings), |made, at| made.get(2 * at + 1, "/copied"));
        let script =
            Script::new().sends(&client.0).waits(SECOND).meanwhile(move || gate.keep()).waits(SECOND);
        let outcome = script.sends(&end.0).run(&site, &limits());
        let found = responses(&outcome.sent);
        let is_calm = |event: &&Event| matches!(event, Event::Reset(_, ErrorCode::ENHANCE_YOUR_CALM));
        let whole = found.values().filter(|response| response.1.len() == COPIED).count();
        (found.len(), whole, codes(&outcome.sent).iter().filter(is_calm).count())
    };
    let closed = [Setting::InitialWindowSize(0)];
    // 256 KiB besides the largest and a KiB of each.
    assert_eq!(run(&closed, Client::default()), (10, 0, 10));
    let open = [Setting::InitialWindowSize(MOST_31_BITS)];
    assert_eq!(run(&open, Client::default().window(0, 1 << 20)), (10, 10, 10));
}

#[test]
fn different_shared_content_has_a_bound_in_the_process() {
    let limits = Limits { max_streams: 2000, ..limits() };
    let run = |path: &str, begin: Client| {
        let client = (0..1150).fold(begin, |made, at| made.get(2 * at + 1, path));
        let outcome = Script::new().sends(&client.0).run(&Site::default(), &limits);
        let is_refused = |event: &&Event| matches!(event, Event::Reset(_, ErrorCode::REFUSED_STREAM));
        (responses(&outcome.sent).len(), codes(&outcome.sent).iter().filter(is_refused).count())
    };
    let closed = || Client::new(&[Setting::InitialWindowSize(0)]);
    let (found, refused) = run("/image", closed());
    assert!(
        (1024..1024 + 40).contains(&found) && found + refused == 1150,
        "{found} of 64 KiB, {refused} refused"
    );
    assert_eq!(run("/same", closed()), (1150, 0));
    // Bodies that leave are not counted.
    let open = Client::new(&[Setting::InitialWindowSize(MOST_31_BITS)]).window(0, 1 << 30);
    assert_eq!(run("/image", open), (1150, 0));
}

#[test]
fn content_in_unsent_bodies_counts_with_the_content_of_later_requests() {
    let limits = Limits { max_body: 2000, ..limits() };
    let post = |client: Client, stream: u32| {
        client.headers(stream, 0, &request("POST", "/echo")).data(stream, END_STREAM, &[b'a'; 1500])
    };
    let zero = Client::new(&[Setting::InitialWindowSize(0)]);
    let client = post(post(zero, 1), 3).window(1, 1500).get(5, "/a");
    let script = Script::new().sends(&client.window(5, 1000).0).waits(SECOND);
    let outcome = script.sends(&post(Client::default(), 7).window(7, 1500).0).run(&Site::default(), &limits);
    let statuses: Vec<_> = responses(&outcome.sent).into_values().map(|response| response.0).collect();
    assert_eq!(statuses, ["200", "413", "200", "200"]);
}

#[test]
fn a_connection_opens_one_file_at_a_time_if_the_process_has_many() {
    let large = |client: Client| (0..10).fold(client, |made, at| made.get(2 * at + 1, "/large"));
    let run = |settings: &[Setting], open_files| {
        let limits = Limits { open_files, ..limits() };
        let client = large(Client::new(settings)).get(21, "/a");
        let outcome = Script::new().sends(&client.0).run(&Site::default(), &limits);
        let found = responses(&outcome.sent).values().filter(|response| response.0 == "200").count();
        let is_refused = |event: &&Event| matches!(event, Event::Reset(_, ErrorCode::REFUSED_STREAM));
        (found, codes(&outcome.sent).iter().filter(is_refused).count())
    };
    let closed = [Setting::InitialWindowSize(0)];
    assert_eq!(run(&closed, 0), (1, 10));
    assert_eq!(run(&closed, usize::MAX), (11, 0));
    // The first fills the window of the connection.
    assert_eq!(run(&[], 0), (1, 10));
    assert_eq!(run(&[], usize::MAX), (11, 0));
    // A body that needs no frame of the client delays further requests instead.
    let limits = Limits { open_files: 0, ..limits() };
    let client = large(Client::new(&[Setting::InitialWindowSize(MOST_31_BITS)]).window(0, 1 << 30));
    let outcome = Script::new().sends(&client.0).run(&Site::default(), &limits);
    assert_eq!(codes(&outcome.sent), []);
    let found = responses(&outcome.sent);
    assert!(found.len() == 10 && found.values().all(|response| response.1.len() as u64 == LARGE));
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
fn content_under_way_is_ignored_after_a_reset_also_if_the_connection_was_parked() {
    // The response does not need the content, so the client is told to stop.
    let refused = |client: Client, stream| client.headers(stream, 0, &request("POST", "/a"));
    let mut script = Script::new().sends(&refused(Client::new(&[]), 1).0);
    let late = Client::default().data(1, 0, &[b'a'; 1000]).headers(1, END_STREAM, &[("a", "b")]);
    script = script.waits(SECOND / 10).sends(&late.0).waits(SECOND / 10);
    // More resets than a short list holds.
    let many = (0..30).fold(Client::default(), |client, index| refused(client, 3 + 2 * index));
    let late = (0..30).fold(many, |client, index| client.data(3 + 2 * index, 0, &[b'a'; 1000]));
    let outcome = script.sends(&late.0).run(&Site::default(), &limits());
    assert!(outcome.parked > 0);
    assert_eq!(responses(&outcome.sent).len(), 31);
    let errors: Vec<_> = codes(&outcome.sent)
        .into_iter()
        .filter(|event| !matches!(event, Event::Reset(_, ErrorCode::NO_ERROR)))
        .collect();
    assert_eq!(errors, []);
}

#[test]
fn a_frame_that_widens_many_windows_a_little_is_charged_for_each() {
    let mut client = Client::new(&[Setting::InitialWindowSize(0)]).window(0, 1 << 20);
    for index in 0..50 {
        client = client.get(1 + 2 * index, "/large");
    }
    for size in 1..=100 {
        client = client.with(|bytes| write::settings(&[Setting::InitialWindowSize(size)], bytes));
    }
    assert!(matches!(codes(&run(&client).sent)[..], [Event::GoAway(_, ErrorCode::ENHANCE_YOUR_CALM)]));
}

#[test]
fn a_priority_of_a_stream_that_never_opens_keeps_no_memory_in_use() {
    let client = Client::new(&[]).get(1, "/a").with(|bytes| write::priority_update(3, b"u=1", bytes));
    let outcome = run(&client);
    assert_eq!(outcome.next, Next::Park(BEGIN + limits().idle_timeout));
    assert_eq!(outcome.took, Duration::ZERO);
}
