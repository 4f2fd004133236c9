//! Windows, priorities and files.

use super::*;

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
    // A value that is not a dictionary states nothing, and the lines of a field are a list.
    let client = Client::new(&settings).with(|bytes| write::priority_update(3, b"?", bytes)).get(1, "/large");
    assert_eq!(order(client.headers(3, END_STREAM, &urgent("u=1"))), [3, 1]);
    let lines = [&urgent("u=1")[..], &[("priority", "i")]].concat();
    assert_eq!(order(Client::new(&settings).get(1, "/large").headers(3, END_STREAM, &lines)), [3, 1]);
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
fn a_download_does_not_stop_the_deadlines_of_other_streams() {
    let client = Client::new(&[Setting::InitialWindowSize(MOST_31_BITS)])
        .window(0, 1 << 30)
        .get(1, "/never")
        .get(3, "/large");
    // Sends take time, but none of them waits.
    let script = Script::new().sends(&client.0).reading_files_with(|_, range, to| {
        clock::set(clock::now() + SECOND, clock::unix_seconds() + 1);
        to.extend(range.map(|_| b'x'));
        Ok(())
    });
    let outcome = script.takes(10_000, Duration::ZERO).blocking().run(&Site::default(), &limits());
    let all = events(&outcome.sent);
    let refused = all.iter().position(|event| matches!(event, Event::Headers(1, ..))).expect("a response");
    assert!(all[refused..].iter().any(|event| matches!(event, Event::Data(3, ..))), "not at the end");
    assert_eq!(responses(&outcome.sent)[&1].0, "503");
}
