//! The handshake, performed by rustls.

use std::sync::Arc;

use rustls::server::UnbufferedServerConnection;
use rustls::{
    AlertDescription, CipherSuite, ContentType, Error, HandshakeKind, ProtocolVersion, ServerConfig,
    SupportedCipherSuite,
};
use tenfold_http::{Out, TlsFacts};

use super::capture::{ALL_PROTOCOLS, Captured};
use super::hello::FirstHello;
use super::keys::{Suite, TrafficKey};
use super::records::{HEADER_BYTES, Records};
use super::unbuffered::{Processed, Unbuffered, Waits, length, process, stage_alerts};
use crate::challenges::ACME_TLS_1;
use crate::failure::signing_failure;

/// A connection before and during its handshake.
pub(super) struct Handshake {
    connection: Box<UnbufferedServerConnection>,
    captured: Captured,
    hello: FirstHello,
    /// Bytes at the front of the input that rustls has processed but not discarded: the beginning of a
    /// message.
    seen: usize,
    /// A count of the handshakes in progress.
    _running: Arc<()>,
}

/// The result of [`Handshake::advance`].
pub(super) enum HandshakeStep {
    /// A record is incomplete.
    Incomplete,
    /// This many bytes were processed.
    Processed(usize),
    /// This many bytes were processed, and completed the handshake.
    Over(usize),
    /// The peer ended its output, during or after the handshake.
    Closed(usize),
}

/// The state after the handshake.
#[expect(clippy::large_enum_variant, reason = "it moves once, into the box of the connection")]
pub(super) enum Established {
    Records(Records),
    Unbuffered(Unbuffered),
}

impl Handshake {
    pub(super) fn new(config: &Arc<ServerConfig>, running: Arc<()>) -> Result<Handshake, Error> {
        let connection = Box::new(UnbufferedServerConnection::new(config.clone())?);
        let (captured, hello) = (Captured::default(), FirstHello::default());
        Ok(Handshake { connection, captured, hello, seen: 0, _running: running })
    }

    /// Returns the part of `input` that rustls has not processed.
    pub(super) fn unseen<'i>(&self, input: &'i [u8]) -> &'i [u8] {
        &input[self.seen..]
    }

    /// Processes the next record of `input`.
    pub(super) fn advance(&mut self, input: &mut [u8], out: &mut Out) -> Result<HandshakeStep, Error> {
        let Some(length) = length(self.unseen(input)) else { return Ok(HandshakeStep::Incomplete) };
        let end = self.seen + length;
        if let Some(alert) = self.hello.refuse(&input[self.seen..end]) {
            self.stage_alert(alert, out);
            return Err(Error::General("the hello is refused".into()));
        }
        let sealed = self.may_be_skipped(&input[..end]).then(|| input[..end].to_vec());
        let (mut plaintext, before) = (Vec::new(), out.len());
        let processed = process(&mut self.connection, &mut input[..end], out, &mut plaintext);
        self.captured.collect();
        let Processed { discard, waits } = processed.inspect_err(|error| {
            let alert = self.hello.alert(error);
            if alert.is_none() {
                stage_alerts(&mut self.connection, out);
            }
            if let Some(alert) = alert.or_else(|| missing_alert(error, out.len() > before)) {
                self.stage_alert(alert, out);
            }
        })?;
        if !plaintext.is_empty() {
            return Err(Error::General("plaintext arrived within the handshake".into()));
        }
        let skipped = discard == 0 && sealed.is_some_and(|record| self.is_skipped(record));
        let discard = if skipped { end } else { discard };
        self.seen = end - discard;
        Ok(match waits {
            Waits::Handshake => HandshakeStep::Processed(discard),
            Waits::Traffic => HandshakeStep::Over(discard),
            Waits::Sending => HandshakeStep::Closed(discard),
        })
    }

    /// Whether rustls may skip this record as early data, which the server never accepts. rustls skips up to
    /// 16 KiB (RFC 8446 §4.2.10).
    fn may_be_skipped(&self, record: &[u8]) -> bool {
        self.seen == 0
            && self.captured.client_handshake.is_some()
            && record.first() == Some(&u8::from(ContentType::ApplicationData))
    }

    /// Whether rustls skipped this record, because the client's key does not open it. rustls discards neither
    /// a skipped record nor the first part of a message. It needs the part again, but would count a skipped
    /// record twice.
    fn is_skipped(&self, mut record: Vec<u8>) -> bool {
        let suite = suite(self.connection.negotiated_cipher_suite());
        let Some((suite, secret)) = suite.zip(self.captured.client_handshake.clone()) else { return false };
        let (header, sealed) = record.split_at_mut(HEADER_BYTES);
        let header = <[u8; HEADER_BYTES]>::try_from(&*header).expect("the header was split off");
        TrafficKey::derived(suite, secret).open(&header, sealed).is_err()
    }

    /// Whether an authority made this handshake to validate a name, after which the connection ends (RFC 8737
    /// §3).
    pub(super) fn validates_name(&self) -> bool {
        self.connection.alpn_protocol() == Some(ACME_TLS_1)
    }

    /// Stages an alert that rustls does not send. In TLS 1.3 it is the first record under the newest key.
    /// After the server's Finished, this is the key for application data, because the handshake's key is no
    /// longer used.
    pub(super) fn stage_alert(&mut self, description: AlertDescription, out: &mut Out) {
        let alert = [2, u8::from(description)];
        let Some(secret) = self.captured.server.take().or_else(|| self.captured.handshake.take()) else {
            return out.stage(&[&[u8::from(ContentType::Alert), 3, 3, 0, 2][..], &alert].concat());
        };
        let Some(suite) = suite(self.connection.negotiated_cipher_suite()) else { return };
        let key = || TrafficKey::derived(suite, secret.clone());
        Records::new(key(), key()).stage(ContentType::Alert, &alert, out);
    }

    /// Returns the state after a complete handshake. For TLS 1.3, takes the secrets from rustls.
    pub(super) fn establish(self) -> Result<(Established, TlsFacts), Error> {
        let Handshake { connection, captured, seen, .. } = self;
        let facts = TlsFacts {
            version: version_name(connection.protocol_version()),
            cipher: cipher_name(connection.negotiated_cipher_suite()),
            server_name: captured.name,
            alpn: connection.alpn_protocol().and_then(protocol_name),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            certificate_names: captured.certificate_names,
        };
        // rustls has a part of another message, and would panic if it were given other input.
        if seen > 0 {
            return Err(Error::General("a handshake message follows the last one".into()));
        }
        let version = connection.protocol_version();
        let (Some(client), Some(server)) = (captured.client, captured.server) else {
            return Ok((Established::Unbuffered(Unbuffered::new(connection)), facts));
        };
        if version != Some(ProtocolVersion::TLSv1_3) {
            return Ok((Established::Unbuffered(Unbuffered::new(connection)), facts));
        }
        let (secrets, _) = connection.dangerous_into_kernel_connection()?;
        let receiving = TrafficKey::extracted(client, secrets.rx.0, &secrets.rx.1);
        let sending = TrafficKey::extracted(server, secrets.tx.0, &secrets.tx.1);
        let records = receiving.zip(sending).map(|(receiving, sending)| Records::new(receiving, sending));
        let records = records.ok_or_else(|| Error::General("the cipher suite is unknown".into()))?;
        Ok((Established::Records(records), facts))
    }
}

/// Returns the alert of an error, if rustls sent none, for example for a record within a message of another
/// type (RFC 8446 §6.2). `sent`: whether rustls sent records; if a signature is missing, these are the first
/// part of its answer.
fn missing_alert(error: &Error, sent: bool) -> Option<AlertDescription> {
    match error {
        error if signing_failure(error).is_some() => Some(AlertDescription::InternalError),
        Error::InvalidMessage(_) if !sent => Some(AlertDescription::DecodeError),
        Error::PeerMisbehaved(_) if !sent => Some(AlertDescription::UnexpectedMessage),
        _ => None,
    }
}

fn suite(suite: Option<SupportedCipherSuite>) -> Option<Suite> {
    match suite?.suite() {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => Some(Suite::Aes128GcmSha256),
        CipherSuite::TLS13_AES_256_GCM_SHA384 => Some(Suite::Aes256GcmSha384),
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => Some(Suite::ChaCha20Poly1305Sha256),
        _ => None,
    }
}

fn version_name(version: Option<ProtocolVersion>) -> &'static str {
    match version {
        Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
        Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
        _ => "unknown",
    }
}

fn protocol_name(protocol: &[u8]) -> Option<&'static str> {
    ALL_PROTOCOLS.iter().find(|known| known.as_bytes() == protocol).copied()
}

/// Returns the name of a suite in the spelling of the standard. The suites of TLS 1.3 have another name in rustls.
fn cipher_name(suite: Option<SupportedCipherSuite>) -> &'static str {
    use CipherSuite as C;
    match suite.map(|suite| suite.suite()) {
        Some(C::TLS13_AES_128_GCM_SHA256) => "TLS_AES_128_GCM_SHA256",
        Some(C::TLS13_AES_256_GCM_SHA384) => "TLS_AES_256_GCM_SHA384",
        Some(C::TLS13_CHACHA20_POLY1305_SHA256) => "TLS_CHACHA20_POLY1305_SHA256",
        suite => suite.and_then(|suite| suite.as_str()).unwrap_or("unknown"),
    }
}
