//! Responses to the challenges of a certificate authority (RFC 8555 §8, RFC 8737). The process that obtains
//! certificates publishes them, and workers read them.

use std::sync::Arc;

use base64ct::{Base64, Encoding};
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
pub const MAX_BYTES: usize = 96 * 1024;

/// The responses to all pending challenges, a line each: `http TOKEN BODY` or `tls NAME CERTIFICATE KEY`. The
/// certificate and its key, in PKCS #8, are in base64. The key has no other use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingChallenges(String);

impl PendingChallenges {
    /// Adds the response to an HTTP challenge.
    pub fn add_http(&mut self, token: &str, key_authorization: &str) {
        self.0 += &format!("http {token} {key_authorization}\n");
    }

    /// Adds the response to a TLS challenge: a certificate for `name` with the digest of the key
    /// authorization.
    pub fn add_tls(&mut self, name: &str, digest: &[u8]) -> Result<(), rcgen::Error> {
        let mut params = CertificateParams::new([name.to_owned()])?;
        params.distinguished_name = DistinguishedName::new();
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
        let key = KeyPair::generate()?;
        let certificate = Base64::encode_string(params.self_signed(&key)?.der());
        self.0 += &format!("tls {name} {certificate} {}\n", Base64::encode_string(&key.serialize_der()));
        Ok(())
    }
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
        self.shared.publish(pending.0.as_bytes())
    }

    /// Returns the body for the path of [`HTTP_PREFIX`] and `token`.
    pub fn http_response(&self, token: &str) -> Option<String> {
        self.find("http ", token)
    }

    /// Returns the certificate for a handshake with [`ACME_TLS_1`] for `name`, in lower case.
    pub fn tls_response(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let response = self.find("tls ", name)?;
        let (certificate, key) = response.split_once(' ')?;
        let key = PrivatePkcs8KeyDer::from(Base64::decode_vec(key).ok()?);
        let key = any_supported_type(&key.into()).ok()?;
        Some(Arc::new(CertifiedKey::new(vec![Base64::decode_vec(certificate).ok()?.into()], key)))
    }

    /// Returns the response in the line of this kind and name.
    fn find(&self, kind: &str, name: &str) -> Option<String> {
        let text = String::from_utf8(self.shared.read()?.1).ok()?;
        let response = |line: &str| {
            let rest = line.strip_prefix(kind)?.strip_prefix(name)?.strip_prefix(' ')?;
            Some(rest.to_owned())
        };
        text.lines().find_map(response)
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
        assert!(board(MAX_BYTES).publish(&pending), "{} bytes", pending.0.len());
        assert!(!board(MAX_BYTES / 4).publish(&pending));
    }
}
