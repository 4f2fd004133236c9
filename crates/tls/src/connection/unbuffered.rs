//! rustls' unbuffered connection, one record at a time: for handshakes, and for TLS 1.2 after them.

use rustls::Error;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus, WriteTraffic,
};
use tenfold_http::layer::LayerProgress;
use tenfold_http::{IoError, Out};

use super::records::{HEADER_BYTES, record_bytes};

/// The most bytes of a record whose version may be below TLS 1.3 (RFC 5246 §6.2.3).
pub(super) const RECORD_BYTES: usize = HEADER_BYTES + (1 << 14) + 2048;

/// The event that rustls waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// More of the handshake.
    Handshake,
    /// Plaintext, in either direction.
    Traffic,
    /// Plaintext to send: the peer has ended its output.
    Sending,
}

/// The result of processing bytes.
pub(super) struct Processed {
    /// Bytes at the front that rustls has finished with.
    pub(super) discard: usize,
    pub(super) waits: Waits,
}

/// Lets `connection` process `input`, which ends with a record. Its own records go to `out`, and opened
/// content to `plaintext`. After an error, the caller stages an alert.
pub(super) fn process(
    connection: &mut UnbufferedServerConnection,
    input: &mut [u8],
    out: &mut Out,
    plaintext: &mut Vec<u8>,
) -> Result<Processed, Error> {
    let (mut discarded, mut ended) = (0, false);
    loop {
        let UnbufferedStatus { discard, state } = connection.process_tls_records(&mut input[discarded..]);
        let waits = match state {
            Ok(ConnectionState::EncodeTlsData(data)) => {
                encode(data, out)?;
                discarded += discard;
                // Otherwise, the next record would lead to `TransmitTlsData`, and its own
                // state would be missed.
                continue;
            }
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                None
            }
            Ok(ConnectionState::ReadTraffic(mut records)) => {
                while let Some(record) = records.next_record() {
                    plaintext.extend_from_slice(record?.payload);
                }
                None
            }
            Ok(ConnectionState::BlockedHandshake) => Some(Waits::Handshake),
            Ok(ConnectionState::WriteTraffic(_)) if !ended => Some(Waits::Traffic),
            Ok(ConnectionState::PeerClosed) => {
                ended = true;
                None
            }
            Ok(ConnectionState::WriteTraffic(_) | ConnectionState::Closed) => Some(Waits::Sending),
            Ok(_) => return Err(Error::General("early data is disabled".into())),
            Err(error) => return Err(error),
        };
        discarded += discard;
        // rustls must not process records after the handshake. They stay in the input once rustls has nothing
        // to send.
        let over = !connection.is_handshaking() && !connection.wants_write() && discarded == input.len();
        if let Some(waits) = waits.or((over && plaintext.is_empty() && !ended).then_some(Waits::Traffic)) {
            return Ok(Processed { discard: discarded, waits });
        }
    }
}

/// Stages the alert of an error. Without a record to send, rustls would process the input again, and panic
/// because of a wrong message or a missing part of a message.
pub(super) fn stage_alerts(connection: &mut UnbufferedServerConnection, out: &mut Out) {
    while connection.wants_write()
        && let Ok(ConnectionState::EncodeTlsData(data)) = connection.process_tls_records(&mut []).state
        && encode(data, out).is_ok()
    {}
}

/// Stages the records that rustls has to send.
fn stage_rest(connection: &mut UnbufferedServerConnection, out: &mut Out) {
    loop {
        match connection.process_tls_records(&mut []).state {
            Ok(ConnectionState::EncodeTlsData(data)) => {
                if encode(data, out).is_err() {
                    return;
                }
            }
            Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
            _ => return,
        }
    }
}

fn encode<Data>(mut data: EncodeTlsData<'_, Data>, out: &mut Out) -> Result<(), Error> {
    let Err(EncodeError::InsufficientSize(size)) = data.encode(&mut []) else { return Ok(()) };
    stage(size.required_size, out, |into| data.encode(into))
        .map_err(|_| Error::General("a record has changed its size".into()))
}

/// Adds `count` zeroed bytes to the output, which `fill` overwrites.
fn stage<T, E>(count: usize, out: &mut Out, fill: impl FnOnce(&mut [u8]) -> Result<T, E>) -> Result<(), E> {
    out.stage_with(count, |staged| {
        let begin = staged.len();
        staged.resize(begin + count, 0);
        fill(&mut staged[begin..]).map(|_| ())
    })
}

/// Returns the length of the record at the beginning of `input`; `None` if it is incomplete. For input that
/// cannot be a record, returns its whole length, so that rustls chooses the alert.
pub(super) fn length(input: &[u8]) -> Option<usize> {
    const KINDS: std::ops::RangeInclusive<u8> = 20..=24;
    if input.first().is_some_and(|kind| !KINDS.contains(kind))
        || input.get(1).is_some_and(|major| *major != 3)
    {
        return (input.len() >= HEADER_BYTES).then_some(input.len());
    }
    let &[_, _, _, high, low, ..] = input else { return None };
    let length = HEADER_BYTES + usize::from(u16::from_be_bytes([high, low]));
    if length > RECORD_BYTES { Some(input.len()) } else { (input.len() >= length).then_some(length) }
}

type Traffic<'c> = WriteTraffic<'c, ServerConnectionData>;

/// A connection that rustls keeps after its handshake.
pub(super) struct Unbuffered {
    pub(super) connection: Box<UnbufferedServerConnection>,
    /// Sealed plaintext, counted as far as it affects the size of records.
    sent: u32,
}

impl Unbuffered {
    pub(super) fn new(connection: Box<UnbufferedServerConnection>) -> Unbuffered {
        Unbuffered { connection, sent: 0 }
    }

    /// Processes the record at the front of `input`, and copies its content over the record.
    pub(super) fn advance(&mut self, input: &mut [u8], out: &mut Out) -> LayerProgress {
        let Some(length) = length(input) else { return LayerProgress::Incomplete };
        let mut plaintext = Vec::new();
        match process(&mut self.connection, &mut input[..length], out, &mut plaintext) {
            Ok(Processed { discard, waits }) if discard == length => {
                if waits == Waits::Sending {
                    return LayerProgress::Closed(length);
                }
                let content = HEADER_BYTES..HEADER_BYTES + plaintext.len();
                let Some(target) = input[..length].get_mut(content.clone()) else {
                    return LayerProgress::Failed;
                };
                target.copy_from_slice(&plaintext);
                match plaintext.is_empty() {
                    true => LayerProgress::Processed(length),
                    false => LayerProgress::Opened { content, length },
                }
            }
            // A handshake message split over records: no client starts another handshake like
            // this.
            Ok(_) => LayerProgress::Failed,
            Err(_) => {
                stage_alerts(&mut self.connection, out);
                LayerProgress::Failed
            }
        }
    }

    /// Seals a record of at most `most` bytes, which `fill` appends. rustls needs them apart from the output.
    pub(super) fn seal<T>(
        &mut self,
        most: u64,
        out: &mut Out,
        fill: impl FnOnce(&mut Vec<u8>, usize) -> T,
    ) -> Result<T, IoError> {
        let most = record_bytes(self.sent, most);
        let mut content = Vec::with_capacity(most);
        let filled = fill(&mut content, most);
        self.stage(out, |traffic, into| traffic.encrypt(&content, into))?;
        self.sent = self.sent.saturating_add(content.len() as u32);
        Ok(filled)
    }

    /// Seals the closing record. If that fails, the connection ends without it.
    pub(super) fn close(&mut self, out: &mut Out) {
        let _ = self.stage(out, |traffic, into| traffic.queue_close_notify(into));
    }

    /// Stages the output of `seal`, which returns the required size.
    fn stage(
        &mut self,
        out: &mut Out,
        mut seal: impl FnMut(&mut Traffic<'_>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> Result<(), IoError> {
        stage_rest(&mut self.connection, out);
        let Ok(ConnectionState::WriteTraffic(mut traffic)) =
            self.connection.process_tls_records(&mut []).state
        else {
            return Err(IoError::Gone);
        };
        let Err(EncryptError::InsufficientSize(size)) = seal(&mut traffic, &mut []) else {
            return Err(IoError::Gone);
        };
        stage(size.required_size, out, |into| seal(&mut traffic, into)).map_err(|_| IoError::Gone)
    }
}
