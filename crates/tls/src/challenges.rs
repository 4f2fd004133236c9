//! Responses to the challenges of a certificate authority (RFC 8555 §8, RFC 8737). The process that obtains
//! certificates publishes them, and workers read them.

use std::sync::Arc;

use rcgen::{CertificateParams, CustomExtension, DistinguishedName, KeyPair};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::sign::CertifiedKey;

use crate::shared::SharedBytes;

/// The protocol of validation by a challenge certificate (RFC 8737 §6.2). A connection that negotiated it is
/// closed after its handshake.
pub const ACME_TLS_1: &[u8] = b"acme-tls/1";

/// The prefix of the paths that an authority requests over HTTP (RFC 8555 §8.3). Redirects to HTTPS exempt
/// it.
pub const HTTP_PREFIX: &str = "/.well-known/acme-challenge/";

/// The capacity for responses: about a hundred certificates.
pub const MAX_BYTES: usize = 64 * 1024;

/// The responses to all pending challenges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingChallenges {
    http: Vec<HttpResponse>,
    tls: Vec<TlsResponse>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct HttpResponse {
    token: String,
    body: String,
}

/// A certificate for one validation, with its key in PKCS #8. The key has no other use.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TlsResponse {
    name: String,
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl PendingChallenges {
    /// Adds the response to an HTTP challenge.
    pub fn add_http(&mut self, token: &str, key_authorization: &str) {
        self.http.push(HttpResponse { token: token.to_owned(), body: key_authorization.to_owned() });
    }

    /// Adds the response to a TLS challenge: a certificate for `name` with the digest of the key
    /// authorization.
    pub fn add_tls(&mut self, name: &str, digest: &[u8]) -> Result<(), rcgen::Error> {
        let mut params = CertificateParams::new([name.to_owned()])?;
        params.distinguished_name = DistinguishedName::new();
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.der().to_vec();
        self.tls.push(TlsResponse { name: name.to_owned(), certificate, key: key.serialize_der() });
        Ok(())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for HttpResponse { token, body } in &self.http {
            bytes.push(HTTP);
            put(&mut bytes, token.as_bytes());
            put(&mut bytes, body.as_bytes());
        }
        for TlsResponse { name, certificate, key } in &self.tls {
            bytes.push(TLS);
            put(&mut bytes, name.as_bytes());
            put(&mut bytes, certificate);
            put(&mut bytes, key);
        }
        bytes
    }

    fn from_bytes(mut bytes: &[u8]) -> Option<PendingChallenges> {
        let mut pending = PendingChallenges::default();
        while let Some((&kind, rest)) = bytes.split_first() {
            bytes = rest;
            match kind {
                HTTP => {
                    let (token, body) = (text(&mut bytes)?, text(&mut bytes)?);
                    pending.http.push(HttpResponse { token, body });
                }
                TLS => {
                    let name = text(&mut bytes)?;
                    let (certificate, key) = (take(&mut bytes)?.to_vec(), take(&mut bytes)?.to_vec());
                    pending.tls.push(TlsResponse { name, certificate, key });
                }
                _ => return None,
            }
        }
        Some(pending)
    }
}

const HTTP: u8 = 1;
const TLS: u8 = 2;

/// Appends a field after its length. A field whose length overflows makes the whole exceed the shared memory.
fn put(bytes: &mut Vec<u8>, field: &[u8]) {
    bytes.extend_from_slice(&(field.len() as u32).to_le_bytes());
    bytes.extend_from_slice(field);
}

fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (field, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    *bytes = rest;
    Some(field)
}

fn text(bytes: &mut &[u8]) -> Option<String> {
    String::from_utf8(take(bytes)?.to_vec()).ok()
}

/// The shared memory in which responses are published.
#[derive(Clone)]
pub struct ChallengeBoard {
    shared: SharedBytes,
}

impl ChallengeBoard {
    /// Returns the board in shared memory, which should have a capacity of [`MAX_BYTES`].
    pub fn new(shared: SharedBytes) -> ChallengeBoard {
        ChallengeBoard { shared }
    }

    /// Replaces all responses; returns `false` if they exceed the capacity.
    #[must_use]
    pub fn publish(&self, pending: &PendingChallenges) -> bool {
        self.shared.publish(&pending.to_bytes())
    }

    /// Returns the body for the path of [`HTTP_PREFIX`] and `token`.
    pub fn http_response(&self, token: &str) -> Option<String> {
        let pending = self.read()?;
        pending.http.into_iter().find(|response| response.token == token).map(|response| response.body)
    }

    /// Returns the certificate for a handshake with [`ACME_TLS_1`] for `name`, in lower case.
    pub fn tls_response(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let pending = self.read()?;
        let response = pending.tls.into_iter().find(|response| response.name == name)?;
        let key = any_supported_type(&PrivatePkcs8KeyDer::from(response.key).into()).ok()?;
        Some(Arc::new(CertifiedKey::new(vec![response.certificate.into()], key)))
    }

    fn read(&self) -> Option<PendingChallenges> {
        PendingChallenges::from_bytes(&self.shared.read()?.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use x509_parser::prelude::{FromDer, X509Certificate};

    use crate::shared::private_words;

    fn board(bytes: usize) -> ChallengeBoard {
        ChallengeBoard::new(SharedBytes::new(private_words(SharedBytes::words_for(bytes))))
    }

    #[test]
    fn a_response_is_there_while_its_challenge_is_pending() {
        let board = board(MAX_BYTES);
        assert!(board.http_response("token").is_none());
        let mut pending = PendingChallenges::default();
        pending.add_http("token", "token.thumbprint");
        pending.add_tls("a.test", &[7; 32]).expect("a certificate");
        assert!(board.publish(&pending));
        assert_eq!(board.http_response("token").as_deref(), Some("token.thumbprint"));
        assert!(board.http_response("other").is_none() && board.http_response("").is_none());
        let response = board.tls_response("a.test").expect("a certificate");
        let (_, certificate) = X509Certificate::from_der(&response.cert[0]).expect("a certificate");
        assert_eq!(response.key.public_key().expect("a key").as_ref(), certificate.public_key().raw);
        assert!(board.tls_response("b.test").is_none());
        assert!(board.publish(&PendingChallenges::default()));
        assert!(board.http_response("token").is_none() && board.tls_response("a.test").is_none());
    }

    #[test]
    fn a_hundred_certificates_fit_and_more_than_the_room_are_refused() {
        let mut pending = PendingChallenges::default();
        for host in 0..100 {
            pending
                .add_tls(&format!("a-rather-long-name-{host}.example.org"), &[7; 32])
                .expect("a certificate");
        }
        assert!(board(MAX_BYTES).publish(&pending), "{} bytes", pending.to_bytes().len());
        assert!(!board(MAX_BYTES / 4).publish(&pending));
    }

    #[test]
    fn any_bytes_are_responses_that_can_be_written_again_or_none() {
        bolero::check!().with_iterations(5000).with_max_len(128).for_each(|bytes| {
            if let Some(pending) = PendingChallenges::from_bytes(bytes) {
                // The order may differ: responses over HTTP are written first.
                let written = pending.to_bytes();
                assert_eq!(written.len(), bytes.len());
                assert_eq!(PendingChallenges::from_bytes(&written), Some(pending));
            }
        });
    }
}
