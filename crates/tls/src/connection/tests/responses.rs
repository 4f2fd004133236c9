//! Responses from memory and from files: order, bounds, incomplete responses and observers.

use std::fs::File;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};
use tenfold_http::script::{BEGIN, Outcome, Script};
use tenfold_http::{
    Answer, Connection, Finish, Instant, Limits, Next, OpenFile, Out, Part, Request, ResponseWriter,
    SendReport, Service, clock,
};

use super::{BODY, Fixture, PatternFiles, TestClient, pattern, request};
use crate::connection::unbuffered::RECORD_BYTES;

/// The lengths of `/shared` and `/file`.
const SHARED: usize = 300_000;
const FILE: u64 = 200_000;

/// The reports to observers, with their times.
type Reports = Arc<Mutex<Vec<(Instant, SendReport)>>>;

struct Parts {
    shared: Arc<[u8]>,
    file: Arc<OpenFile>,
    reports: Reports,
}

impl Parts {
    fn new() -> Parts {
        let file = File::open("/dev/null").expect("/dev/null can be opened");
        let (shared, file) = (pattern(0..SHARED as u64).into(), Arc::new(OpenFile::new(file, FILE)));
        Parts { shared, file, reports: Reports::default() }
    }

    fn reports(&self) -> Vec<(Instant, SendReport)> {
        self.reports.lock().expect("no panic").clone()
    }
}

impl Service for Parts {
    fn answer(&self, request: &Request<'_>, _: &Connection, response: &mut ResponseWriter<'_>) -> Answer {
        match request.target.path {
            "/shared" => {
                response.head(200).content_length(SHARED as u64);
                response.push(Part::Shared(self.shared.clone(), 0..SHARED));
            }
            "/16384" | "/65536" => {
                let length = request.target.path[1..].parse().expect("a number");
                response.head(200).content_length(length as u64);
                response.push(Part::Shared(self.shared[..length].into(), 0..length));
            }
            "/pieces" => {
                response.head(200).content_length(20 * (9 + 100));
                for at in (0..20 * (9 + 100)).step_by(9 + 100) {
                    response.body(&self.shared[at..at + 9]);
                    response.push(Part::Shared(self.shared.clone(), at + 9..at + 9 + 100));
                }
            }
            "/parts" => {
                response.head(200).content_length(70_020);
                response.push(Part::File(self.file.clone(), 0..70_000));
                response.body(&self.shared[..10]);
                response.push(Part::File(self.file.clone(), 10..20));
            }
            "/file" => {
                response.head(200).content_length(FILE);
                response.push(Part::File(self.file.clone(), 0..FILE));
            }
            _ => {
                response.head(200).content_length(BODY.len() as u64);
                response.body(BODY);
            }
        }
        let reports = self.reports.clone();
        response
            .observe(Box::new(move |report| reports.lock().expect("no panic").push((clock::now(), report))));
        Answer::Done
    }
}

/// Returns a script in which `client` sends these requests after its handshake.
fn asking(client: &TestClient, requests: &[&str]) -> Script {
    let requests: Vec<u8> = requests.iter().flat_map(|target| request(target)).collect();
    Script::new().sends(client.wire()).responds(client.answers(0, &requests))
}

/// Runs `script`, and lets `client` read the whole output.
fn play(fixture: &Fixture, parts: &Parts, client: &TestClient, script: Script) -> Outcome {
    let (outcome, _) = fixture.play_with(parts, script);
    client.read(&outcome.sent);
    outcome
}

#[test]
fn responses_keep_their_order_whichever_operation_waits() {
    for version in [&TLS13, &TLS12] {
        let (fixture, parts) = (Fixture::new(version), Parts::new());
        let script = |client: &TestClient| {
            // A TLS 1.2 client sends its requests after another round trip.
            let script = asking(client, &["/", "/file", "/shared", "/"]).waits(Duration::from_secs(1));
            script.responds(client.answers(9, b"")).takes(20_000, Duration::ZERO)
        };
        let client = fixture.client();
        let outcome = play(&fixture, &parts, &client, script(&client));
        let whole = client.plaintext();
        assert_eq!((client.small_answers(), client.error()), (2, None));
        assert!(whole.len() > SHARED + FILE as usize, "{} bytes", whole.len());
        for at in 0..outcome.operations {
            let client = fixture.client();
            play(&fixture, &parts, &client, script(&client).pausing_at(at));
            assert!(client.plaintext() == whole, "a pause at operation {at}");
        }
    }
}

/// Lets a client of a connection whose records have grown send `requests` together. Returns the lengths of the
/// content of the records of all responses, and the number of calls for them.
fn records_of(version: &'static SupportedProtocolVersion, requests: &[&str]) -> (Vec<usize>, usize) {
    let (parts, begin) = (Parts::new(), Arc::new(Mutex::new(0)));
    let play = |requests: &[&str]| {
        // Each client makes a full handshake.
        let fixture = Fixture::new(version);
        let (client, begin) = (fixture.client(), begin.clone());
        let requests: Vec<u8> = requests.iter().flat_map(|target| request(target)).collect();
        let ask = client.answers(0, &requests);
        let second = Duration::from_secs(1);
        let script = asking(&client, &["/shared"]).waits(second).responds(client.answers(0, b""));
        let script = script.waits(second).responds(move |sent| {
            *begin.lock().expect("no panic") = sent.len();
            ask(sent)
        });
        let outcome = play(&fixture, &parts, &client, script);
        assert_eq!(client.error(), None);
        outcome
    };
    let (before, outcome) = (play(&[]).flushes, play(requests));
    assert!(parts.reports().iter().all(|(_, report)| report.unsent == 0));
    let mut sent = &outcome.sent[*begin.lock().expect("no panic")..];
    let expansion = if *version == TLS13 { 17 } else { 24 };
    let mut lengths = Vec::new();
    while let [23, 3, 3, high, low, rest @ ..] = sent {
        let sealed = usize::from(u16::from_be_bytes([*high, *low]));
        lengths.push(sealed - expansion);
        sent = &rest[sealed..];
    }
    (lengths, outcome.flushes - before)
}

#[test]
fn a_record_is_filled_from_several_pieces() {
    for version in [&TLS13, &TLS12] {
        for (requests, full, calls) in [
            (&["/"][..], 0, 1),
            (&["/16384"], 1, 1),
            (&["/65536"], 4, 1),
            (&["/pieces"], 0, 1),
            (&["/", "/16384", "/"], 1, 1),
            (&["/"; 16], 0, 1),
            (&["/parts"], 4, 2),
            (&["/file"], 12, 4),
            (&["/shared"], 18, 5),
        ] {
            let (lengths, flushes) = records_of(version, requests);
            assert_eq!((lengths.len(), flushes), (full + 1, calls), "{requests:?}: {lengths:?}");
            assert!(lengths[..full].iter().all(|length| *length == 16_384), "{requests:?}: {lengths:?}");
        }
    }
}

#[test]
fn every_response_in_a_lost_record_is_reported() {
    let fixture = Fixture::new(&TLS13);
    let ask = |gone_after| {
        let (client, parts) = (fixture.client(), Parts::new());
        let script = asking(&client, &["/"; 5]).takes(1000, Duration::ZERO).gone_after(gone_after);
        let outcome = play(&fixture, &parts, &client, script);
        let unsent: Vec<_> = parts.reports().iter().map(|(_, report)| report.unsent).collect();
        (outcome.sent.len(), client.plaintext().len() as u64, unsent)
    };
    // All handshakes after the first resume its session and have the same length.
    ask(usize::MAX);
    let (whole, responses, unsent) = ask(usize::MAX);
    assert_eq!(unsent, [0; 5]);
    for missing in [10, 100, 300] {
        let (_, received, unsent) = ask(whole - missing);
        assert_eq!((received, unsent.len()), (0, 5), "{missing} bytes are missing");
        assert!(unsent[0] > 0 && unsent[1..].iter().all(|count| *count > responses / 5), "{unsent:?}");
    }
}

#[test]
fn a_record_holds_more_requests_than_the_protocol_receives_at_once() {
    let limits = Limits { max_head: 200, ..Limits::default() };
    let fixture = Fixture { limits, ..Fixture::new(&TLS13) };
    let client = fixture.client();
    let many = 16_384 / request("/").len();
    play(&fixture, &Parts::new(), &client, asking(&client, &vec!["/"; many]));
    assert_eq!(client.small_answers(), many);
}

#[test]
fn a_record_that_is_cut_off_gets_no_answer() {
    let fixture = Fixture::new(&TLS13);
    for missing in [1, 2, 16, 17, 18, 40, 50] {
        let cut = fixture.client();
        let script = cut.handshakes().responds(cut.asks_without(missing)).ends();
        let outcome = play(&fixture, &Parts::new(), &cut, script);
        assert_eq!((cut.small_answers(), outcome.next), (0, Next::Linger), "{missing} bytes are missing");
    }
}

#[test]
fn a_closing_record_in_mid_response_ends_the_connection_after_it() {
    let fixture = Fixture::new(&TLS13);
    for (target, length) in [("/shared", SHARED as u64), ("/file", FILE)] {
        let client = fixture.client();
        let script = asking(&client, &[target]).takes(10_000, Duration::from_millis(100));
        let script = script.waits(Duration::from_secs(1)).responds(client.closes());
        let outcome = play(&fixture, &Parts::new(), &client, script);
        assert!(client.plaintext().ends_with(&pattern(0..length)), "{target} is incomplete or wrong");
        assert_eq!((client.closed(), outcome.next), (true, Next::Close), "{target}");
    }
}

#[test]
fn no_closing_record_follows_a_response_that_was_cut_short() {
    let fixture = Fixture { files: PatternFiles { bytes: FILE - 90_000 }, ..Fixture::new(&TLS13) };
    let (client, parts) = (fixture.client(), Parts::new());
    let outcome = play(&fixture, &parts, &client, asking(&client, &["/file"]));
    assert!(client.plaintext().len() < FILE as usize);
    assert_eq!((client.closed(), outcome.next, outcome.finish), (false, Next::Close, None::<Finish>));
    let reports = parts.reports();
    assert!(matches!(reports[..], [(_, SendReport { unsent: 90_000.., .. })]), "{reports:?}");
}

#[test]
fn an_observer_is_called_when_the_bytes_have_left() {
    let fixture = Fixture::new(&TLS13);
    for (target, step) in [("/", 300), ("/shared", 20_000), ("/file", 20_000)] {
        let (client, parts) = (fixture.client(), Parts::new());
        // The handshake is sent at the same rate.
        let script = Script::new().sends(client.wire()).responds(client.answers(0, b""));
        let script = script.waits(Duration::from_secs(10)).responds(client.answers(0, &request(target)));
        let outcome = play(&fixture, &parts, &client, script.takes(step, Duration::from_secs(1)));
        let reports = parts.reports();
        let [(at, SendReport { unsent: 0, .. })] = reports[..] else { panic!("{target}: {reports:?}") };
        // The last byte is sent at the end of the script.
        assert_eq!(at.since(BEGIN), outcome.took, "{target}");
    }
}

#[test]
fn an_observer_learns_the_number_of_unsent_bytes() {
    let fixture = Fixture::new(&TLS13);
    for (target, length) in [("/shared", SHARED as u64), ("/file", FILE)] {
        for gone in [5000, 50_000, 100_000, 150_000] {
            let (client, parts) = (fixture.client(), Parts::new());
            let script = asking(&client, &[target]).takes(9_000, Duration::ZERO).gone_after(gone);
            play(&fixture, &parts, &client, script);
            let reports = parts.reports();
            let [(_, SendReport { unsent, .. })] = reports[..] else { panic!("{reports:?}") };
            // The client cannot decrypt a record that was sent only in part. The head, and 22 bytes of each
            // of twenty records, count as well.
            let missing = length - (client.plaintext().len() as u64).min(length);
            assert!(
                unsent <= missing + 600 && unsent + RECORD_BYTES as u64 >= missing,
                "{target}: {unsent} unsent, {missing} missing"
            );
        }
    }
}

#[test]
fn sealed_output_is_bounded() {
    let fixture = Fixture::new(&TLS13);
    let client = fixture.client();
    let script = asking(&client, &["/shared", "/file"]).takes(5000, Duration::ZERO);
    let outcome = play(&fixture, &Parts::new(), &client, script);
    let bound = Out::MEMORY_BOUND + RECORD_BYTES;
    assert!(outcome.most_to_send <= bound as u64, "{} bytes waited", outcome.most_to_send);
}
