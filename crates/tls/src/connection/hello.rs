//! Checks of a client's hello that rustls lacks, and alerts in place of its own.

use rustls::{AlertDescription, ContentType, Error, PeerIncompatible};

use super::records::HEADER_BYTES;

/// The most bytes of a record's content before encryption (RFC 8446 §5.1).
const MOST_CONTENT: usize = 1 << 14;

/// The bytes in front of a message: its type and length.
const MESSAGE_HEADER: usize = 4;

const SSL_3_0: u16 = 0x0300;
const TLS_1_2: u16 = 0x0303;
const TLS_1_3: u16 = 0x0304;

const SUPPORTED_GROUPS: [u8; 2] = [0, 10];
const SUPPORTED_VERSIONS: [u8; 2] = [0, 43];
const RENEGOTIATION_INFO: [u8; 2] = [255, 1];

/// The first hello of a connection, which may arrive in several records.
#[derive(Default)]
pub(super) struct FirstHello {
    /// The parts of an incomplete hello.
    parts: Vec<u8>,
    /// The facts of the complete hello. A malformed hello, which rustls refuses, has no facts.
    facts: Option<HelloFacts>,
    complete: bool,
}

#[derive(Default)]
struct HelloFacts {
    legacy_version: u16,
    /// The newest version that the client offers, at most TLS 1.3.
    newest: u16,
    has_groups: bool,
    /// Whether it claims to renegotiate a connection.
    renegotiates: bool,
}

impl FirstHello {
    /// Returns the alert for the next record of a handshake; `None` if rustls must process the record.
    pub(super) fn refuse(&mut self, record: &[u8]) -> Option<AlertDescription> {
        let (&[kind, _, _, high, low], content) = record.split_first_chunk::<HEADER_BYTES>()?;
        if kind != u8::from(ContentType::Handshake) {
            return None;
        }
        if usize::from(u16::from_be_bytes([high, low])) > MOST_CONTENT {
            return Some(AlertDescription::RecordOverflow);
        }
        if self.complete {
            return None;
        }
        let mut parts = std::mem::take(&mut self.parts);
        let message = match parts.is_empty() {
            true => content,
            false => {
                parts.extend_from_slice(content);
                &parts
            }
        };
        let Some(body) = body(message) else {
            self.parts = if parts.is_empty() { content.to_vec() } else { parts };
            return None;
        };
        (self.complete, self.facts) = (true, HelloFacts::read(body));
        match self.facts.as_ref()? {
            // RFC 8446 §D.5.
            facts if facts.legacy_version <= SSL_3_0 => Some(AlertDescription::ProtocolVersion),
            // RFC 5746 §3.6.
            facts if facts.renegotiates => Some(AlertDescription::HandshakeFailure),
            _ => None,
        }
    }

    /// Returns the alert that replaces the alert of rustls for an error; `None` if it is right.
    pub(super) fn alert(&self, error: &Error) -> Option<AlertDescription> {
        let Error::PeerIncompatible(reason) = error else { return None };
        let facts = self.facts.as_ref()?;
        let missing = (facts.newest == TLS_1_3).then_some(AlertDescription::MissingExtension);
        match reason {
            // rustls looks for this extension before it compares versions.
            PeerIncompatible::SignatureAlgorithmsExtensionRequired if facts.newest < TLS_1_2 => {
                Some(AlertDescription::ProtocolVersion)
            }
            // RFC 8446 §9.2.
            PeerIncompatible::SignatureAlgorithmsExtensionRequired
            | PeerIncompatible::KeyShareExtensionRequired => missing,
            PeerIncompatible::NoKxGroupsInCommon if !facts.has_groups => missing,
            _ => None,
        }
    }
}

/// Returns the content of the first message, if it is complete.
fn body(message: &[u8]) -> Option<&[u8]> {
    let (&[_, high, middle, low], rest) = message.split_first_chunk::<MESSAGE_HEADER>()?;
    rest.get(..u32::from_be_bytes([0, high, middle, low]) as usize)
}

impl HelloFacts {
    /// Reads the content of a hello (RFC 8446 §4.1.2); `None` if it is malformed.
    fn read(mut hello: &[u8]) -> Option<HelloFacts> {
        let input = &mut hello;
        let legacy_version = u16::from_be_bytes(*take(input, 2)?.first_chunk()?);
        let _random = take(input, 32)?;
        let _session = vector(input, 1)?;
        let _cipher_suites = vector(input, 2)?;
        let _compression = vector(input, 1)?;
        let newest = legacy_version.min(TLS_1_2);
        let mut facts = HelloFacts { legacy_version, newest, ..HelloFacts::default() };
        let mut extensions = if input.is_empty() { &[] } else { vector(input, 2)? };
        while !extensions.is_empty() {
            let kind = *take(&mut extensions, 2)?.first_chunk()?;
            let content = vector(&mut extensions, 2)?;
            match kind {
                SUPPORTED_GROUPS => facts.has_groups = true,
                SUPPORTED_VERSIONS => {
                    let versions = content.get(1..)?.chunks_exact(2);
                    let versions = versions.map(|version| u16::from_be_bytes([version[0], version[1]]));
                    facts.newest = versions.filter(|version| *version <= TLS_1_3).max().unwrap_or(0);
                }
                RENEGOTIATION_INFO => facts.renegotiates = content != [0],
                _ => {}
            }
        }
        Some(facts)
    }
}

/// Takes `count` bytes from the front of the input.
fn take<'i>(input: &mut &'i [u8], count: usize) -> Option<&'i [u8]> {
    let (front, rest) = input.split_at_checked(count)?;
    *input = rest;
    Some(front)
}

/// Takes a vector, whose length has `width` bytes.
fn vector<'i>(input: &mut &'i [u8], width: usize) -> Option<&'i [u8]> {
    let length = take(input, width)?.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
    take(input, length)
}
