//! The messages between a worker and the signing process, a datagram each.

use rustls::SignatureScheme;

use super::shape::MAX_MESSAGE;
use crate::certificates::facts::KeyId;

const KEY: usize = 32;
const HEAD: usize = 8 + KEY + 2;

/// The most bytes of a request plus one, to detect longer requests.
pub(super) const REQUEST_ROOM: usize = HEAD + MAX_MESSAGE + 1;

/// The most bytes of an answer: the signature of an RSA key with 8,192 bits.
pub(super) const ANSWER_ROOM: usize = 9 + 1024 + 1;

/// A request for a signature.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SignRequest<'a> {
    /// A number that the answer repeats.
    pub(super) number: u64,
    pub(super) key: KeyId,
    pub(super) scheme: SignatureScheme,
    pub(super) message: &'a [u8],
}

/// The result of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SignAnswer<'a> {
    Signature(&'a [u8]),
    UnknownKey,
    /// A server signs no such message, or the key does not support the scheme.
    Refused,
    Failed,
    /// The process that had the request may have ended. This answer's number is not a request's.
    Lost,
}

impl SignRequest<'_> {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(REQUEST_ROOM);
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&self.key.0);
        bytes.extend_from_slice(&u16::from(self.scheme).to_le_bytes());
        bytes.extend_from_slice(self.message);
        bytes
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<SignRequest<'_>> {
        let (number, rest) = bytes.split_first_chunk::<8>()?;
        let (key, rest) = rest.split_first_chunk::<KEY>()?;
        let (scheme, message) = rest.split_first_chunk::<2>()?;
        (bytes.len() < REQUEST_ROOM).then(|| SignRequest {
            number: u64::from_le_bytes(*number),
            key: KeyId(*key),
            scheme: SignatureScheme::from(u16::from_le_bytes(*scheme)),
            message,
        })
    }
}

impl SignAnswer<'_> {
    pub(super) fn to_bytes(&self, number: u64) -> Vec<u8> {
        let (status, signature): (u8, &[u8]) = match self {
            SignAnswer::Signature(signature) => (0, signature),
            SignAnswer::UnknownKey => (1, &[]),
            SignAnswer::Refused => (2, &[]),
            SignAnswer::Failed => (3, &[]),
            SignAnswer::Lost => (4, &[]),
        };
        [&number.to_le_bytes()[..], &[status], signature].concat()
    }

    /// Returns the number of the request and its result.
    pub(super) fn parse(bytes: &[u8]) -> Option<(u64, SignAnswer<'_>)> {
        let (number, rest) = bytes.split_first_chunk::<8>()?;
        let answer = match rest {
            [0, signature @ ..] if bytes.len() < ANSWER_ROOM && !signature.is_empty() => {
                SignAnswer::Signature(signature)
            }
            [1] => SignAnswer::UnknownKey,
            [2] => SignAnswer::Refused,
            [3] => SignAnswer::Failed,
            [4] => SignAnswer::Lost,
            _ => return None,
        };
        Some((u64::from_le_bytes(*number), answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_no_message_or_a_message_with_the_same_encoding() {
        bolero::check!().with_iterations(5000).with_max_len(1100).for_each(|bytes| {
            if let Some(request) = SignRequest::parse(bytes) {
                assert_eq!(request.to_bytes(), bytes);
                assert!(request.message.len() <= MAX_MESSAGE);
            }
            if let Some((number, answer)) = SignAnswer::parse(bytes) {
                assert_eq!(answer.to_bytes(number), bytes);
            }
        });
    }

    #[test]
    fn a_message_past_its_bound_is_refused() {
        let request = |length: usize| vec![0; HEAD + length];
        assert!(SignRequest::parse(&request(MAX_MESSAGE)).is_some());
        assert!(SignRequest::parse(&request(MAX_MESSAGE + 1)).is_none());
        assert!(SignRequest::parse(&request(0)[1..]).is_none());
        assert!(SignAnswer::parse(&[0; 9 + 1024]).is_some());
        assert!(SignAnswer::parse(&[0; 9 + 1025]).is_none());
        assert!(SignAnswer::parse(&[0; 9]).is_none(), "an empty signature");
    }
}
