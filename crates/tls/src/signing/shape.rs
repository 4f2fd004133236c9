//! The forms of the messages that a TLS server signs.

use rustls::SignatureScheme;

/// RFC 8446 §4.4.3: spaces, the context, a zero, then the hash of the transcript.
const CONTEXT_1_3: &[u8] = b"TLS 1.3, server CertificateVerify\0";
const SPACES: usize = 64;

/// RFC 5246 §7.4.3: the random values of client and server, then the server's parameters.
const RANDOMS: usize = 64;

/// `named_curve` (RFC 8422 §5.4).
const NAMED_CURVE: u8 = 3;

/// Named groups and the lengths of their public keys: P-256, P-384, P-521 (uncompressed), X25519.
const GROUPS: [(u16, usize); 4] = [(23, 65), (24, 97), (25, 133), (29, 32)];

/// The most bytes of a message of either form.
pub(super) const MAX_MESSAGE: usize = RANDOMS + 4 + 133;

/// Whether a server signs `message` by `scheme`: the CertificateVerify of TLS 1.3, or the parameters of an
/// ephemeral key exchange in TLS 1.2.
pub(super) fn is_handshake(message: &[u8], scheme: SignatureScheme) -> bool {
    let is_legacy = matches!(
        scheme,
        SignatureScheme::RSA_PKCS1_SHA256
            | SignatureScheme::RSA_PKCS1_SHA384
            | SignatureScheme::RSA_PKCS1_SHA512
    );
    (!is_legacy && is_certificate_verify(message)) || is_key_exchange(message)
}

fn is_certificate_verify(message: &[u8]) -> bool {
    let Some((spaces, rest)) = message.split_at_checked(SPACES) else { return false };
    let hash = rest.strip_prefix(CONTEXT_1_3);
    // SHA-256 or SHA-384, depending on the cipher suite.
    spaces.iter().all(|&byte| byte == b' ') && hash.is_some_and(|hash| [32, 48].contains(&hash.len()))
}

fn is_key_exchange(message: &[u8]) -> bool {
    let Some((_, [NAMED_CURVE, high, low, length, public @ ..])) = message.split_at_checked(RANDOMS) else {
        return false;
    };
    let group = u16::from_be_bytes([*high, *low]);
    usize::from(*length) == public.len() && GROUPS.contains(&(group, public.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate_verify(hash: usize) -> Vec<u8> {
        [&[b' '; SPACES], CONTEXT_1_3, &vec![7; hash]].concat()
    }

    fn key_exchange(group: u16, length: usize) -> Vec<u8> {
        let [high, low] = group.to_be_bytes();
        [&[b' '; RANDOMS][..], &[NAMED_CURVE, high, low, length as u8], &vec![7; length]].concat()
    }

    const PSS: SignatureScheme = SignatureScheme::RSA_PSS_SHA256;
    const PKCS1: SignatureScheme = SignatureScheme::RSA_PKCS1_SHA256;

    #[test]
    fn only_messages_of_a_tls_server_are_signed() {
        for hash in [32, 48] {
            assert!(is_handshake(&certificate_verify(hash), PSS));
            assert!(!is_handshake(&certificate_verify(hash), PKCS1), "not in TLS 1.3");
        }
        for (group, length) in GROUPS {
            assert!(is_handshake(&key_exchange(group, length), PSS));
            assert!(is_handshake(&key_exchange(group, length), PKCS1));
            assert!(key_exchange(group, length).len() <= MAX_MESSAGE);
        }
        for hash in [0, 20, 31, 33, 64] {
            assert!(!is_handshake(&certificate_verify(hash), PSS), "{hash}");
        }
        assert!(!is_handshake(&key_exchange(29, 65), PSS), "the length of another group");
        assert!(!is_handshake(&key_exchange(30, 56), PSS), "a group that is not served");
        let client = [&[b' '; SPACES], &b"TLS 1.3, client CertificateVerify\0"[..], &[7; 32]].concat();
        assert!(!is_handshake(&client, PSS));
        assert!(!is_handshake(b"{\"alg\":\"RS256\"}.payload", PSS), "a token");
    }
}
