//! The state of an idle connection of TLS 1.3 as bytes, by which another process continues it.

use std::sync::Arc;

use tenfold_http::TlsFacts;
use tenfold_http::layer::MovedLayer;

use super::capture::{PROTOCOLS, Secret};
use super::keys::{Suite, TrafficKey};
use super::records::Records;

/// The version in the facts of a connection of TLS 1.3 (RFC 8446).
pub(super) const VERSION: &str = "TLSv1.3";

/// The most bytes of a name.
const MOST_NAME: usize = 255;
/// The most names of a certificate.
const MOST_NAMES: usize = 100;
/// The most bytes besides the names: suite, protocol and kind, two secrets of SHA-384 with record numbers, the sealed
/// bytes, and two counts.
const FIXED: usize = 3 + 2 * (48 + 8) + 4 + 2;

const SUITES: [Suite; 3] = [Suite::Aes128GcmSha256, Suite::Aes256GcmSha384, Suite::ChaCha20Poly1305Sha256];

/// Whether a connection with these facts can be written, and another process accepts it.
pub(super) fn fits(facts: &TlsFacts) -> bool {
    let of_certificate = facts.certificate_names.as_deref().unwrap_or_default();
    let mut names =
        facts.server_name.iter().map(AsRef::as_ref).chain(of_certificate.iter().map(String::as_str));
    let bytes = names.try_fold(FIXED, |bytes, name| is_name(name).then_some(bytes + 1 + name.len()));
    of_certificate.len() <= MOST_NAMES && bytes.is_some_and(|bytes| bytes <= MovedLayer::MOST_BYTES)
}

/// A name goes to logs.
fn is_name(name: &str) -> bool {
    name.len() <= MOST_NAME && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Writes a connection; `None` unless it [`fits`].
pub(super) fn to_bytes(records: &Records, facts: &TlsFacts) -> Option<MovedLayer> {
    if !fits(facts) {
        return None;
    }
    let mut into = MovedLayer::default();
    let (receiving, sending) = records.keys();
    let place = |known: &[&str], wanted: &str| known.iter().position(|one| *one == wanted);
    let suite = SUITES.iter().position(|suite| *suite == receiving.suite())?;
    let alpn = facts.alpn.map_or(Some(0), |alpn| place(&PROTOCOLS, alpn).map(|place| place + 1))?;
    into.push(&[suite as u8, alpn as u8, u8::from(facts.resumed)]);
    for key in [receiving, sending] {
        into.push(key.secret().bytes());
        into.push(&key.sequence().to_le_bytes());
    }
    into.push(&records.sent().to_le_bytes());
    let names = facts.certificate_names.as_deref();
    let count = names.map_or(Some(0), |names| u8::try_from(names.len() + 1).ok())?;
    into.push(&[u8::from(facts.server_name.is_some()), count]);
    for name in
        facts.server_name.iter().map(AsRef::as_ref).chain(names.into_iter().flatten().map(String::as_str))
    {
        into.push(&[u8::try_from(name.len()).ok()?]);
        into.push(name.as_bytes());
    }
    into.fits().then_some(into)
}

/// Reads a connection. The bytes may come from a compromised process.
pub(super) fn from_bytes(bytes: &MovedLayer) -> Option<(Records, TlsFacts)> {
    let mut rest = Reader(bytes.bytes());
    let [suite, alpn, resumed] = rest.array()?;
    let suite = *SUITES.get(usize::from(suite))?;
    let alpn = match alpn {
        0 => None,
        place => Some(*PROTOCOLS.get(usize::from(place) - 1)?),
    };
    let receiving = rest.key(suite)?;
    let sending = rest.key(suite)?;
    let sent = u32::from_le_bytes(rest.array()?);
    let [has_name, count] = rest.array()?;
    let server_name = if has_name == 1 { Some(rest.name()?.into_boxed_str()) } else { None };
    let certificate_names: Option<Arc<[String]>> = match usize::from(count) {
        0 => None,
        more if more > MOST_NAMES + 1 => return None,
        more => Some((1..more).map(|_| rest.name()).collect::<Option<Vec<_>>>()?.into()),
    };
    let facts = TlsFacts {
        version: VERSION,
        cipher: suite.name(),
        server_name,
        alpn,
        resumed: resumed == 1,
        certificate_names,
    };
    rest.0.is_empty().then(|| (Records::resumed(receiving, sending, sent), facts))
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        let (own, behind) = self.0.split_first_chunk()?;
        self.0 = behind;
        Some(*own)
    }

    fn key(&mut self, suite: Suite) -> Option<TrafficKey> {
        let (secret, behind) = self.0.split_at_checked(suite.secret_bytes())?;
        self.0 = behind;
        let secret = Secret::new(secret)?;
        Some(TrafficKey::moved(suite, secret, u64::from_le_bytes(self.array()?)))
    }

    fn name(&mut self) -> Option<String> {
        let [length] = self.array()?;
        let (name, behind) = self.0.split_at_checked(usize::from(length).min(MOST_NAME))?;
        self.0 = behind;
        let name = str::from_utf8(name).ok()?;
        is_name(name).then(|| name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use tenfold_http::layer::LayerProgress;

    use super::*;

    fn facts(names: Option<Vec<String>>) -> TlsFacts {
        TlsFacts {
            version: VERSION,
            cipher: Suite::Aes256GcmSha384.name(),
            server_name: Some("a.example".into()),
            alpn: Some("http/1.1"),
            resumed: true,
            certificate_names: names.map(Into::into),
        }
    }

    fn secret(suite: Suite, byte: u8) -> Secret {
        Secret::new(&vec![byte; suite.secret_bytes()]).expect("it has the length of a secret")
    }

    fn records(suite: Suite, receiving: u8, sending: u8) -> Records {
        let key = |byte, sequence| TrafficKey::moved(suite, secret(suite, byte), sequence);
        Records::resumed(key(receiving, 7), key(sending, 9), 5000)
    }

    #[test]
    fn a_moved_connection_opens_and_seals_the_next_records() {
        for suite in SUITES {
            let facts = TlsFacts {
                cipher: suite.name(),
                ..facts(Some(vec!["a.example".into(), "*.b.example".into()]))
            };
            let bytes = to_bytes(&records(suite, 1, 2), &facts).expect("it fits");
            let (mut server, read) = from_bytes(&bytes).expect("it is whole");
            assert_eq!(read, facts);
            assert_eq!(server.sent(), 5000);
            let mut out = tenfold_http::Out::new();
            assert_eq!(server.seal(b"hello", &mut out), Ok(5));
            // The client has the keys the other way round.
            let key = |byte, sequence| TrafficKey::moved(suite, secret(suite, byte), sequence);
            let mut client = Records::resumed(key(2, 9), key(1, 7), 0);
            let mut record = out.staged_alone().expect("a record").to_vec();
            assert_eq!(client.open_any(&mut record).1, b"hello");
            let mut request = tenfold_http::Out::new();
            assert_eq!(client.seal(b"again", &mut request), Ok(5));
            let mut record = request.staged_alone().expect("a record").to_vec();
            let opened = server.advance(&mut record, &mut out);
            assert!(matches!(opened, LayerProgress::Opened { .. }), "{opened:?}");
        }
    }

    #[test]
    fn other_bytes_are_no_connection() {
        let bytes = to_bytes(&records(Suite::Aes256GcmSha384, 1, 2), &facts(None)).expect("it fits");
        for length in 0..bytes.bytes().len() {
            let mut part = MovedLayer::default();
            part.push(&bytes.bytes()[..length]);
            assert!(from_bytes(&part).is_none(), "{length} bytes");
        }
        for place in 0..bytes.bytes().len() {
            for value in 0..=u8::MAX {
                let mut changed = bytes.bytes().to_vec();
                changed[place] = value;
                let mut other = MovedLayer::default();
                other.push(&changed);
                // Whatever it is, reading it ends.
                let _ = from_bytes(&other).map(|(records, facts)| to_bytes(&records, &facts));
            }
        }
    }

    #[test]
    fn a_connection_that_is_written_can_be_read() {
        let records = records(Suite::Aes256GcmSha384, 1, 2);
        let mut moved = 0;
        for length in [1, 8, 40, 41, 60, 255, 256] {
            for count in (0..260).step_by(if length > 8 { 1 } else { 7 }) {
                let bytes = to_bytes(&records, &facts(Some(vec!["n".repeat(length); count])));
                moved += usize::from(bytes.is_some());
                assert!(
                    bytes.is_none_or(|bytes| from_bytes(&bytes).is_some()),
                    "{count} names of {length} bytes"
                );
            }
        }
        assert!(moved > 100, "{moved} of them move");
        assert!(to_bytes(&records, &facts(Some(vec!["a name".to_owned()]))).is_none());
    }

    #[test]
    fn a_certificate_with_very_many_names_does_not_move() {
        let names = |count| facts(Some(vec!["a-rather-long-name-of-a-host.example".to_owned(); count]));
        let records = records(Suite::Aes128GcmSha256, 1, 2);
        assert!(to_bytes(&records, &names(50)).is_some());
        assert!(to_bytes(&records, &names(200)).is_none());
        assert!(to_bytes(&records, &names(300)).is_none());
    }
}
