use std::time::Duration;

use rustls::CipherSuite;
use rustls::version::{TLS12, TLS13};
use tenfold_http::script::Script;

use super::{Fixture, RecordsOf, TestClient, pattern, request};

/// A small generator (xorshift64) that makes failures reproducible.
struct Xorshift(u64);

impl Xorshift {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// Uploads records of random sizes in pieces of random sizes, and compares the echo. Returns the number of
/// uploaded records.
fn upload(fixture: &Fixture, seed: u64, records: usize) -> usize {
    let mut random = Xorshift(seed);
    let client = fixture.client();
    let sizes: Vec<_> = (0..records)
        .map(|_| 1 + random.below(if random.0.is_multiple_of(8) { 16_384 } else { 300 }))
        .collect();
    let body = pattern(0..sizes.iter().sum::<usize>() as u64);
    let pieces = Xorshift(random.0);
    let (uploading, uploaded) = (client.clone(), body.clone());
    let script = client.handshakes().responds(move |sent| {
        let mut pieces = pieces;
        uploading.read(sent);
        uploading.write(
            format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", uploaded.len())
                .as_bytes(),
        );
        let mut rest = &uploaded[..];
        let mut wire = Vec::new();
        for size in sizes {
            let (record, tail) = rest.split_at(size);
            uploading.write(record);
            wire.extend(uploading.wire());
            rest = tail;
        }
        let mut cut = Vec::new();
        while !wire.is_empty() {
            let size = 1 + pieces.below(if pieces.0.is_multiple_of(4) { 40_000 } else { 50 });
            let tail = wire.split_off(size.min(wire.len()));
            cut.push(std::mem::replace(&mut wire, tail));
        }
        cut
    });
    let outcome = fixture.play(script);
    client.read(&outcome.sent);
    assert_eq!(client.error(), None, "seed {seed}");
    assert!(client.plaintext().ends_with(&body), "seed {seed}");
    records
}

const SUITES: [CipherSuite; 3] = [
    CipherSuite::TLS13_AES_128_GCM_SHA256,
    CipherSuite::TLS13_AES_256_GCM_SHA384,
    CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
];

fn random_records(count: usize) {
    let mut uploaded = 0;
    let fixtures: Vec<_> = SUITES
        .iter()
        .map(|suite| Fixture::with(&TLS13, RecordsOf::Extracted, |other| other == *suite))
        .chain([Fixture::new(&TLS12), Fixture::with(&TLS13, RecordsOf::Unbuffered, |_| true)])
        .collect();
    for (number, fixture) in fixtures.iter().cycle().enumerate() {
        uploaded += upload(fixture, 1 + number as u64, 200);
        if uploaded >= count {
            return;
        }
    }
}

/// With `TENFOLD_TEST_ALL=1`, a million records.
#[test]
fn random_records_equal_those_of_rustls() {
    let all = std::env::var_os("TENFOLD_TEST_ALL").is_some_and(|value| value == "1");
    random_records(if all { 1_000_000 } else { 4000 });
}

#[test]
fn our_records_and_those_of_rustls_carry_the_same() {
    let plaintexts = [RecordsOf::Extracted, RecordsOf::Unbuffered].map(|served| {
        let fixture = Fixture::with(&TLS13, served, |_| true);
        let client = fixture.client();
        let script = Script::new().sends(client.wire()).responds(client.answers(0, &request("/200000")));
        let outcome = fixture.play(script);
        client.read(&outcome.sent);
        client.plaintext()
    });
    assert!(plaintexts[0] == plaintexts[1] && plaintexts[0].ends_with(&pattern(0..200_000)));
}

#[test]
fn the_first_records_fit_a_segment_and_later_ones_grow() {
    for version in [&TLS13, &TLS12] {
        let fixture = Fixture::new(version);
        let client = fixture.client();
        let script = client.handshakes().responds(client.answers(0, &request("/500000")));
        let outcome = fixture.play(script);
        let mut sizes = Vec::new();
        let mut rest = &outcome.sent[..];
        while let [23, 3, 3, high, low, ..] | [_, 3, 3, high, low, ..] = rest {
            let size = usize::from(u16::from_be_bytes([*high, *low]));
            if rest[0] == 23 {
                sizes.push(size);
            }
            rest = &rest[5 + size..];
        }
        let first = sizes.iter().position(|size| *size > 1000).expect("a record of the body");
        let body = &sizes[first..];
        assert!(body[0] <= 1424 && body[1] <= 1424, "{body:?}");
        assert!(body[..body.len() - 1].is_sorted(), "{body:?}");
        let largest = body.iter().max().expect("there are records");
        assert!((16_384..16_384 + 32).contains(largest), "{body:?}");
    }
}

/// A client that demands new keys repeatedly, within its requests.
#[test]
fn keys_are_updated_when_the_client_asks() {
    for served in [RecordsOf::Extracted, RecordsOf::Unbuffered] {
        let fixture = Fixture::with(&TLS13, served, |_| true);
        let client = fixture.client();
        let second = Duration::from_secs(1);
        let mut script = Script::new().sends(client.wire()).responds(client.answers(0, b""));
        for number in 0..40 {
            script = script.waits(second).responds(updating(&client, number));
        }
        let outcome = fixture.play(script);
        client.read(&outcome.sent);
        assert_eq!((client.small_answers(), client.error()), (40, None), "{served:?}");
    }
}

fn updating(client: &TestClient, number: usize) -> impl FnOnce(&[u8]) -> Vec<Vec<u8>> + Send + 'static {
    let client = client.clone();
    move |sent| {
        client.read(sent);
        let request = request("/");
        client.write(&request[..number % request.len()]);
        client.connection(|connection| connection.refresh_traffic_keys().expect("the handshake is over"));
        client.write(&request[number % request.len()..]);
        vec![client.wire()]
    }
}
