use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::version::{TLS12, TLS13};
use rustls::{AlertDescription, ContentType, HandshakeKind, KeyLog};
use tenfold_http::layer::{HandshakeTurns, Layer};
use tenfold_http::script::Script;
use tenfold_http::{Connection, Finish, Local, Next, Out, Peer, Scheme};

use super::{Fixture, RecordsOf, TestClient, request};
use crate::connection::capture::Secret;
use crate::connection::keys::{Suite, TrafficKey};
use crate::connection::records::Records;
use crate::connection::{HandshakeResult, TlsServer};

#[test]
fn a_handshake_may_be_split_anywhere() {
    for version in [&TLS13, &TLS12] {
        let fixture = Fixture::new(version);
        let hello = fixture.client().wire().len();
        // In steps of a prime number, to shorten the run and vary the positions.
        for at in (1..hello + 120).step_by(7).chain(1..8) {
            let client = fixture.client();
            let first = client.wire();
            let (front, rest) = first.split_at(at.min(first.len()));
            let second = at.saturating_sub(first.len());
            let script = Script::new()
                .sends(front)
                .waits(Duration::from_secs(1))
                .sends(rest)
                .responds(client.answers(second, &request("/")))
                .waits(Duration::from_secs(1))
                .responds(client.answers(0, &request("/again")));
            let outcome = fixture.play(script);
            client.read(&outcome.sent);
            assert_eq!((client.small_answers(), client.error()), (2, None), "split at {at}");
        }
    }
}

#[test]
fn every_operation_may_have_to_wait() {
    for version in [&TLS13, &TLS12] {
        let fixture = Fixture::new(version);
        let script = |client: &super::TestClient| {
            Script::new()
                .sends(client.wire())
                .responds(client.answers(0, &request("/30000")))
                .waits(Duration::from_secs(1))
                .responds(client.answers(9, &request("/")))
                .takes(20_000, Duration::ZERO)
        };
        let client = fixture.client();
        let outcome = fixture.play(script(&client));
        client.read(&outcome.sent);
        let whole = client.plaintext();
        assert!(whole.len() > 30_000, "{} bytes", whole.len());
        for at in 0..outcome.operations {
            let client = fixture.client();
            let outcome = fixture.play(script(&client).pausing_at(at));
            client.read(&outcome.sent);
            assert!(client.plaintext() == whole, "a pause at operation {at}");
        }
    }
}

#[test]
fn an_idle_connection_is_parked_between_its_requests_and_closed_in_order() {
    for (version, served) in
        [(&TLS13, RecordsOf::Extracted), (&TLS13, RecordsOf::Unbuffered), (&TLS12, RecordsOf::Extracted)]
    {
        let fixture = Fixture::with(version, served, |_| true);
        let client = fixture.client();
        let second = Duration::from_secs(1);
        let mut script = Script::new().sends(client.wire()).waits(second).responds(client.answers(0, b""));
        for _ in 0..3 {
            script = script.waits(second).responds(client.answers(0, &request("/")));
        }
        let outcome = fixture.play(script.waits(second).responds(client.closes()));
        client.read(&outcome.sent);
        assert_eq!((client.small_answers(), client.closed()), (3, true), "{version:?} {served:?}");
        assert_eq!((outcome.next, outcome.finish), (Next::Close, Some(Finish::Close)));
        assert!(outcome.parked >= 3, "parked {} times", outcome.parked);
        assert_eq!(*fixture.results.lock().expect("no panic"), [HandshakeResult::Full]);
    }
}

#[test]
fn a_connection_without_a_request_is_closed_in_order() {
    for version in [&TLS13, &TLS12] {
        let fixture = Fixture::new(version);
        let client = fixture.client();
        let outcome = fixture.play(client.handshakes().responds(client.closes()));
        client.read(&outcome.sent);
        assert_eq!((outcome.next, outcome.finish), (Next::Close, Some(Finish::Close)), "{version:?}");
        let took = outcome.took;
        assert!(client.closed() && took < Duration::from_secs(2), "{version:?}: {took:?}");
    }
}

#[test]
fn a_session_is_resumed_and_its_facts_are_known() {
    for version in [&TLS13, &TLS12] {
        let fixture = Fixture::new(version);
        for resumed in [false, true] {
            let client = fixture.client();
            let script = client.handshakes().responds(client.answers(0, &request("/")));
            let (outcome, state) = fixture.play_keeping(script);
            client.read(&outcome.sent);
            assert_eq!(client.small_answers(), 1);
            let kind = client.connection(|connection| connection.handshake_kind());
            assert_eq!(kind == Some(HandshakeKind::Resumed), resumed, "{version:?}");
            let local = Local { listener: 0 };
            let mut connection = Connection::plaintext(Peer::Unix, local);
            TlsServer::describe(&state.expect("it was kept"), &mut connection);
            assert_eq!(connection.scheme, Scheme::Https);
            let facts = connection.tls.expect("the handshake is over");
            let (name, cipher) = match version.version {
                rustls::ProtocolVersion::TLSv1_3 => ("TLSv1.3", "TLS_AES_256_GCM_SHA384"),
                _ => ("TLSv1.2", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
            };
            assert_eq!((facts.resumed, facts.version, facts.cipher), (resumed, name, cipher));
            assert_eq!((facts.server_name.as_deref(), facts.alpn), (Some("localhost"), Some("http/1.1")));
        }
        let results = fixture.results.lock().expect("no panic").clone();
        assert_eq!(results, [HandshakeResult::Full, HandshakeResult::Resumed]);
    }
}

#[test]
fn a_hello_that_never_ends_is_waited_for_until_the_deadline() {
    let fixture = Fixture::new(&TLS13);
    let hello = fixture.client().wire();
    for at in [1, 2, 5, 6, 100, hello.len() - 1] {
        let outcome = fixture.play(Script::new().drips(&hello[..at], Duration::from_millis(10)));
        assert_eq!((outcome.sent.len(), outcome.next), (0, Next::Close), "{at} bytes");
        let first = Duration::from_millis(10);
        assert_eq!(outcome.took, first + fixture.limits.head_timeout, "from its first byte on");
    }
    // The same for a client that never answers.
    let outcome = fixture.play(Script::new().sends(&hello));
    assert_eq!((outcome.next, outcome.took), (Next::Close, fixture.limits.head_timeout));
    // In records of a byte each.
    let mut wire = Vec::new();
    for byte in &hello[5..] {
        wire.extend([22, 3, 1, 0, 1, *byte]);
    }
    let outcome = fixture.play(Script::new().sends(&wire));
    assert_eq!(outcome.sent[..3], [22, 3, 3], "a hello of the server");
}

#[test]
fn a_hello_past_the_bound_of_a_tick_waits_for_its_turn_until_the_deadline() {
    let fixture = Fixture { turns: HandshakeTurns::on_loop(), ..Fixture::new(&TLS13) };
    let second = Duration::from_secs(1);
    let play = || {
        let client = fixture.client();
        let script = Script::new().sends(client.wire()).responds(client.answers(0, &request("/")));
        let outcome = fixture.play(script.waits(second).ends());
        client.read(&outcome.sent);
        (client.small_answers(), outcome)
    };
    for tick in 0..3 {
        for step in 0..4 {
            assert_eq!(play().0, 1, "step {step} of tick {tick}");
        }
        let (answers, outcome) = play();
        assert_eq!((answers, outcome.sent.len(), outcome.next), (0, 0, Next::Close), "tick {tick}");
        assert_eq!(outcome.took, fixture.limits.head_timeout);
        fixture.turns.next_tick();
    }
    // Incomplete hellos, and input without TLS, use no turn.
    let hello = fixture.client().wire();
    for _ in 0..5 {
        fixture.play(Script::new().sends(&hello[..hello.len() - 1]).resets());
        assert!(fixture.play(Script::new().sends(request("/"))).sent.starts_with(b"HTTP/1.1 400 "));
    }
    assert_eq!(play().0, 1);
}

/// Asserts that the server's last record is this alert, in plaintext.
#[track_caller]
fn refused(wire: &[u8], alert: AlertDescription) {
    let fixture = Fixture::new(&TLS13);
    let outcome = fixture.play(Script::new().sends(wire));
    assert_eq!(outcome.sent, [21, 3, 3, 0, 2, 2, u8::from(alert)]);
    assert_eq!((outcome.next, outcome.finish), (Next::Linger, Some(Finish::Linger)));
    assert_eq!(*fixture.results.lock().expect("no panic"), [HandshakeResult::Failed]);
}

/// Returns the beginning of a hello of `length` bytes, in three records.
fn long_hello(length: u32) -> Vec<u8> {
    let [_, high, middle, low] = length.to_be_bytes();
    let message = [&[1, high, middle, low, 3, 3][..], &[7; 3 * 16_384]].concat();
    let records = message[..3 * 16_384].chunks(16_384);
    records.flat_map(|content| [&[22, 3, 1, 64, 0][..], content].concat()).collect()
}

#[test]
fn a_wrong_hello_gets_an_alert() {
    let hello = Fixture::new(&TLS13).client().wire();
    refused(&[22, 3, 1, 255, 255], AlertDescription::RecordOverflow);
    refused(&[22, 3, 1, 0, 0], AlertDescription::DecodeError);
    refused(&[128, 46, 1, 3, 1], AlertDescription::DecodeError);
    refused(&[1, 3, 1, 0, 5, 1, 2, 3, 4, 5], AlertDescription::DecodeError);
    refused(&[23, 3, 3, 0, 2, 1, 1], AlertDescription::UnexpectedMessage);
    refused(&[20, 3, 3, 0, 1, 1], AlertDescription::UnexpectedMessage);
    let changed = |at: usize, byte: u8| {
        let mut wrong = hello.clone();
        wrong[at] = byte;
        wrong
    };
    refused(&changed(5, 20), AlertDescription::UnexpectedMessage);
    // Hellos over several records: one fills the input, and one is longer than rustls accepts.
    refused(&long_hello(60_000), AlertDescription::DecodeError);
    refused(&long_hello(70_000), AlertDescription::DecodeError);
    // A wrong record after a part of a hello.
    let part = [&[22, 3, 1, 0, 9][..], &hello[5..14]].concat();
    refused(&[&part[..], &[23, 3, 3, 0, 1, 1]].concat(), AlertDescription::UnexpectedMessage);
    refused(&[&part[..], &[22, 3, 1, 255, 255]].concat(), AlertDescription::RecordOverflow);
    // TLS 1.0 in the hello, without the extension for newer versions, is too old.
    let mut old = vec![22, 3, 1, 0, 55, 1, 0, 0, 51, 3, 1];
    old.extend([7; 32]);
    old.extend([0, 0, 2, 0, 47, 1, 0, 0, 8, 0, 13, 0, 4, 0, 2, 4, 3]);
    refused(&old, AlertDescription::ProtocolVersion);
}

/// Returns a record with a hello of this version and these extensions, with a suite of TLS 1.2 and one of TLS 1.3.
fn hello(version: u8, extensions: &[(u16, &[u8])]) -> Vec<u8> {
    let mut content = vec![3, version];
    content.extend([7; 32]);
    content.extend([0, 0, 4, 0xc0, 0x2b, 0x13, 1, 1, 0]);
    let length = |bytes: &[u8]| u16::try_from(bytes.len()).expect("it is short").to_be_bytes();
    let of = |(kind, bytes): &(u16, &[u8])| [&kind.to_be_bytes()[..], &length(bytes), bytes].concat();
    let extensions: Vec<u8> = extensions.iter().flat_map(of).collect();
    content.extend([&length(&extensions)[..], &extensions].concat());
    let message = [&[1, 0][..], &length(&content), &content].concat();
    [&[22, 3, 1][..], &length(&message), &message].concat()
}

const VERSIONS: (u16, &[u8]) = (43, &[4, 3, 4, 3, 3]);
const SCHEMES: (u16, &[u8]) = (13, &[0, 2, 4, 3]);
const GROUPS: (u16, &[u8]) = (10, &[0, 2, 0, 23]);
const NO_SHARES: (u16, &[u8]) = (51, &[0, 0]);

#[test]
fn a_hello_without_a_required_extension_gets_the_alert_of_its_version() {
    refused(&hello(3, &[VERSIONS, SCHEMES, GROUPS]), AlertDescription::MissingExtension);
    refused(&hello(3, &[VERSIONS, GROUPS, NO_SHARES]), AlertDescription::MissingExtension);
    refused(&hello(3, &[VERSIONS, SCHEMES, NO_SHARES]), AlertDescription::MissingExtension);
    refused(&hello(3, &[(43, &[2, 3, 3]), SCHEMES]), AlertDescription::HandshakeFailure);
    refused(&hello(3, &[GROUPS]), AlertDescription::HandshakeFailure);
    for version in [1, 2] {
        refused(&hello(version, &[GROUPS]), AlertDescription::ProtocolVersion);
    }
    refused(&hello(3, &[(43, &[2, 3, 2]), GROUPS]), AlertDescription::ProtocolVersion);
}

#[test]
fn a_hello_of_ssl_3_or_of_a_renegotiation_is_refused_however_it_is_split() {
    let served = [VERSIONS, SCHEMES, GROUPS, NO_SHARES];
    let renegotiates = [VERSIONS, SCHEMES, GROUPS, NO_SHARES, (0xff01, &[2, 7, 7])];
    for (wire, alert) in [
        (hello(0, &served), AlertDescription::ProtocolVersion),
        (hello(3, &renegotiates), AlertDescription::HandshakeFailure),
        (hello(3, &[SCHEMES, GROUPS, (0xff01, &[1, 7])]), AlertDescription::HandshakeFailure),
    ] {
        refused(&wire, alert);
        for size in [1, 7, 60] {
            let record =
                |part: &[u8]| [&[22, 3, 1, 0, u8::try_from(part.len()).expect("at most 60")], part].concat();
            refused(&wire[5..].chunks(size).flat_map(record).collect::<Vec<_>>(), alert);
        }
    }
    let again = |extensions: &[(u16, &[u8])]| {
        Fixture::new(&TLS13).play(Script::new().sends(hello(3, extensions))).sent
    };
    assert_eq!(again(&served)[..3], [22, 3, 3], "a request for another hello");
    assert_eq!(again(&[SCHEMES, GROUPS, (0xff01, &[0])])[..3], [22, 3, 3], "TLS 1.2");
}

#[test]
fn a_record_of_a_hello_has_at_most_16_kib() {
    let padded = |record: usize| {
        let bytes = vec![0; record - hello(3, &[VERSIONS, SCHEMES, GROUPS, NO_SHARES, (21, &[])]).len() + 5];
        hello(3, &[VERSIONS, SCHEMES, GROUPS, NO_SHARES, (21, &bytes)])
    };
    let most = padded(1 << 14);
    assert_eq!(most[3..5], [64, 0]);
    assert_eq!(Fixture::new(&TLS13).play(Script::new().sends(&most)).sent[..3], [22, 3, 3]);
    refused(&padded((1 << 14) + 1), AlertDescription::RecordOverflow);
}

/// Stores the client's handshake secret, to seal messages that its rustls does not send.
#[derive(Debug, Default)]
struct SecretLog(Mutex<Option<Secret>>);

impl KeyLog for SecretLog {
    fn log(&self, label: &str, _: &[u8], secret: &[u8]) {
        if label == "CLIENT_HANDSHAKE_TRAFFIC_SECRET" {
            *self.0.lock().expect("no panic") = Secret::new(secret);
        }
    }
}

/// Plays a client that answers the server's first flight with the bytes that `answer` makes from the key of
/// the client's handshake.
fn finishing(
    answer: impl FnOnce(&TestClient, &dyn Fn() -> TrafficKey) -> Vec<Vec<u8>> + Send + 'static,
) -> TestClient {
    let fixture = Fixture::new(&TLS13);
    let log = Arc::new(SecretLog::default());
    let mut config = (*fixture.client).clone();
    config.key_log = log.clone();
    let client = TestClient::new(&config.into());
    let reader = client.clone();
    let outcome = fixture.play(Script::new().sends(client.wire()).responds(move |sent| {
        reader.read(sent);
        let secret = log.0.lock().expect("no panic").clone().expect("the server has answered");
        answer(&reader, &|| TrafficKey::derived(Suite::Aes256GcmSha384, secret.clone()))
    }));
    client.read(&outcome.sent);
    client
}

#[test]
fn an_alert_after_the_servers_finished_reaches_the_client() {
    let client = finishing(|_, key| {
        let mut records = Out::new();
        // A Finished of 16 MB.
        Records::new(key(), key()).stage(ContentType::Handshake, &[20, 255, 255, 255], &mut records);
        vec![records.staged_alone().expect("records are staged").to_vec()]
    });
    assert_eq!(client.error(), Some(rustls::Error::AlertReceived(AlertDescription::DecodeError)));
}

#[test]
fn a_finished_may_be_split_over_records() {
    let client = finishing(|reader, key| {
        let mut wire = reader.wire();
        let at = wire.iter().position(|kind| *kind == 23).expect("a sealed record follows the others");
        let (header, sealed) = wire[at..].split_at_mut(5);
        let header = <[u8; 5]>::try_from(&*header).expect("five bytes");
        let length = key().open(&header, sealed).expect("the first record of this key");
        let (_, message) = sealed[..length].split_last().expect("the kind is last");
        let mut records = Out::new();
        let mut sealing = Records::new(key(), key());
        for part in message.chunks(20) {
            sealing.stage(ContentType::Handshake, part, &mut records);
        }
        reader.write(&request("/"));
        vec![records.staged_alone().expect("records are staged").to_vec(), reader.wire()]
    });
    assert_eq!((client.small_answers(), client.error()), (1, None));
}

#[test]
fn a_protocol_that_is_not_served_gets_an_alert() {
    let fixture = Fixture::new(&TLS13);
    for (offered, served) in [("h3", false), ("http/1.0", true), ("http/1.1", true)] {
        let mut config = (*fixture.client).clone();
        config.alpn_protocols = vec![offered.into()];
        let client = TestClient::new(&config.into());
        let outcome = fixture.play(Script::new().sends(client.wire()));
        client.read(&outcome.sent);
        let alert = rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol);
        assert_eq!(client.error(), (!served).then_some(alert), "{offered}");
    }
}

#[test]
fn plain_http_gets_a_response_that_names_the_reason() {
    let fixture = Fixture::new(&TLS13);
    let outcome = fixture.play(Script::new().sends(request("/")));
    let sent = String::from_utf8_lossy(&outcome.sent);
    assert!(
        sent.starts_with("HTTP/1.1 400 Bad Request\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
        "{sent}"
    );
    let (head, body) = sent.split_once("\r\n\r\n").expect("a head");
    assert!(
        head.contains(&format!("\r\nContent-Length: {}", body.len())) && body.contains("https"),
        "{sent}"
    );
    assert_eq!(outcome.next, Next::Linger);
    assert!(fixture.results.lock().expect("no panic").is_empty(), "there was no handshake");
}

#[test]
fn a_connection_that_is_cut_off_gets_no_answer() {
    for version in [&TLS13, &TLS12] {
        let fixture = Fixture::new(version);
        let client = fixture.client();
        let outcome = fixture.play(client.handshakes().responds(client.asks_without(1)).ends());
        client.read(&outcome.sent);
        assert_eq!((client.small_answers(), outcome.next), (0, Next::Linger), "{version:?}");
    }
}
