use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustls::{HandshakeKind, SignatureScheme, version};

use super::super::remote::{AnswerPath, SigningClient};
use super::*;
use crate::certificates::chain::Chain;
use crate::certificates::generate::{self, TestPair};
use crate::certificates::key;
use crate::certificates::resolver::{Candidate, CertificateResolver, CertificateTable};
use crate::config::handshake::{client, handshake};
use crate::config::{SecurityPreset, server_config};
use crate::shared::{SharedBytes, private_words};
use crate::tickets::ticketer::SharedTicketer;

const PATIENCE: Duration = Duration::from_secs(10);

fn pair() -> (UnixDatagram, UnixDatagram) {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .expect("a pair of sockets");
    (ours.into(), theirs.into())
}

fn key_of(pair: &TestPair) -> Arc<dyn SigningKey> {
    key::parse(Path::new("key.pem"), pair.key_pem.as_bytes()).expect("a key")
}

fn p256() -> TestPair {
    generate::pair(&["a.test"], &rcgen::PKCS_ECDSA_P256_SHA256)
}

fn chain_of(pair: &TestPair) -> Chain {
    Chain::parse(Path::new("a.pem"), pair.certificate_pem.as_bytes()).expect("a chain")
}

/// Returns a message of TLS 1.3.
fn message() -> Vec<u8> {
    [&[b' '; 64][..], b"TLS 1.3, server CertificateVerify\0", &[7; 32]].concat()
}

/// Requests a signature by a P-256 key.
fn sign(client: &Arc<SigningClient>, pair: &TestPair, message: &[u8]) -> Result<Vec<u8>, String> {
    let key = client.key(chain_of(pair).facts()).expect("a key for TLS");
    let signer = key.choose_scheme(&[SignatureScheme::ECDSA_NISTP256_SHA256]).expect("its scheme");
    signer.sign(message).map_err(|error| error.to_string())
}

#[test]
fn handshakes_of_each_key_and_version_are_signed_by_the_other_process() {
    let pairs = [
        generate::pair(&["a.test"], &rcgen::PKCS_RSA_SHA256),
        p256(),
        generate::pair(&["a.test"], &rcgen::PKCS_ECDSA_P384_SHA384),
        generate::pair(&["a.test"], &rcgen::PKCS_ED25519),
    ];
    let held = HeldKeys::new(pairs.iter().map(key_of));
    let (ours, theirs) = pair();
    thread::scope(|scope| {
        scope.spawn(|| held.serve(&theirs).expect("the socket works"));
        let signing = SigningClient::new([ours], PATIENCE, AnswerPath::Pair).expect("a socket");
        for pair in &pairs {
            let chain = chain_of(pair);
            let key = signing.key(chain.facts()).expect("a key for TLS");
            let candidate = Candidate::new(&chain, key);
            candidate.certified.keys_match().expect("the public key is the certificate's");
            let table = CertificateTable::new(vec![candidate]).expect("a certificate");
            let tickets = SharedTicketer::new(SharedBytes::new(private_words(8)));
            let resolver = Arc::new(CertificateResolver::new(Some(table), None));
            let config = server_config(SecurityPreset::Intermediate, resolver, tickets, false, false)
                .expect("settings");
            let config = Arc::new(config);
            for versions in [[&version::TLS13], [&version::TLS12]] {
                // The client verifies the signature.
                let agreed = handshake(&client(&versions), &config).expect("a handshake");
                assert_eq!(agreed.kind, HandshakeKind::Full);
            }
        }
    });
}

#[test]
fn only_messages_of_handshakes_by_keys_of_its_own_are_signed() {
    let ours = p256();
    let other = p256();
    let held = HeldKeys::new([key_of(&ours)]);
    let (near, far) = pair();
    thread::scope(|scope| {
        scope.spawn(|| held.serve(&far).expect("the socket works"));
        let client = SigningClient::new([near], PATIENCE, AnswerPath::Pair).expect("a socket");
        assert!(sign(&client, &ours, &message()).is_ok());
        let refusal = |pair, message: &[u8]| sign(&client, pair, message).expect_err("refused");
        assert!(refusal(&ours, b"a certificate to be").contains("refused the message"));
        assert!(refusal(&other, &message()).contains("does not have the key"));
    });
}

#[test]
fn a_process_that_is_silent_or_gone_costs_a_bounded_wait() {
    let ours = p256();
    let (near, far) = pair();
    let client = SigningClient::new([near], Duration::from_millis(50), AnswerPath::Pair).expect("a socket");
    let start = Instant::now();
    assert!(!client.is_late());
    assert!(sign(&client, &ours, &message()).expect_err("no answer").contains("cannot sign"));
    assert!(start.elapsed() >= Duration::from_millis(50));
    for _ in 0..1000 {
        assert!(client.is_late() && sign(&client, &ours, &message()).is_err());
    }
    assert!(start.elapsed() < Duration::from_secs(40), "more requests than the first have waited");
    tell_lost(&far);
    assert!(!client.is_late(), "a successor may exist");
    assert!(sign(&client, &ours, &message()).is_err() && client.is_late());
    // Late answers to those requests are not mistaken for later answers.
    let held = HeldKeys::new([key_of(&ours)]);
    thread::scope(|scope| {
        scope.spawn(|| held.serve(&far).expect("the socket works"));
        let start = Instant::now();
        while sign(&client, &ours, &message()).is_err() {
            assert!(start.elapsed() < Duration::from_secs(20), "signing does not resume");
            // The late answers come at their own pace.
            thread::sleep(Duration::from_millis(10));
        }
        drop(client);
    });
    let (near, far) = pair();
    let client = SigningClient::new([near], PATIENCE, AnswerPath::Pair).expect("a socket");
    drop(far);
    let start = Instant::now();
    assert!(sign(&client, &ours, &message()).is_err());
    assert!(start.elapsed() < PATIENCE, "the end of the process is not reported immediately");
}

#[test]
fn answers_to_processes_that_share_a_socket_reach_the_right_one() {
    let ours = p256();
    let other = generate::pair(&["a.test"], &rcgen::PKCS_ED25519);
    let held = HeldKeys::new([key_of(&ours)]);
    let (near, far) = pair();
    let client = |near: &UnixDatagram| {
        let copy = near.try_clone().expect("a descriptor");
        SigningClient::new([copy], PATIENCE, AnswerPath::Stream).expect("a socket")
    };
    let clients: Vec<_> = (0..4).map(|_| client(&near)).collect();
    drop(near);
    thread::scope(|scope| {
        scope.spawn(|| held.serve(&far).expect("the socket works"));
        let asking: Vec<_> = clients
            .into_iter()
            .enumerate()
            .map(|(index, client)| {
                let (ours, other) = (&ours, &other);
                scope.spawn(move || {
                    for _ in 0..100 {
                        let key = if index % 2 == 0 { ours } else { other };
                        let signed = client.key(chain_of(key).facts()).expect("a key for TLS");
                        let scheme = signed.choose_scheme(client_schemes()).expect("its scheme");
                        assert_eq!(scheme.sign(&message()).is_ok(), index % 2 == 0);
                    }
                })
            })
            .collect();
        asking.into_iter().for_each(|thread| thread.join().expect("no wrong answers"));
    });
}

fn client_schemes() -> &'static [SignatureScheme] {
    &[SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::ED25519]
}

#[test]
fn the_end_of_the_process_fails_one_request() {
    let ours = p256();
    let (near, far) = pair();
    let client = SigningClient::new([near], PATIENCE, AnswerPath::Pair).expect("a socket");
    let start = Instant::now();
    thread::scope(|scope| {
        let (ours, asks) = (&ours, Arc::clone(&client));
        let asking = scope.spawn(move || sign(&asks, ours, &message()));
        far.recv(&mut [0; REQUEST_ROOM]).expect("a request");
        tell_lost(&far);
        let lost = asking.join().expect("no panic").expect_err("no answer");
        assert!(lost.contains("the signing process has ended"), "{lost}");
        assert!(start.elapsed() < PATIENCE);
        tell_lost(&far);
        let held = HeldKeys::new([key_of(ours)]);
        let far = &far;
        scope.spawn(move || held.serve(far).expect("the socket works"));
        assert!(sign(&client, ours, &message()).is_ok(), "by the successor");
        drop(client);
    });
}

#[test]
fn an_empty_cut_or_oversized_message_does_not_end_the_loop() {
    let ours = p256();
    let held = HeldKeys::new([key_of(&ours)]);
    let (near, far) = pair();
    let wrong = near.try_clone().expect("a descriptor");
    let client = SigningClient::new([near], PATIENCE, AnswerPath::Pair).expect("a socket");
    thread::scope(|scope| {
        let serving = scope.spawn(|| held.serve(&far).expect("the socket works"));
        for message in [&[][..], &[1, 2, 3], &[0; REQUEST_ROOM], &[0; 4096]] {
            wrong.send(message).expect("there is room");
            assert!(sign(&client, &ours, &self::message()).is_ok(), "after {} bytes", message.len());
        }
        assert!(!serving.is_finished());
        drop((client, wrong));
    });
}

#[test]
fn a_late_answer_is_not_taken_for_that_of_a_later_request() {
    let ours = p256();
    let (near, far) = pair();
    const BRIEF: Duration = Duration::from_secs(1);
    let client = SigningClient::new([near], BRIEF, AnswerPath::Pair).expect("a socket");
    let mut room = [0; REQUEST_ROOM];
    let mut number = || {
        let length = far.recv(&mut room).expect("a request");
        SignRequest::parse(&room[..length]).expect("a request").number
    };
    thread::scope(|scope| {
        let (ours, asks) = (&ours, Arc::clone(&client));
        assert!(sign(&client, ours, &message()).is_err(), "no answer");
        let first = number();
        far.send(&SignAnswer::Signature(b"late").to_bytes(first)).expect("there is room");
        let asking = scope.spawn(move || sign(&asks, ours, &message()));
        let second = number();
        far.send(&SignAnswer::Signature(b"late").to_bytes(first)).expect("there is room");
        far.send(b"no answer").expect("there is room");
        far.send(&SignAnswer::Signature(b"right").to_bytes(second)).expect("there is room");
        assert_eq!(asking.join().expect("no panic").as_deref(), Ok(&b"right"[..]));
    });
}

#[test]
fn any_message_gets_an_answer_with_its_number_or_no_answer() {
    let ours = p256();
    let key = key_of(&ours);
    let id = KeyId::of(&key.public_key().expect("a public key"));
    let held = std::panic::AssertUnwindSafe(HeldKeys::new([key]));
    let room = REQUEST_ROOM + 8;
    bolero::check!().with_iterations(5000).with_max_len(room).with_type::<(u8, Vec<u8>)>().for_each(
        |(form, bytes)| {
            let scheme = SignatureScheme::ECDSA_NISTP256_SHA256;
            let request = |message| SignRequest { number: 5, key: id, scheme, message }.to_bytes();
            let whole = match form % 3 {
                0 => bytes.clone(),
                1 => request(bytes),
                _ => request(&[&message()[..98], bytes].concat()),
            };
            let Some(answer) = held.answer(&whole) else { return };
            let (number, answer) = SignAnswer::parse(&answer).expect("an answer");
            assert_eq!(number.to_le_bytes(), whole[..8]);
            let is_signed = matches!(answer, SignAnswer::Signature(_));
            assert!(!is_signed || [32, 48].contains(&bytes.len()) && form % 3 == 2, "{whole:?}");
        },
    );
}
