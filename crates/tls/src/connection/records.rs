//! Records of TLS 1.3 after the handshake (RFC 8446 §5), opened in the receive buffer and sealed into the
//! output.

use rustls::{AlertDescription, ContentType, HandshakeType};
use tenfold_http::layer::{KernelSealing, LayerProgress};
use tenfold_http::{IoError, Out};
use zeroize::Zeroizing;

use super::kernel::{KernelSealer, KernelUse, Sealer};
use super::keys::{TAG_BYTES, TrafficKey};

/// Bytes before a record's content.
pub(super) const HEADER_BYTES: usize = 5;
/// The most bytes of plaintext in a record.
pub(super) const CONTENT_BYTES: usize = 16 * 1024;
/// The most bytes that sealing may add to the content (RFC 8446 §5.2).
const MOST_EXPANSION: usize = 256;
/// Bytes that sealing adds: the content type and the tag.
const EXPANSION: usize = 1 + TAG_BYTES;

/// The size of the first records: a sealed record fits a segment, so that the client can open it on arrival.
const FIRST_RECORD_BYTES: usize = 1400;

/// The most consecutive records without plaintext, because each of them may begin a new wait.
const MOST_EMPTY: u8 = 32;

/// A KeyUpdate: its type, its length of 1 in three bytes, and whether the peer must update too.
const KEY_UPDATE_BYTES: usize = 5;
const NOT_REQUESTED: u8 = 0;
const REQUESTED: u8 = 1;

/// The state of a TLS 1.3 connection after the handshake.
#[derive(Debug)]
pub(super) struct Records {
    receiving: TrafficKey,
    sending: TrafficKey,
    /// Sealed plaintext, counted as far as it affects the size of records.
    sent: u32,
    /// Consecutive records without plaintext.
    empty: u8,
    /// The beginning of a KeyUpdate that is split over records.
    partial: [u8; KEY_UPDATE_BYTES],
    partial_length: u8,
    sealer: Sealer,
}

impl Records {
    pub(super) fn new(receiving: TrafficKey, sending: TrafficKey) -> Records {
        let (sent, empty, partial, partial_length) = (0, 0, [0; KEY_UPDATE_BYTES], 0);
        Records { receiving, sending, sent, empty, partial, partial_length, sealer: Sealer::Undecided }
    }

    /// Processes the record at the front of `input`.
    pub(super) fn advance(&mut self, input: &mut [u8], out: &mut Out) -> LayerProgress {
        self.open(input, out).unwrap_or_else(|alert| {
            self.stage(ContentType::Alert, &[2, u8::from(alert)], out);
            LayerProgress::Failed
        })
    }

    fn open(&mut self, input: &mut [u8], out: &mut Out) -> Result<LayerProgress, AlertDescription> {
        let Some(length) = length(input)? else { return Ok(LayerProgress::Incomplete) };
        let (header, sealed) = input[..length].split_at_mut(HEADER_BYTES);
        let header = <[u8; HEADER_BYTES]>::try_from(&*header).expect("the header was split off");
        let inner = self.receiving.open(&header, sealed).map_err(|_| AlertDescription::BadRecordMac)?;
        // Content, type and padding share a bound (RFC 8446 §5.4).
        if inner > CONTENT_BYTES + 1 {
            return Err(AlertDescription::RecordOverflow);
        }
        // The type follows the content; zeros after it are padding (RFC 8446 §5.4).
        let kind = sealed[..inner].iter().rposition(|byte| *byte != 0);
        let end = kind.ok_or(AlertDescription::UnexpectedMessage)?;
        let (content, kind) = (&sealed[..end], ContentType::from(sealed[end]));
        // Records of other types must not interrupt a handshake message (RFC 8446 §5.1).
        if self.partial_length > 0 && kind != ContentType::Handshake {
            return Err(AlertDescription::UnexpectedMessage);
        }
        self.empty = match kind {
            ContentType::ApplicationData if end > 0 => 0,
            _ => self.empty + 1,
        };
        if self.empty > MOST_EMPTY {
            return Err(AlertDescription::UnexpectedMessage);
        }
        match kind {
            ContentType::ApplicationData => {
                Ok(LayerProgress::Opened { content: HEADER_BYTES..HEADER_BYTES + end, length })
            }
            ContentType::Alert => alert(content, length),
            ContentType::Handshake => self.handshake(content, out).map(|()| LayerProgress::Processed(length)),
            _ => Err(AlertDescription::UnexpectedMessage),
        }
    }

    /// Processes handshake messages. A client may only send KeyUpdate (RFC 8446 §4.6). Keys change after it,
    /// so it must end its record (§5.1).
    fn handshake(&mut self, content: &[u8], out: &mut Out) -> Result<(), AlertDescription> {
        let before = usize::from(self.partial_length);
        let end = before + content.len();
        if content.is_empty() || end > KEY_UPDATE_BYTES {
            return Err(AlertDescription::UnexpectedMessage);
        }
        self.partial[before..end].copy_from_slice(content);
        self.partial_length = end as u8;
        let message = &self.partial[..end];
        if HandshakeType::from(message[0]) != HandshakeType::KeyUpdate {
            return Err(AlertDescription::UnexpectedMessage);
        }
        if message[1..].iter().zip([0, 0, 1]).any(|(byte, expected)| *byte != expected) {
            return Err(AlertDescription::DecodeError);
        }
        let &[_, _, _, _, request] = message else { return Ok(()) };
        if request != NOT_REQUESTED && request != REQUESTED {
            return Err(AlertDescription::IllegalParameter);
        }
        self.partial_length = 0;
        self.receiving.update();
        if request == REQUESTED {
            self.update(out);
        }
        Ok(())
    }

    /// Announces a new sending key and changes to it. If the kernel cannot change keys, the connection ends
    /// after the next response instead. A single announcement answers several requests.
    fn update(&mut self, out: &mut Out) {
        if let Sealer::Kernel(kernel) = &mut self.sealer {
            if !kernel.rekeys {
                kernel.ending = true;
            }
            if !kernel.rekeys || kernel.rekeying {
                return;
            }
        }
        let message = [u8::from(HandshakeType::KeyUpdate), 0, 0, 1, NOT_REQUESTED];
        self.stage(ContentType::Handshake, &message, out);
        if let Sealer::Kernel(kernel) = &mut self.sealer {
            kernel.rekeying = true;
        }
        self.sending.update();
    }

    /// Returns the parameters for the kernel, if it must get a key.
    pub(super) fn kernel_parameters(&self) -> Option<Zeroizing<Vec<u8>>> {
        let due = match &self.sealer {
            Sealer::Undecided => true,
            Sealer::Process => false,
            Sealer::Kernel(kernel) => kernel.rekeying,
        };
        due.then(|| self.sending.kernel_parameters())
    }

    /// Records that the kernel seals from here on, or refused.
    pub(super) fn pass_to_kernel(
        &mut self,
        sealing: Option<KernelSealing>,
        how: KernelUse,
    ) -> Result<(), IoError> {
        let had_kernel = matches!(self.sealer, Sealer::Kernel(_));
        self.sealer = match sealing {
            Some(sealing) => {
                let ending = false;
                Sealer::Kernel(KernelSealer { sealing, rekeys: how.rekeys, rekeying: false, ending })
            }
            None if had_kernel || how.required => return Err(IoError::Gone),
            None => Sealer::Process,
        };
        if let Sealer::Kernel(_) = self.sealer {
            self.sending.forget_context();
            // Plaintext follows.
            self.sent = self.sent.max(1);
        }
        Ok(())
    }

    pub(super) fn kernel_sealing(&mut self) -> Option<&mut KernelSealing> {
        match &mut self.sealer {
            Sealer::Kernel(kernel) => Some(&mut kernel.sealing),
            Sealer::Undecided | Sealer::Process => None,
        }
    }

    /// Updates the key if it has sealed half of the records that its cipher suite allows. `record` is the number
    /// of the kernel's next record.
    pub(super) fn limit_kernel(&mut self, record: u64, out: &mut Out) -> Result<(), IoError> {
        let most = self.sending.suite().most_records();
        if record >= most / 2 {
            self.update(out);
        }
        // The kernel seals far fewer records between two calls.
        if record >= most / 4 * 3 { Err(IoError::Gone) } else { Ok(()) }
    }

    /// Whether the connection ends after the next response.
    pub(super) fn is_ending(&self) -> bool {
        matches!(&self.sealer, Sealer::Kernel(kernel) if kernel.ending)
    }

    /// Seals a record of at most `most` bytes, which `fill` appends.
    pub(super) fn seal<T>(
        &mut self,
        most: u64,
        out: &mut Out,
        fill: impl FnOnce(&mut Vec<u8>, usize) -> T,
    ) -> Result<T, IoError> {
        // Some records are reserved for a KeyUpdate and for alerts.
        const KEPT: u64 = 16;
        if self.sending.sequence() >= self.sending.suite().most_records() - KEPT {
            self.update(out);
        }
        let most = record_bytes(self.sent, most);
        let (filled, count) = self.stage_sealed(ContentType::ApplicationData, most, out, fill)?;
        self.sent = self.sent.saturating_add(count as u32);
        Ok(filled)
    }

    /// Seals the closing record (RFC 8446 §6.1).
    pub(super) fn close(&mut self, out: &mut Out) {
        self.stage(ContentType::Alert, &[1, u8::from(AlertDescription::CloseNotify)], out);
    }

    /// Seals a record of the layer itself. If the key can seal no more, or the kernel does not have it yet,
    /// the connection ends without the record.
    pub(super) fn stage(&mut self, kind: ContentType, content: &[u8], out: &mut Out) {
        if let Sealer::Kernel(kernel) = &mut self.sealer {
            if !kernel.rekeying {
                kernel.sealing.count(content.len() as u64);
                out.push_record(kind.into(), content);
            }
            return;
        }
        let _ = self.stage_sealed(kind, content.len(), out, |record, _| record.extend_from_slice(content));
    }

    /// Seals a record in the output, where `fill` appends the content. Returns the result of `fill`, and the
    /// number of bytes in the record.
    fn stage_sealed<T>(
        &mut self,
        kind: ContentType,
        most: usize,
        out: &mut Out,
        fill: impl FnOnce(&mut Vec<u8>, usize) -> T,
    ) -> Result<(T, usize), IoError> {
        out.stage_with(HEADER_BYTES + most + EXPANSION, |staged| {
            let begin = staged.len();
            staged.extend_from_slice(&[0; HEADER_BYTES]);
            let filled = fill(staged, most);
            staged.push(kind.into());
            staged.extend_from_slice(&[0; TAG_BYTES]);
            let (header, sealed) = staged[begin..].split_first_chunk_mut().expect("the record has a header");
            let [high, low] = (sealed.len() as u16).to_be_bytes();
            // The outer type and the version are constants (RFC 8446 §5.2).
            *header = [u8::from(ContentType::ApplicationData), 3, 3, high, low];
            self.sending.seal(header, sealed).map(|()| (filled, sealed.len() - EXPANSION))
        })
        .map_err(|_| IoError::Gone)
    }
}

#[cfg(test)]
impl Records {
    /// Seals the beginning of `content` as a record.
    pub(super) fn seal_from(&mut self, content: &[u8], out: &mut Out) -> Result<(), IoError> {
        self.seal(content.len() as u64, out, |record, most| record.extend_from_slice(&content[..most]))
    }

    /// Opens a record of any type, as a client.
    pub(super) fn open_any(&mut self, record: &mut [u8]) -> (ContentType, Vec<u8>) {
        let (header, sealed) = record.split_at_mut(HEADER_BYTES);
        let header = <[u8; HEADER_BYTES]>::try_from(&*header).expect("the header was split off");
        let inner = self.receiving.open(&header, sealed).expect("it is the next record");
        (ContentType::from(sealed[inner - 1]), sealed[..inner - 1].to_vec())
    }

    /// Updates the sending key, after a message of the test.
    pub(super) fn update_sending(&mut self) {
        self.sending.update();
    }

    /// Updates the receiving key.
    pub(super) fn update_receiving(&mut self) {
        self.receiving.update();
    }
}

/// Returns the most bytes of plaintext for a record after `sent` bytes: records grow with the window of TCP.
/// `most` bytes are left.
pub(super) fn record_bytes(sent: u32, most: u64) -> usize {
    let grown = (sent as usize / 4).clamp(FIRST_RECORD_BYTES, CONTENT_BYTES);
    usize::try_from(most).map_or(grown, |most| most.min(grown))
}

/// Returns the length of the sealed record at the beginning of `input`; `None` if it is incomplete.
fn length(input: &[u8]) -> Result<Option<usize>, AlertDescription> {
    if input.first().is_some_and(|kind| *kind != u8::from(ContentType::ApplicationData)) {
        return Err(AlertDescription::UnexpectedMessage);
    }
    let &[_, _, _, high, low, ..] = input else { return Ok(None) };
    let sealed = usize::from(u16::from_be_bytes([high, low]));
    if sealed > CONTENT_BYTES + MOST_EXPANSION {
        return Err(AlertDescription::RecordOverflow);
    }
    let length = HEADER_BYTES + sealed;
    Ok((input.len() >= length).then_some(length))
}

/// Processes an alert of the peer. Every alert except the end of its output ends the connection (RFC 8446
/// §6).
fn alert(content: &[u8], length: usize) -> Result<LayerProgress, AlertDescription> {
    let &[_, description] = content else {
        // RFC 8446 §5.4 has a rule for an empty alert.
        let is_empty = content.is_empty();
        return Err(if is_empty {
            AlertDescription::UnexpectedMessage
        } else {
            AlertDescription::DecodeError
        });
    };
    Ok(match AlertDescription::from(description) {
        AlertDescription::CloseNotify => LayerProgress::Closed(length),
        AlertDescription::UserCanceled => LayerProgress::Processed(length),
        _ => LayerProgress::Failed,
    })
}
