//! The layer under HTTP, played from scripts: every split of the bytes, and every rule that a peer can break.

use std::fs::File;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tenfold_http::script::{BEGIN, Outcome, Script};
use tenfold_http::{
    Answer, Connection, Finish, Instant, Io, Limits, Next, OpenFile, Out, Part, Request, ResponseWriter,
    Scheme, SendReport, Service, Session, clock, serve_connection,
};

use super::record::{Alert, CONTENT_BYTES, HEADER_BYTES, RECORD_BYTES, RecordKind};
use super::session::EMPTY_RECORDS;
use super::{Framed, FramedClient};
use crate::layer::{LayerState, Layered};
use crate::plan::choice::{Engine, Sender};
use crate::plan::{Bounds, Plan};
use crate::protocol::Protocol;

const SMALL: &[u8] = b"a small body\n";
const SHARED: usize = 300_000;

/// The reports to observers, with their times.
type Told = Arc<Mutex<Vec<(Instant, SendReport)>>>;

#[derive(Clone)]
struct Http {
    limits: Limits,
    shared: Arc<[u8]>,
    file: Arc<OpenFile>,
    told: Told,
}

impl Http {
    /// A server, and a file with this content.
    fn new(content: &[u8]) -> Http {
        let path = std::env::temp_dir().join(format!(
            "tenfold-framed-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::write(&path, content).expect("a temporary file can be made");
        let file = File::open(&path).expect("it was made");
        std::fs::remove_file(&path).expect("it was made");
        let file = Arc::new(OpenFile::new(file, content.len() as u64));
        Http { limits: Limits::default(), shared: body(SHARED).into(), file, told: Told::default() }
    }

    /// Plays `script` through the layer.
    fn play(&self, script: Script) -> Outcome {
        // The plan of a blocking engine: files are read in place, and the clock of a script waits for no thread.
        let plan = Plan::new(Engine::Naive, None, None, Sender::Auto, None, Bounds::default())
            .expect("a legal plan");
        let (protocol, mut state) = (Layered::new(Framed, self.clone(), &plan), LayerState::default());
        script.drive(async |io| protocol.serve(io, &mut state).await)
    }
}

impl Protocol for Http {
    type State = Session;

    async fn serve<I: Io>(&self, io: &mut I, state: &mut Session) -> Next {
        serve_connection(io, self, &self.limits, state).await
    }

    async fn serve_anywhere<I: Io + Send>(&self, io: &mut I, state: &mut Session) -> Next {
        serve_connection(io, self, &self.limits, state).await
    }

    fn first_bytes_by(&self) -> Instant {
        clock::now() + self.limits.head_timeout
    }
}

impl Service for Http {
    fn answer(&self, request: &Request<'_>, facts: &Connection, response: &mut ResponseWriter<'_>) -> Answer {
        assert_eq!(facts.scheme, Scheme::Https);
        assert_eq!(facts.tls.as_ref().map(|tls| (tls.version, tls.resumed)), Some(("framed", false)));
        match request.target.path {
            "/shared" => {
                response.head(200).content_length(SHARED as u64);
                response.push(Part::Shared(self.shared.clone(), 0..SHARED));
            }
            "/file" => {
                response.head(200).content_length(self.file.size);
                response.push(Part::File(self.file.clone(), 0..self.file.size));
            }
            _ => {
                response.head(200).content_length(SMALL.len() as u64);
                response.body(SMALL);
            }
        }
        let told = self.told.clone();
        let observer = move |report| told.lock().expect("no panic").push((clock::now(), report));
        response.observe(Box::new(observer));
        Answer::Done
    }
}

fn body(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

fn request(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
}

/// Opens all that a server sent: the plaintext without dates.
fn opened(client: &mut FramedClient, sent: &[u8]) -> Vec<u8> {
    let mut plaintext = Vec::new();
    client.open(sent, &mut plaintext).expect("records of the server");
    let text = plaintext.split_inclusive(|&byte| byte == b'\n');
    text.filter(|line| !line.starts_with(b"Date: ")).flatten().copied().collect()
}

/// The bodies of so many answers to `/`, in plaintext.
fn small_answers(plaintext: &[u8]) -> usize {
    plaintext.windows(SMALL.len()).filter(|window| *window == SMALL).count()
}

#[test]
fn bytes_may_be_split_anywhere() {
    let http = Http::new(b"");
    let mut client = FramedClient::new(7);
    let mut wire = client.seal(&request("/"));
    wire.extend(client.ask());
    wire.extend(client.seal(&[request("/one"), request("/two")].concat()));
    wire.extend(client.close());
    let whole = {
        let outcome = http.play(Script::new().sends(&wire));
        let mut client = client.clone();
        let plaintext = opened(&mut client, &outcome.sent);
        assert_eq!((small_answers(&plaintext), client.received.notes, client.received.close), (3, 3, true));
        assert_eq!((outcome.next, outcome.finish), (Next::Close, Some(Finish::Close)));
        plaintext
    };
    for at in 1..wire.len() {
        for gap in [0, 1] {
            let script = Script::new().sends(&wire[..at]).waits(Duration::from_secs(gap)).sends(&wire[at..]);
            let outcome = http.play(script);
            assert!(opened(&mut client.clone(), &outcome.sent) == whole, "split at {at}, gap {gap}");
        }
    }
    let outcome = http.play(Script::new().drips(&wire, Duration::from_millis(1)).pausing());
    assert!(opened(&mut client, &outcome.sent) == whole, "byte by byte");
}

#[test]
fn every_operation_may_have_to_wait() {
    let http = Http::new(&body(100_000));
    let mut client = FramedClient::new(7);
    let wire = client.seal(&[request("/"), request("/file"), request("/shared"), request("/")].concat());
    let script = || Script::new().sends(&wire).takes(20_000, Duration::ZERO);
    let outcome = http.play(script());
    let whole = opened(&mut client.clone(), &outcome.sent);
    for at in 0..outcome.operations {
        let outcome = http.play(script().pausing_at(at));
        assert!(opened(&mut client.clone(), &outcome.sent) == whole, "a pause at operation {at}");
    }
}

#[test]
fn a_client_that_waits_for_the_hello_gets_it_before_it_sends() {
    let http = Http::new(b"");
    let mut client = FramedClient::new(7);
    let hello = client.hello();
    let outcome = http.play(Script::new().sends(&hello));
    assert_eq!(opened(&mut client, &outcome.sent), b"");
    assert_eq!((client.received.hello, client.received.notes), (true, 1), "a hello and a ticket");
    let wire = client.seal(&request("/"));
    let outcome = http.play(Script::new().sends(&hello).waits(Duration::from_secs(1)).sends(&wire));
    let mut again = FramedClient::new(7);
    assert_eq!(small_answers(&opened(&mut again, &outcome.sent)), 1);
    assert_eq!(outcome.parked, 1, "the connection was idle behind the hello");
}

/// The connection ends with `alert` and without plaintext.
#[track_caller]
fn refused(outcome: &Outcome, client: &FramedClient, alert: Alert) {
    let mut client = client.clone();
    assert_eq!(opened(&mut client, &outcome.sent), b"");
    assert_eq!((client.received.alert, client.received.close), (Some(alert as u8), false));
    assert_eq!((outcome.next, outcome.finish), (Next::Linger, Some(Finish::Linger)));
}

#[test]
fn a_wrong_hello_is_refused() {
    let http = Http::new(b"");
    refused(&http.play(Script::new().sends(request("/"))), &FramedClient::new(7), Alert::Malformed);
    let hello = FramedClient::new(7).hello();
    for at in 0..hello.len() {
        let mut wrong = hello.clone();
        wrong[at] ^= 0x80;
        let expected = match at {
            0 | 1 => Alert::Malformed,
            2 => Alert::TooLarge,
            // It is longer than what was sent.
            3 => continue,
            _ => Alert::BadTag,
        };
        refused(&http.play(Script::new().sends(&wrong)), &FramedClient::new(7), expected);
    }
    let mut client = FramedClient::new(7);
    client.hello();
    refused(
        &http.play(Script::new().sends(client.seal(&request("/")))),
        &FramedClient::new(7),
        Alert::BadTag,
    );
    let mut other = Vec::new();
    super::record::RecordKey::PUBLIC.clone().seal(RecordKind::Hello, b"framed/2and a number", &mut other);
    refused(&http.play(Script::new().sends(&other)), &FramedClient::new(7), Alert::BadHello);
}

#[test]
fn a_record_that_was_changed_yields_no_plaintext() {
    let http = Http::new(b"");
    let mut client = FramedClient::new(7);
    let hello = client.hello();
    let record = client.record(RecordKind::Data, &request("/"));
    for at in HEADER_BYTES..record.len() {
        let mut wrong = [hello.clone(), record.clone()].concat();
        wrong[hello.len() + at] ^= 1;
        refused(&http.play(Script::new().sends(&wrong)), &client, Alert::BadTag);
    }
    let twice = [hello.clone(), record.clone(), record.clone()].concat();
    let outcome = http.play(Script::new().sends(&twice));
    let mut again = client.clone();
    assert_eq!(small_answers(&opened(&mut again, &outcome.sent)), 1, "the record is answered once");
    assert_eq!((again.received.alert, outcome.next), (Some(Alert::BadTag as u8), Next::Linger));
    let second = FramedClient::new(7).record(RecordKind::Hello, &super::record::hello(7));
    refused(&http.play(Script::new().sends(&second)), &FramedClient::new(7), Alert::Unexpected);
}

#[test]
fn a_record_that_is_too_large_is_refused_by_its_header() {
    let http = Http::new(b"");
    let mut client = FramedClient::new(7);
    let [high, low] = (CONTENT_BYTES as u16 + 1).to_be_bytes();
    let wire = [client.hello(), vec![RecordKind::Data as u8, 1, high, low]].concat();
    refused(&http.play(Script::new().sends(&wire)), &client, Alert::TooLarge);
    // The largest one holds many requests: more than the protocol asks for at a time.
    let many = CONTENT_BYTES / request("/").len();
    let limits = Limits { max_head: 200, ..Limits::default() };
    let http = Http { limits, ..http };
    let wire = client.seal(&request("/").repeat(many));
    let outcome = http.play(Script::new().sends(FramedClient::new(7).hello()).sends(&wire));
    assert_eq!(small_answers(&opened(&mut client, &outcome.sent)), many);
}

#[test]
fn a_record_that_is_cut_off_is_not_answered() {
    let http = Http::new(b"");
    let mut client = FramedClient::new(7);
    let hello = client.hello();
    let record = client.record(RecordKind::Data, &request("/"));
    for at in 1..record.len() {
        let outcome = http.play(Script::new().sends(&hello).sends(&record[..at]).ends());
        assert_eq!(opened(&mut client.clone(), &outcome.sent), b"", "cut off at {at}");
        assert_ne!(outcome.next, Next::Park(BEGIN));
    }
    for at in 0..hello.len() {
        let outcome = http.play(Script::new().sends(&hello[..at]).ends());
        assert_eq!((outcome.sent.len(), outcome.next), (0, Next::Close), "cut off at {at}");
    }
}

#[test]
fn records_without_plaintext_are_answered_and_bounded() {
    let http = Http::new(b"");
    let mut client = FramedClient::new(7);
    let mut wire = client.hello();
    wire.extend(client.ask());
    wire.extend(client.record(RecordKind::Data, b""));
    wire.extend(client.record(RecordKind::Note, b"another"));
    let data = client.record(RecordKind::Data, &request("/"));
    let outcome = http.play(Script::new().sends(&wire).waits(Duration::from_secs(1)).sends(&data));
    assert_eq!(small_answers(&opened(&mut client, &outcome.sent)), 1);
    assert_eq!(client.received.notes, 2, "a ticket and an answer");
    let mut client = FramedClient::new(7);
    let mut script = Script::new().sends(client.hello());
    for _ in 0..EMPTY_RECORDS + 1 {
        script = script.waits(Duration::from_secs(1)).sends(client.ask());
    }
    let outcome = http.play(script);
    refused(&outcome, &client, Alert::TooManyEmpty);
    assert!(outcome.took <= Duration::from_secs(u64::from(EMPTY_RECORDS) + 2));
}

#[test]
fn a_hello_that_never_ends_is_waited_for_until_the_deadline() {
    let http = Http::new(b"");
    let hello = FramedClient::new(7).hello();
    for at in 1..hello.len() {
        let outcome = http.play(Script::new().drips(&hello[..at], Duration::from_millis(100)));
        assert_eq!((outcome.sent.len(), outcome.next), (0, Next::Close));
        let first = Duration::from_millis(100);
        assert_eq!(outcome.took, first + http.limits.head_timeout, "from its first byte on");
    }
}

#[test]
fn a_closing_record_in_mid_response_ends_the_connection_behind_it() {
    let http = Http::new(&body(200_000));
    for target in ["/shared", "/file"] {
        let mut client = FramedClient::new(7);
        let wire = client.seal(&request(target));
        let script = Script::new().sends(&wire).takes(10_000, Duration::from_millis(100));
        let outcome = http.play(script.waits(Duration::from_secs(1)).sends(client.close()));
        let plaintext = opened(&mut client, &outcome.sent);
        let length = if target == "/file" { 200_000 } else { SHARED };
        assert!(plaintext.ends_with(&body(length)), "the answer is another one");
        assert!(client.received.close);
        assert_eq!(outcome.next, Next::Close);
    }
}

#[test]
fn no_closing_record_follows_an_answer_that_was_cut_short() {
    let mut http = Http::new(&body(200_000));
    let file = http.file.file.try_clone().expect("there are descriptors");
    http.file = Arc::new(OpenFile::new(file, 300_000));
    let mut client = FramedClient::new(7);
    let outcome = http.play(Script::new().sends(client.seal(&request("/file"))));
    assert!(opened(&mut client, &outcome.sent).len() < 300_000);
    assert_eq!((client.received.close, outcome.next, outcome.finish), (false, Next::Close, None));
    let told = http.told.lock().expect("no panic");
    assert!(matches!(told[..], [(_, SendReport { unsent: 100_000.., .. })]), "{told:?}");
}

#[test]
fn an_observer_fires_when_the_bytes_have_left() {
    for (target, step) in [("/", 40), ("/shared", 20_000), ("/file", 20_000)] {
        let http = Http::new(&body(200_000));
        let wire = FramedClient::new(7).seal(&request(target));
        let outcome = http.play(Script::new().sends(&wire).takes(step, Duration::from_secs(1)));
        let told = http.told.lock().expect("no panic").clone();
        let [(at, SendReport { unsent: 0, .. })] = told[..] else { panic!("{told:?}") };
        // The last byte leaves at the end of the script.
        assert_eq!(at.since(BEGIN), outcome.took, "{target}");
        assert!(outcome.took >= Duration::from_secs(3));
    }
}

#[test]
fn an_observer_hears_how_much_never_left() {
    for (target, length) in [("/shared", SHARED), ("/file", 200_000)] {
        for gone in [1000, 50_000, 100_000, 150_000] {
            let http = Http::new(&body(200_000));
            let mut client = FramedClient::new(7);
            let script = Script::new().sends(client.seal(&request(target)));
            let outcome = http.play(script.takes(9_000, Duration::ZERO).gone_after(gone));
            let left = opened(&mut client, &outcome.sent).len() as u64;
            let told = http.told.lock().expect("no panic").clone();
            let [(_, SendReport { unsent, .. })] = told[..] else { panic!("{told:?}") };
            // Of a record that left in part, the client opens nothing.
            let missing = length as u64 - left.min(length as u64);
            assert!(
                unsent <= missing + 200 && unsent + RECORD_BYTES as u64 >= missing,
                "{target}: {unsent} unsent, {missing} missing"
            );
        }
    }
}

#[test]
fn sealed_output_is_bounded() {
    let http = Http::new(&body(200_000));
    let mut client = FramedClient::new(7);
    let wire = client.seal(&[request("/shared"), request("/file")].concat());
    let outcome = http.play(Script::new().sends(&wire).takes(5000, Duration::ZERO));
    let bound = Out::MEMORY_BOUND + RECORD_BYTES;
    assert!(outcome.most_to_send <= bound as u64, "{} bytes wait", outcome.most_to_send);
}
