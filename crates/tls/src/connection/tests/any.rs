//! Any input. The test is also a fuzz target: `cargo xtask fuzz --minutes 10 record`.

use rustls::ContentType;
use tenfold_http::Out;
use tenfold_http::layer::LayerProgress;

use super::sealing::{SUITES, pair, record};

/// A part of the client's output.
#[derive(Clone, Debug, bolero::TypeGenerator)]
enum WirePart {
    /// A record of this type.
    Sealed(u8, Vec<u8>),
    /// An update of the client's keys; whether it demands an update from the server.
    Update(bool),
    /// Bytes that are not a record.
    Raw(Vec<u8>),
}

/// For any split of the bytes, the opened plaintext is the client's plaintext in order. Bytes that are not
/// records yield no plaintext.
#[test]
fn any_bytes_are_records_in_order_or_end_the_connection() {
    bolero::check!().with_iterations(4000).with_max_len(256).with_type::<(u8, u8, Vec<WirePart>)>().for_each(
        |(suite, step, parts)| {
            let suite = SUITES[usize::from(*suite) % SUITES.len()];
            let (_, mut client) = pair(suite);
            let (mut wire, mut expected, mut broken) = (Vec::new(), Vec::new(), false);
            for part in parts {
                match part {
                    WirePart::Sealed(kind, content) => {
                        wire.extend(record(&mut client, ContentType::from(*kind), content));
                        match ContentType::from(*kind) {
                            ContentType::ApplicationData if !broken => expected.extend_from_slice(content),
                            _ => broken = true,
                        }
                    }
                    WirePart::Update(request) => {
                        let message = [24, 0, 0, 1, u8::from(*request)];
                        wire.extend(record(&mut client, ContentType::Handshake, &message));
                        client.update_sending();
                    }
                    WirePart::Raw(bytes) => {
                        wire.extend_from_slice(bytes);
                        broken |= !bytes.is_empty();
                    }
                }
            }
            let whole = opened(suite, &wire, wire.len().max(1));
            let cut = opened(suite, &wire, usize::from(*step).max(1));
            assert_eq!(whole, cut);
            // A record of another type may carry no plaintext, such as an ignored alert.
            let plaintext = &whole.0;
            assert!(plaintext.starts_with(&expected) || expected.starts_with(plaintext));
            assert!(broken || whole.1 || *plaintext == expected);
        },
    );
}

/// Returns the plaintext of `wire`, received in pieces of `step` bytes, and whether the connection ended.
fn opened(suite: crate::connection::keys::Suite, wire: &[u8], step: usize) -> (Vec<u8>, bool) {
    let (mut server, _) = pair(suite);
    let (mut input, mut out, mut plaintext) = (Vec::new(), Out::new(), Vec::new());
    for piece in wire.chunks(step) {
        input.extend_from_slice(piece);
        loop {
            let length = match server.advance(&mut input, &mut out) {
                LayerProgress::Incomplete => break,
                LayerProgress::Processed(length) => length,
                LayerProgress::Opened { content, length } => {
                    plaintext.extend_from_slice(&input[content]);
                    length
                }
                LayerProgress::Closed(_) | LayerProgress::Late | LayerProgress::Failed => {
                    return (plaintext, true);
                }
            };
            input.drain(..length);
        }
    }
    (plaintext, false)
}
