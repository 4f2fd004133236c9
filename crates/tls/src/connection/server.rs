//! The server's side of TLS as a layer.

use std::fmt;
use std::sync::Arc;

use rustls::{CipherSuite, ProtocolVersion, ServerConfig};
use tenfold_http::layer::{Layer, Progress};
use tenfold_http::{Connection, IoError, Out, Scheme, clock};

use super::handshake::{Established, Handshake, Step};
use super::records::Records;
use super::unbuffered::{RECORD_BYTES, Unbuffered, length};

/// The facts of a connection behind its handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The version of TLS.
    pub version: ProtocolVersion,
    /// The cipher suite.
    pub cipher: CipherSuite,
    /// The protocol that was chosen by ALPN (RFC 7301).
    pub protocol: Option<Box<[u8]>>,
    /// The server's name, as the client gave it (RFC 6066 §3).
    pub name: Option<Box<str>>,
    /// Whether a former session was resumed.
    pub resumed: bool,
}

/// The end of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeResult {
    /// It was performed in full.
    Full,
    /// It resumed a session.
    Resumed,
    /// It failed.
    Failed,
}

/// An observer of handshakes.
type Observer = Arc<dyn Fn(HandshakeResult) + Send + Sync>;

/// TLS on the connections of some listeners.
#[derive(Clone)]
pub struct TlsServer {
    config: Arc<ServerConfig>,
    /// By listener: whether its connections have TLS.
    listeners: Arc<[bool]>,
    observer: Observer,
}

impl TlsServer {
    /// TLS with `config`, which went through [`prepare`](super::prepare), on the listeners that are marked.
    pub fn new(
        config: Arc<ServerConfig>,
        listeners: &[bool],
        observer: impl Fn(HandshakeResult) + Send + Sync + 'static,
    ) -> TlsServer {
        TlsServer { config, listeners: listeners.into(), observer: Arc::new(observer) }
    }

    fn shake(
        &self,
        state: &mut Option<Box<TlsState>>,
        input: &mut [u8],
        out: &mut Out,
    ) -> Result<Progress, rustls::Error> {
        if state.is_none() {
            *state = Some(Box::new(TlsState(Phase::Handshake(Handshake::new(&self.config)?), None)));
        }
        let Some(TlsState(phase @ Phase::Handshake(_), facts)) = state.as_deref_mut() else {
            return Ok(Progress::Failed);
        };
        let Phase::Handshake(handshake) = phase else { return Ok(Progress::Failed) };
        Ok(match handshake.advance(input, out)? {
            Step::Incomplete => Progress::Incomplete,
            Step::Processed(length) => Progress::Processed(length),
            Step::Closed(length) => Progress::Closed(length),
            Step::Over(length) => {
                let Phase::Handshake(handshake) = std::mem::replace(phase, Phase::Over) else {
                    return Ok(Progress::Failed);
                };
                let (established, found) = handshake.establish()?;
                let resumed = found.resumed;
                *facts = Some(found);
                *phase = match established {
                    Established::Records(records) => Phase::Records(records),
                    Established::Unbuffered(connection) => Phase::Unbuffered(connection),
                };
                (self.observer)(if resumed { HandshakeResult::Resumed } else { HandshakeResult::Full });
                Progress::Processed(length)
            }
        })
    }
}

impl fmt::Debug for TlsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TlsServer({:?})", self.listeners)
    }
}

/// The state of a connection.
pub struct TlsState(Phase, Option<Facts>);

enum Phase {
    Handshake(Handshake),
    Records(Records),
    Unbuffered(Unbuffered),
    /// The handshake has failed.
    Over,
}

impl TlsState {
    /// The facts of the connection, once its handshake is over.
    pub fn facts(&self) -> Option<&Facts> {
        self.1.as_ref()
    }
}

impl fmt::Debug for TlsState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TlsState({:?})", self.1)
    }
}

impl Layer for TlsServer {
    type State = TlsState;

    const RECORD_BYTES: usize = RECORD_BYTES;

    fn covers(&self, connection: &Connection) -> bool {
        self.listeners.get(usize::from(connection.local.listener)).is_some_and(|covered| *covered)
    }

    fn advance(&self, state: &mut Option<Box<TlsState>>, input: &mut [u8], out: &mut Out) -> Progress {
        match state.as_deref_mut() {
            Some(TlsState(Phase::Records(records), _)) => return records.advance(input, out),
            Some(TlsState(Phase::Unbuffered(connection), _)) => return connection.advance(input, out),
            Some(TlsState(Phase::Over, _)) => return Progress::Failed,
            Some(TlsState(Phase::Handshake(_), _)) => {}
            None => match input.first() {
                None => return Progress::Incomplete,
                Some(b'A'..=b'Z' | b'a'..=b'z') => {
                    stage_bad_request(out);
                    return Progress::Failed;
                }
                Some(_) if length(input).is_none() => return Progress::Incomplete,
                Some(_) => {}
            },
        }
        self.shake(state, input, out).unwrap_or_else(|_| {
            (self.observer)(HandshakeResult::Failed);
            Progress::Failed
        })
    }

    fn is_established(state: &TlsState) -> bool {
        matches!(state.0, Phase::Records(_) | Phase::Unbuffered(_))
    }

    fn has_answered(state: &TlsState) -> bool {
        match &state.0 {
            Phase::Records(records) => records.has_sealed(),
            Phase::Unbuffered(connection) => connection.has_sealed(),
            Phase::Handshake(_) | Phase::Over => false,
        }
    }

    fn describe(_: &TlsState, connection: &mut Connection) {
        connection.scheme = Scheme::Https;
    }

    fn seal(state: &mut TlsState, content: &[u8], out: &mut Out) -> Result<usize, IoError> {
        match &mut state.0 {
            Phase::Records(records) => records.seal(content, out),
            Phase::Unbuffered(connection) => connection.seal(content, out),
            Phase::Handshake(_) | Phase::Over => Err(IoError::Gone),
        }
    }

    fn close(state: &mut TlsState, out: &mut Out) {
        match &mut state.0 {
            Phase::Records(records) => records.close(out),
            Phase::Unbuffered(connection) => connection.close(out),
            Phase::Handshake(_) | Phase::Over => {}
        }
    }
}

/// Answers a request that came without TLS.
fn stage_bad_request(out: &mut Out) {
    const BODY: &str = "This port requires TLS: use a URL that begins with https://\n";
    out.stage(b"HTTP/1.1 400 Bad Request\r\nDate: ");
    clock::with_date(|date| out.stage(date));
    out.stage(b"\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\nContent-Length: ");
    out.stage(BODY.len().to_string().as_bytes());
    out.stage(b"\r\n\r\n");
    out.stage(BODY.as_bytes());
}
