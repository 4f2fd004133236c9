//! The server's own records without a handshake: two sides with the same secrets.

use rustls::{AlertDescription, ContentType};
use tenfold_http::Out;
use tenfold_http::layer::LayerProgress;

use crate::connection::TlsState;
use crate::connection::capture::Secret;
use crate::connection::keys::{Suite, TrafficKey, cached_contexts};
use crate::connection::records::{CONTENT_BYTES, Records};

pub(super) const SUITES: [Suite; 3] =
    [Suite::Aes128GcmSha256, Suite::Aes256GcmSha384, Suite::ChaCha20Poly1305Sha256];

fn key(suite: Suite, fill: u8) -> TrafficKey {
    let length = if suite == Suite::Aes256GcmSha384 { 48 } else { 32 };
    TrafficKey::derived(suite, Secret::new(&vec![fill; length]).expect("it is short"))
}

/// Returns a server and a client.
pub(super) fn pair(suite: Suite) -> (Records, Records) {
    (Records::new(key(suite, 1), key(suite, 2)), Records::new(key(suite, 2), key(suite, 1)))
}

fn staged(stage: impl FnOnce(&mut Out)) -> Vec<u8> {
    let mut out = Out::new();
    stage(&mut out);
    let bytes = out.staged_alone().expect("records are staged").to_vec();
    out.clear(0);
    bytes
}

/// Returns a record of the client with this type and content.
pub(super) fn record(client: &mut Records, kind: ContentType, content: &[u8]) -> Vec<u8> {
    staged(|out| client.stage(kind, content, out))
}

/// Returns a record of the server, after a KeyUpdate if one is due.
fn answer(server: &mut Records) -> Vec<u8> {
    staged(|out| assert_eq!(server.seal_from(b"an answer", out), Ok(())))
}

/// Returns the server's results for all of `wire`, and its own records.
fn advance(server: &mut Records, mut wire: &mut [u8]) -> (Vec<LayerProgress>, Vec<u8>) {
    let (mut results, mut out) = (Vec::new(), Out::new());
    loop {
        let progress = server.advance(wire, &mut out);
        let length = match &progress {
            LayerProgress::Opened { length, .. }
            | LayerProgress::Processed(length)
            | LayerProgress::Closed(length) => *length,
            LayerProgress::Incomplete | LayerProgress::Late | LayerProgress::Failed => 0,
        };
        wire = &mut wire[length..];
        results.push(progress);
        if length == 0 {
            let sent = out.staged_alone().expect("records are staged").to_vec();
            return (results, sent);
        }
    }
}

/// Asserts that the server answers the client's `wire` with `alert`.
#[track_caller]
fn refused(mut server: Records, mut client: Records, wire: &mut [u8], alert: AlertDescription) {
    let (results, mut sent) = advance(&mut server, wire);
    assert_eq!(results.last(), Some(&LayerProgress::Failed));
    // The alert is the last record, after KeyUpdates.
    let mut at = 0;
    let mut last = 0;
    while at < sent.len() {
        last = at;
        at += 5 + usize::from(u16::from_be_bytes([sent[at + 3], sent[at + 4]]));
        if at < sent.len() {
            client.advance(&mut sent[last..at], &mut Out::new());
        }
    }
    let opened = client.open_any(&mut sent[last..]);
    assert_eq!(opened, (ContentType::Alert, vec![2, u8::from(alert)]));
}

#[test]
fn every_broken_rule_gets_its_alert() {
    use AlertDescription as A;
    use ContentType as C;
    let update = |request| [24, 0, 0, 1, request];
    let long = vec![7; CONTENT_BYTES + 1];
    type Row<'a> = (&'a str, A, Vec<(C, &'a [u8])>);
    let rows: [Row<'_>; 13] = [
        ("a change of ciphers", A::UnexpectedMessage, vec![(C::ChangeCipherSpec, &[1])]),
        ("a heartbeat", A::UnexpectedMessage, vec![(C::Heartbeat, &[1])]),
        ("a hello", A::UnexpectedMessage, vec![(C::Handshake, &[1, 0, 0, 0])]),
        ("a finish", A::UnexpectedMessage, vec![(C::Handshake, &[20, 0, 0, 1, 0])]),
        ("an empty handshake record", A::UnexpectedMessage, vec![(C::Handshake, &[])]),
        ("an empty alert", A::UnexpectedMessage, vec![(C::Alert, &[])]),
        ("half an alert", A::DecodeError, vec![(C::Alert, &[1])]),
        ("two alerts in a record", A::DecodeError, vec![(C::Alert, &[1, 90, 1, 90])]),
        ("a long update", A::DecodeError, vec![(C::Handshake, &[24, 0, 0, 2, 0])]),
        ("an unknown update", A::IllegalParameter, vec![(C::Handshake, &[24, 0, 0, 1, 2])]),
        (
            "plaintext in an update",
            A::UnexpectedMessage,
            vec![(C::Handshake, &[24, 0]), (C::ApplicationData, b"a")],
        ),
        (
            "an update before the end of a record",
            A::UnexpectedMessage,
            vec![(C::Handshake, &[24, 0, 0, 1, 0, 24])],
        ),
        ("too much content", A::RecordOverflow, vec![(C::ApplicationData, &long)]),
    ];
    for suite in SUITES {
        for (_, alert, records) in &rows {
            let (server, mut client) = pair(suite);
            let mut wire: Vec<u8> =
                records.iter().flat_map(|(kind, content)| record(&mut client, *kind, content)).collect();
            refused(server, client, &mut wire, *alert);
        }
        // Too many records without plaintext, of two types. Each update changes the client's keys.
        let (server, mut client) = pair(suite);
        let mut wire: Vec<u8> = (0..33).flat_map(|_| record(&mut client, C::ApplicationData, b"")).collect();
        refused(server, client, &mut wire, A::UnexpectedMessage);
        let (server, mut client) = pair(suite);
        let mut wire = Vec::new();
        for _ in 0..33 {
            wire.extend(record(&mut client, C::Handshake, &update(1)));
            client.update_sending();
        }
        refused(server, client, &mut wire, A::UnexpectedMessage);
        // A record with only padding.
        let (server, mut client) = pair(suite);
        let mut wire = record(&mut client, C::from(0), &[0; 20]);
        refused(server, client, &mut wire, A::UnexpectedMessage);
        // Padding that exceeds the bound by one byte: the record's own type is 0, after another type.
        let padded = |padding| [&[7; CONTENT_BYTES - 8][..], &[23], &vec![0; padding]].concat();
        let (server, mut client) = pair(suite);
        let mut wire = record(&mut client, C::from(0), &padded(8));
        refused(server, client, &mut wire, A::RecordOverflow);
        let (mut server, mut client) = pair(suite);
        let mut wire = record(&mut client, C::from(0), &padded(7));
        let (results, _) = advance(&mut server, &mut wire);
        assert!(
            matches!(&results[0], LayerProgress::Opened { content, .. } if content.len() == CONTENT_BYTES - 8)
        );
        // Outer headers.
        for (header, alert) in [
            ([22, 3, 3, 0, 40], A::UnexpectedMessage),
            ([20, 3, 3, 0, 1], A::UnexpectedMessage),
            ([21, 3, 3, 0, 2], A::UnexpectedMessage),
            ([71, 69, 84, 32, 47], A::UnexpectedMessage),
            ([23, 3, 3, 0x41, 1], A::RecordOverflow),
            ([23, 3, 3, 255, 255], A::RecordOverflow),
            ([23, 3, 3, 0, 0], A::BadRecordMac),
        ] {
            let (server, client) = pair(suite);
            refused(server, client, &mut header.clone(), alert);
        }
    }
}

#[test]
fn a_record_that_was_changed_is_not_opened() {
    for suite in SUITES {
        let (_, mut client) = pair(suite);
        let sealed = record(&mut client, ContentType::ApplicationData, b"plaintext");
        for at in (1..3).chain(5..sealed.len()) {
            let (server, client) = pair(suite);
            let mut wrong = sealed.clone();
            wrong[at] ^= 1;
            refused(server, client, &mut wrong, AlertDescription::BadRecordMac);
        }
        let (server, client) = pair(suite);
        refused(server, client, &mut [&sealed[..], &sealed[..]].concat(), AlertDescription::BadRecordMac);
    }
}

#[test]
fn alerts_of_the_peer_end_the_connection_or_its_output() {
    for suite in SUITES {
        for (description, expected) in [
            (0, LayerProgress::Closed(24)),
            (90, LayerProgress::Processed(24)),
            (40, LayerProgress::Failed),
            (255, LayerProgress::Failed),
        ] {
            let (mut server, mut client) = pair(suite);
            let mut wire = record(&mut client, ContentType::Alert, &[1, description]);
            let (results, sent) = advance(&mut server, &mut wire);
            assert_eq!(results[0], expected, "alert {description}");
            assert_eq!(sent, b"", "an alert was answered with an alert");
        }
    }
}

#[test]
fn padding_and_split_updates_are_read() {
    for suite in SUITES {
        let (mut server, mut client) = pair(suite);
        // Here, the type byte is part of the content, and the zeros of padding end with a type of 0.
        let mut wire = record(&mut client, ContentType::from(0), &[b"text", &[23][..], &[0; 300]].concat());
        let (results, _) = advance(&mut server, &mut wire);
        assert_eq!(results[0], LayerProgress::Opened { content: 5..9, length: 5 + 4 + 1 + 300 + 17 });
        assert_eq!(wire[5..9], *b"text");
        // An update of the client in records of a byte each, which demands an update from the server.
        let update = [24, 0, 0, 1, 1];
        let mut wire: Vec<u8> =
            update.iter().flat_map(|byte| record(&mut client, ContentType::Handshake, &[*byte])).collect();
        client.update_sending();
        wire.extend(record(&mut client, ContentType::ApplicationData, b"after it"));
        let (results, mut sent) = advance(&mut server, &mut wire);
        assert!(matches!(results[5], LayerProgress::Opened { .. }), "{results:?}");
        sent.extend(answer(&mut server));
        let (results, _) = advance(&mut client, &mut sent);
        assert!(
            matches!(results[..], [LayerProgress::Processed(_), LayerProgress::Opened { .. }, ..]),
            "{results:?}"
        );
    }
}

#[test]
fn keys_are_updated_before_their_limit() {
    for suite in [Suite::Aes128GcmSha256, Suite::Aes256GcmSha384] {
        let mut sealing = key(suite, 2);
        sealing.set_sequence((1 << 24) - 40);
        let mut opening = key(suite, 2);
        opening.set_sequence((1 << 24) - 40);
        let mut server = Records::new(key(suite, 1), sealing);
        let mut client = Records::new(opening, key(suite, 1));
        let mut updates = 0;
        for _ in 0..100 {
            let mut sent = answer(&mut server);
            let (results, _) = advance(&mut client, &mut sent);
            updates += results.iter().filter(|result| matches!(result, LayerProgress::Processed(_))).count();
            assert!(
                results.iter().any(|result| matches!(result, LayerProgress::Opened { .. })),
                "{results:?}"
            );
        }
        assert_eq!(updates, 1);
    }
}

#[test]
fn a_sequence_number_does_not_wrap() {
    let mut sealing = key(Suite::ChaCha20Poly1305Sha256, 2);
    sealing.set_sequence(u64::MAX);
    assert!(sealing.seal(&[0; 5], &mut [0; 8 + 17]).is_err());
}

#[test]
fn contexts_are_bounded_and_made_again() {
    let mut pairs: Vec<_> = (0..1500).map(|_| pair(Suite::Aes128GcmSha256)).collect();
    for _ in 0..3 {
        for (server, client) in &mut pairs {
            let mut wire = record(client, ContentType::ApplicationData, b"a request");
            let (results, _) = advance(server, &mut wire);
            assert!(matches!(results[0], LayerProgress::Opened { .. }));
            assert!(cached_contexts() <= 1024);
        }
    }
    drop(pairs);
    assert_eq!(cached_contexts(), 0, "contexts of ended connections remain");
}

#[test]
fn an_idle_connection_is_small() {
    assert!(size_of::<TlsState>() <= 400, "{} bytes", size_of::<TlsState>());
}
