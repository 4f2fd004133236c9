//! Records that the kernel seals: its key, and the marked records.

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rustls::ContentType;
use tenfold_http::layer::{KernelSealing, LayerProgress};
use tenfold_http::{IoError, Out, SealedOutput};

use super::sealing::{SUITES, pair, record};
use crate::connection::KernelUse;
use crate::connection::keys::{Suite, sample_kernel_parameters};
use crate::connection::records::Records;

const ASKS: &[u8] = &[24, 0, 0, 1, 1];
const ANSWERS: &[u8] = &[24, 0, 0, 1, 0];

fn taken(at: u64) -> Option<KernelSealing> {
    Some(KernelSealing::new(SealedOutput { queued: 0, record: at }))
}

/// Returns a server whose records the kernel seals, and a client.
fn pair_with_kernel(suite: Suite, rekeys: bool) -> (Records, Records) {
    let (mut server, client) = pair(suite);
    server
        .pass_to_kernel(taken(0), KernelUse { required: true, rekeys })
        .expect("the kernel accepted the key");
    (server, client)
}

/// The client demands a KeyUpdate. Returns the records marked for the kernel.
fn ask(server: &mut Records, client: &mut Records) -> Vec<(u8, Vec<u8>)> {
    let mut out = Out::new();
    let mut wire = record(client, ContentType::Handshake, ASKS);
    client.update_sending();
    assert_eq!(server.advance(&mut wire, &mut out), LayerProgress::Processed(wire.len()));
    marked(&mut out)
}

fn marked(out: &mut Out) -> Vec<(u8, Vec<u8>)> {
    let mut records = Vec::new();
    while let Some((kind, content)) = out.record() {
        let content = content.to_vec();
        out.advance(content.len() as u64);
        records.push((kind, content));
    }
    assert!(out.is_empty(), "there is other output");
    records
}

/// Seals like the kernel with `parameters`.
pub(super) fn seal(parameters: &[u8], kind: u8, content: &[u8]) -> Vec<u8> {
    let (algorithm, salt, iv) = match u16::from_ne_bytes([parameters[2], parameters[3]]) {
        51 => (&AES_128_GCM, 4, 8),
        52 => (&AES_256_GCM, 4, 8),
        54 => (&CHACHA20_POLY1305, 0, 12),
        other => panic!("there is no cipher {other}"),
    };
    assert_eq!(parameters[..2], 0x0304u16.to_ne_bytes());
    let (iv, rest) = parameters[4..].split_at(iv);
    let (key, rest) = rest.split_at(algorithm.key_len());
    let (salt, sequence) = rest.split_at(salt);
    let mut nonce: [u8; 12] = [salt, iv].concat().try_into().expect("a nonce has 12 bytes");
    assert_eq!(sequence.len(), 8);
    nonce[4..].iter_mut().zip(sequence).for_each(|(byte, of_number)| *byte ^= of_number);
    let key = LessSafeKey::new(UnboundKey::new(algorithm, key).expect("it has its length"));
    let mut sealed = [content, &[kind]].concat();
    let [high, low] = ((sealed.len() + 16) as u16).to_be_bytes();
    let header = [23, 3, 3, high, low];
    let nonce = Nonce::assume_unique_for_key(nonce);
    key.seal_in_place_append_tag(nonce, Aad::from(header), &mut sealed).expect("it is short");
    [&header[..], &sealed].concat()
}

#[test]
fn the_parameters_have_the_sizes_of_linux_tls_h_and_continue_at_the_next_record() {
    assert_eq!(sample_kernel_parameters().map(|parameters| parameters.len()), [40, 56, 56]);
    for (suite, size) in SUITES.into_iter().zip([40, 56, 56]) {
        let (mut server, mut client) = pair(suite);
        let mut out = Out::new();
        server.seal_from(b"by the process", &mut out).expect("the key can");
        let mut first = out.staged_alone().expect("records are staged").to_vec();
        assert_eq!(client.open_any(&mut first), (ContentType::ApplicationData, b"by the process".to_vec()));
        let parameters = server.kernel_parameters().expect("the kernel was not asked");
        assert_eq!(parameters.len(), size);
        let mut second = seal(&parameters, 23, b"by the kernel");
        assert_eq!(client.open_any(&mut second), (ContentType::ApplicationData, b"by the kernel".to_vec()));
    }
}

#[test]
fn a_kernel_that_refuses_is_not_asked_again_and_ends_the_connection_if_it_is_required() {
    let (mut server, _) = pair(Suite::Aes128GcmSha256);
    assert!(server.kernel_parameters().is_some());
    let how = KernelUse { required: false, rekeys: false };
    assert_eq!(server.pass_to_kernel(None, how), Ok(()));
    assert!(server.kernel_parameters().is_none() && server.kernel_sealing().is_none());
    let (mut server, _) = pair(Suite::Aes128GcmSha256);
    assert_eq!(server.pass_to_kernel(None, KernelUse { required: true, ..how }), Err(IoError::Gone));
}

#[test]
fn alerts_are_marked_for_the_kernel() {
    let (mut server, _) = pair_with_kernel(Suite::Aes128GcmSha256, false);
    assert!(server.kernel_parameters().is_none());
    let mut out = Out::new();
    server.close(&mut out);
    assert_eq!(marked(&mut out), [(21, vec![1, 0])]);
    assert_eq!(server.advance(&mut [23, 3, 3, 0, 0], &mut out), LayerProgress::Failed);
    assert_eq!(marked(&mut out), [(21, vec![2, 20])]);
}

#[test]
fn a_key_update_is_answered_once_and_the_kernel_gets_the_new_key() {
    for suite in SUITES {
        let (mut server, mut client) = pair_with_kernel(suite, true);
        assert_eq!(ask(&mut server, &mut client), [(22, ANSWERS.to_vec())]);
        let parameters = server.kernel_parameters().expect("the kernel has the old key");
        assert_eq!(ask(&mut server, &mut client), [], "the first answer is still unsent");
        let mut out = Out::new();
        server.close(&mut out);
        assert_eq!(marked(&mut out), [], "an alert would be sealed with the old key");
        // The client receives the KeyUpdate, and then a record under the new key.
        client.update_receiving();
        let mut sealed = seal(&parameters, 23, b"anew");
        assert_eq!(client.open_any(&mut sealed), (ContentType::ApplicationData, b"anew".to_vec()));
        let how = KernelUse { required: false, rekeys: true };
        assert_eq!(server.pass_to_kernel(taken(0), how), Ok(()));
        assert!(server.kernel_parameters().is_none() && !server.is_ending());
        assert_eq!(ask(&mut server, &mut client), [(22, ANSWERS.to_vec())]);
        assert_eq!(server.pass_to_kernel(None, how), Err(IoError::Gone), "the client expects the new key");
    }
}

#[test]
fn a_kernel_that_cannot_change_keys_closes_after_the_next_response() {
    let (mut server, mut client) = pair_with_kernel(Suite::Aes256GcmSha384, false);
    assert!(!server.is_ending());
    assert_eq!(ask(&mut server, &mut client), []);
    assert!(server.is_ending() && server.kernel_parameters().is_none());
    let mut out = Out::new();
    server.close(&mut out);
    assert_eq!(marked(&mut out), [(21, vec![1, 0])]);
}

#[test]
fn a_key_that_has_sealed_half_of_its_records_is_changed_or_the_connection_ends() {
    const HALF: u64 = 1 << 23;
    let mut out = Out::new();
    let (mut server, _) = pair_with_kernel(Suite::Aes128GcmSha256, true);
    assert_eq!(server.limit_kernel(HALF - 1, &mut out), Ok(()));
    assert_eq!(marked(&mut out), []);
    assert_eq!(server.limit_kernel(HALF, &mut out), Ok(()));
    assert_eq!(marked(&mut out), [(22, ANSWERS.to_vec())]);
    assert!(server.kernel_parameters().is_some());
    let (mut server, _) = pair_with_kernel(Suite::Aes256GcmSha384, false);
    assert_eq!(server.limit_kernel(HALF, &mut out), Ok(()));
    assert!(out.is_empty() && server.is_ending());
    assert_eq!(server.limit_kernel(HALF / 2 * 3, &mut out), Err(IoError::Gone));
    let (mut server, _) = pair_with_kernel(Suite::ChaCha20Poly1305Sha256, false);
    assert_eq!(server.limit_kernel(1 << 40, &mut out), Ok(()));
    assert!(!server.is_ending(), "ChaCha20-Poly1305 has no such limit");
}
