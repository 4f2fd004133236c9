//! The server's side of TLS as a layer.

use std::sync::Arc;

use rustls::{AlertDescription, ContentType, ServerConfig};
use tenfold_http::layer::{KernelSealing, Layer, LayerProgress};
use tenfold_http::{Connection, IoError, Out, Peer, Scheme, TlsFacts, clock};

use super::handshake::{Established, Handshake, HandshakeStep};
use super::kernel::KernelUse;
use super::records::Records;
use super::unbuffered::{RECORD_BYTES, Unbuffered, length};
use crate::failure::signing_failure;

/// The result of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeResult {
    /// It was a full handshake.
    Full,
    /// It resumed a session.
    Resumed,
    /// It failed.
    Failed,
    /// It did not begin, because too many others were in progress.
    TooMany,
}

type Observer = Arc<dyn Fn(HandshakeResult) + Send + Sync>;

/// Returns whether a client may begin a handshake.
type Gate = Arc<dyn Fn(&Peer) -> bool + Send + Sync>;

/// Returns whether the signing process is late.
type LateSigner = Arc<dyn Fn() -> bool + Send + Sync>;

/// TLS on the connections of some listeners.
#[derive(Clone)]
pub struct TlsServer {
    config: Arc<ServerConfig>,
    /// Whether connections have TLS, by listener.
    listeners: Arc<[bool]>,
    observer: Observer,
    /// A reference for each handshake in progress, and the most of them.
    running: Arc<(Arc<()>, usize)>,
    gate: Option<Gate>,
    kernel: Option<KernelUse>,
    signer_is_late: Option<LateSigner>,
}

impl TlsServer {
    /// Returns TLS with `config`, prepared by [`prepare`](super::prepare), on the marked listeners.
    pub fn new(
        config: Arc<ServerConfig>,
        listeners: &[bool],
        observer: impl Fn(HandshakeResult) + Send + Sync + 'static,
    ) -> TlsServer {
        let running = Arc::new((Arc::default(), usize::MAX));
        let (listeners, observer) = (listeners.into(), Arc::new(observer));
        TlsServer { config, listeners, observer, running, gate: None, kernel: None, signer_is_late: None }
    }

    /// Bounds concurrent handshakes by `most`, and admits only clients for which `gate` returns true.
    #[must_use]
    pub fn with_bounds(self, most: usize, gate: impl Fn(&Peer) -> bool + Send + Sync + 'static) -> TlsServer {
        TlsServer { running: Arc::new((Arc::default(), most)), gate: Some(Arc::new(gate)), ..self }
    }

    /// Lets the kernel seal the output of TLS 1.3 connections.
    #[must_use]
    pub fn with_kernel(self, kernel: Option<KernelUse>) -> TlsServer {
        TlsServer { kernel, ..self }
    }

    /// Lets handshakes wait while the signing process is late.
    #[must_use]
    pub fn with_signer(self, is_late: impl Fn() -> bool + Send + Sync + 'static) -> TlsServer {
        TlsServer { signer_is_late: Some(Arc::new(is_late)), ..self }
    }

    fn shake(
        &self,
        state: &mut Option<Box<TlsState>>,
        input: &mut [u8],
        out: &mut Out,
    ) -> Result<LayerProgress, rustls::Error> {
        let can_repeat = state.is_none() && out.is_empty();
        if state.is_none() {
            let (running, most) = (Arc::clone(&self.running.0), self.running.1);
            // This server has a reference, and the new handshake another.
            if Arc::strong_count(&running) - 1 > most {
                (self.observer)(HandshakeResult::TooMany);
                return Ok(LayerProgress::Failed);
            }
            let handshake = Handshake::new(&self.config, running)?;
            *state = Some(Box::new(TlsState(TlsPhase::Handshake(handshake), None)));
        }
        let Some(TlsState(phase @ TlsPhase::Handshake(_), facts)) = state.as_deref_mut() else {
            return Ok(LayerProgress::Failed);
        };
        let TlsPhase::Handshake(handshake) = phase else { return Ok(LayerProgress::Failed) };
        let step = match handshake.advance(input, out) {
            // The client has received nothing, and a hello in a single record is unchanged, so a
            // retry is possible.
            Err(error) if can_repeat && signing_failure(&error).is_some_and(|failure| failure.is_late) => {
                *state = None;
                out.clear(usize::MAX);
                return Ok(LayerProgress::Late);
            }
            step => step?,
        };
        Ok(match step {
            HandshakeStep::Incomplete => LayerProgress::Incomplete,
            HandshakeStep::Processed(length) => LayerProgress::Processed(length),
            HandshakeStep::Closed(length) => LayerProgress::Closed(length),
            HandshakeStep::Over(length) => {
                let TlsPhase::Handshake(handshake) = std::mem::replace(phase, TlsPhase::Over) else {
                    return Ok(LayerProgress::Failed);
                };
                let validates = handshake.validates_name();
                let (established, found) = handshake.establish()?;
                let resumed = found.resumed;
                (self.observer)(if resumed { HandshakeResult::Resumed } else { HandshakeResult::Full });
                *facts = Some(Arc::new(found));
                let mut next = match established {
                    Established::Records(records) => TlsPhase::Records(records),
                    Established::Unbuffered(connection) => TlsPhase::Unbuffered(connection),
                };
                if validates {
                    next.close(out);
                    return Ok(LayerProgress::Closed(length));
                }
                *phase = next;
                LayerProgress::Processed(length)
            }
        })
    }
}

/// The state of a connection, and the result of its completed handshake.
pub struct TlsState(TlsPhase, Option<Arc<TlsFacts>>);

enum TlsPhase {
    Handshake(Handshake),
    Records(Records),
    Unbuffered(Unbuffered),
    /// The handshake failed, or the connection served only for the handshake.
    Over,
}

impl TlsPhase {
    fn records(&self) -> Option<&Records> {
        if let TlsPhase::Records(records) = self { Some(records) } else { None }
    }

    fn records_mut(&mut self) -> Option<&mut Records> {
        if let TlsPhase::Records(records) = self { Some(records) } else { None }
    }

    fn close(&mut self, out: &mut Out) {
        match self {
            TlsPhase::Records(records) => records.close(out),
            TlsPhase::Unbuffered(connection) => connection.close(out),
            TlsPhase::Handshake(_) | TlsPhase::Over => {}
        }
    }
}

impl Layer for TlsServer {
    type State = TlsState;

    const RECORD_BYTES: usize = RECORD_BYTES;

    fn covers(&self, connection: &Connection) -> bool {
        self.listeners.get(usize::from(connection.local.listener)).is_some_and(|covered| *covered)
    }

    fn admits(&self, connection: &Connection) -> bool {
        self.gate.as_ref().is_none_or(|gate| gate(&connection.peer))
    }

    fn is_late(&self) -> bool {
        self.signer_is_late.as_ref().is_some_and(|is_late| is_late())
    }

    fn is_long_step(state: Option<&TlsState>, input: &[u8]) -> bool {
        match state.map(|state| &state.0) {
            None => starts_handshake_record(input),
            Some(TlsPhase::Handshake(handshake)) => starts_handshake_record(handshake.unseen(input)),
            Some(TlsPhase::Records(_) | TlsPhase::Unbuffered(_) | TlsPhase::Over) => false,
        }
    }

    fn advance(&self, state: &mut Option<Box<TlsState>>, input: &mut [u8], out: &mut Out) -> LayerProgress {
        match state.as_deref_mut() {
            Some(TlsState(TlsPhase::Records(records), _)) => return records.advance(input, out),
            Some(TlsState(TlsPhase::Unbuffered(connection), _)) => return connection.advance(input, out),
            Some(TlsState(TlsPhase::Over, _)) => return LayerProgress::Failed,
            Some(TlsState(TlsPhase::Handshake(_), _)) => {}
            None => match input.first() {
                None => return LayerProgress::Incomplete,
                Some(b'A'..=b'Z' | b'a'..=b'z') => {
                    stage_bad_request(out);
                    return LayerProgress::Failed;
                }
                Some(_) if length(input).is_none() => return LayerProgress::Incomplete,
                Some(_) => {}
            },
        }
        self.shake(state, input, out).unwrap_or_else(|_| {
            (self.observer)(HandshakeResult::Failed);
            LayerProgress::Failed
        })
    }

    fn overflow(&self, state: Option<&mut TlsState>, out: &mut Out) {
        (self.observer)(HandshakeResult::Failed);
        if let Some(TlsState(TlsPhase::Handshake(handshake), _)) = state {
            handshake.stage_alert(AlertDescription::DecodeError, out);
        }
    }

    fn is_established(state: &TlsState) -> bool {
        matches!(state.0, TlsPhase::Records(_) | TlsPhase::Unbuffered(_))
    }

    fn describe(state: &TlsState, connection: &mut Connection) {
        connection.scheme = Scheme::Https;
        connection.tls.clone_from(&state.1);
    }

    fn seal<T>(
        state: &mut TlsState,
        most: u64,
        out: &mut Out,
        fill: impl FnOnce(&mut Vec<u8>, usize) -> T,
    ) -> Result<T, IoError> {
        match &mut state.0 {
            TlsPhase::Records(records) => records.seal(most, out, fill),
            TlsPhase::Unbuffered(connection) => connection.seal(most, out, fill),
            TlsPhase::Handshake(_) | TlsPhase::Over => Err(IoError::Gone),
        }
    }

    fn close(state: &mut TlsState, out: &mut Out) {
        state.0.close(out);
    }

    fn kernel_parameters(&self, state: &TlsState) -> Option<impl AsRef<[u8]>> {
        self.kernel.and_then(|_| state.0.records().and_then(Records::kernel_parameters))
    }

    fn pass_to_kernel(&self, state: &mut TlsState, sealing: Option<KernelSealing>) -> Result<(), IoError> {
        match (state.0.records_mut(), self.kernel) {
            (Some(records), Some(how)) => records.pass_to_kernel(sealing, how),
            _ => Ok(()),
        }
    }

    fn kernel_sealing(state: &mut TlsState) -> Option<&mut KernelSealing> {
        state.0.records_mut().and_then(Records::kernel_sealing)
    }

    fn limit_kernel(state: &mut TlsState, record: u64, out: &mut Out) -> Result<(), IoError> {
        state.0.records_mut().map_or(Ok(()), |records| records.limit_kernel(record, out))
    }

    fn is_ending(state: &TlsState) -> bool {
        state.0.records().is_some_and(Records::is_ending)
    }
}

/// Whether a plaintext handshake record is complete. The client's last record in TLS 1.3 is not plaintext,
/// but costs little.
fn starts_handshake_record(input: &[u8]) -> bool {
    input.first() == Some(&u8::from(ContentType::Handshake)) && length(input).is_some()
}

/// Answers a request without TLS.
fn stage_bad_request(out: &mut Out) {
    const BODY: &str = "This port requires TLS: use a URL that begins with https://\n";
    out.stage(b"HTTP/1.1 400 Bad Request\r\nDate: ");
    clock::with_date(|date| out.stage(date));
    out.stage(b"\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: ");
    out.stage(BODY.len().to_string().as_bytes());
    out.stage(b"\r\n\r\n");
    out.stage(BODY.as_bytes());
}
