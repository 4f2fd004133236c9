//! A key in the signing process, with the interface of rustls.

use std::fmt;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use aws_lc_rs::rand;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, sendmsg};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::sign::{Signer, SigningKey};
use rustls::{Error, OtherError, SignatureAlgorithm, SignatureScheme};

use super::message::{ANSWER_ROOM, SignAnswer, SignRequest};
use crate::certificates::facts::{CertificateFacts, KeyId, KeyType};
use crate::failure::SigningFailure;

/// The wait for a process that answered late but is alive: the machine is busy, or the key is long.
const SLOW_PATIENCE: Duration = Duration::from_secs(5);

/// The sockets of a worker to the signing process. Each thread uses a free socket; if all are in use, threads
/// wait in turns.
pub struct SigningClient {
    sockets: Vec<Mutex<SigningSocket>>,
    /// The socket of the next thread that finds no free socket.
    turn: AtomicUsize,
    /// Whether an answer was late and nothing has arrived since. Requests then fail immediately, so that
    /// waits do not add up. Processes that share a socket do not share this mark.
    late: AtomicBool,
    patience: Duration,
    path: AnswerPath,
}

/// The path of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerPath {
    /// The socket of the request. Threads of one process may use it.
    Pair,
    /// A stream sent with the request. Processes may share a socket, because each reads its own answers.
    Stream,
}

struct SigningSocket {
    socket: UnixDatagram,
    /// The number of the next request. The first is random, so that answers to a former worker on this socket
    /// are not mistaken for its own.
    next: u64,
    /// Whether the last answer was late. The process is alive, so the next request waits longer.
    is_slow: bool,
}

impl SigningClient {
    /// Returns a client with its ends of at least one pair of sockets; `SOCK_SEQPACKET` reports the end of
    /// the other process immediately. A call waits for `patience` to send and to receive, or longer if the
    /// process answered late.
    pub fn new(
        sockets: impl IntoIterator<Item = UnixDatagram>,
        patience: Duration,
        path: AnswerPath,
    ) -> io::Result<Arc<SigningClient>> {
        let opened = sockets.into_iter().map(|socket| {
            socket.set_read_timeout(Some(patience))?;
            socket.set_write_timeout(Some(patience))?;
            let mut number = [0; 8];
            rand::fill(&mut number).map_err(|_| io::Error::other("the system has no random bytes"))?;
            Ok(Mutex::new(SigningSocket { socket, next: u64::from_le_bytes(number), is_slow: false }))
        });
        let sockets: Vec<_> = opened.collect::<io::Result<_>>()?;
        if sockets.is_empty() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(Arc::new(SigningClient {
            sockets,
            turn: AtomicUsize::new(0),
            late: AtomicBool::new(false),
            patience,
            path,
        }))
    }

    /// Returns the key of a certificate; `None` if TLS does not support its type.
    pub fn key(self: &Arc<Self>, facts: &CertificateFacts) -> Option<Arc<dyn SigningKey>> {
        Some(Arc::new(RemoteKey {
            client: Arc::clone(self),
            id: facts.key_id(),
            kind: facts.key?,
            public_key: facts.public_key.clone().into(),
        }))
    }

    fn sign(&self, key: KeyId, scheme: SignatureScheme, message: &[u8]) -> Result<Vec<u8>, Error> {
        let failed = |why: &str, is_late| {
            let reason = format!("cannot sign the handshake: {why}");
            Error::Other(OtherError(Arc::new(SigningFailure { reason, is_late })))
        };
        let silent = || failed("the signing process does not answer", true);
        if self.is_late() {
            return Err(silent());
        }
        let mut socket = self.socket();
        // Another thread may have found it late while this thread waited for the socket.
        if self.late.load(Ordering::Relaxed) {
            return Err(silent());
        }
        let number = socket.next;
        socket.next = number.wrapping_add(1);
        let request = SignRequest { number, key, scheme, message };
        let answer = match self.path {
            AnswerPath::Pair => socket.ask(&request, self.patience),
            AnswerPath::Stream => ask_by_stream(&socket.socket, &request, self.patience),
        };
        let answer = answer.map_err(|error| match is_timeout(&error) {
            true => {
                self.late.store(self.path == AnswerPath::Pair, Ordering::Relaxed);
                silent()
            }
            // A stream ends with the process that had the request. A pair has both ends as long
            // as there are workers.
            false => failed(&error.to_string(), self.path == AnswerPath::Stream),
        })?;
        match answer.answer() {
            Some(SignAnswer::Signature(signature)) => Ok(signature.to_vec()),
            Some(SignAnswer::UnknownKey) => Err(failed("the signing process does not have the key", false)),
            Some(SignAnswer::Refused) => Err(failed("the signing process refused the message", false)),
            Some(SignAnswer::Lost) => Err(failed("the signing process has ended", true)),
            Some(SignAnswer::Failed) | None => Err(failed("the signing process failed", false)),
        }
    }

    /// Whether requests fail immediately, because the signing process is late. A late answer, or a report of
    /// a successor, ends this. Does not wait.
    pub fn is_late(&self) -> bool {
        let late = || self.late.load(Ordering::Relaxed);
        if late() && self.sockets.iter().any(|socket| free(socket).is_some_and(|mut socket| socket.discard()))
        {
            self.late.store(false, Ordering::Relaxed);
        }
        late()
    }

    fn socket(&self) -> MutexGuard<'_, SigningSocket> {
        if self.path == AnswerPath::Stream {
            // Locks exclude only threads of this process. Process numbers are consecutive, so all sockets are
            // used.
            let index = std::process::id() as usize % self.sockets.len();
            return self.sockets[index].lock().unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(socket) = self.sockets.iter().find_map(free) {
            return socket;
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.sockets.len();
        self.sockets[turn].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the socket if no other thread uses it.
fn free(socket: &Mutex<SigningSocket>) -> Option<MutexGuard<'_, SigningSocket>> {
    match socket.try_lock() {
        Ok(free) => Some(free),
        Err(TryLockError::Poisoned(free)) => Some(free.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

struct AnswerBytes {
    room: [u8; ANSWER_ROOM],
    length: usize,
}

impl AnswerBytes {
    fn answer(&self) -> Option<SignAnswer<'_>> {
        SignAnswer::parse(&self.room[..self.length]).map(|(_, answer)| answer)
    }
}

impl SigningSocket {
    /// Sends a request and returns its answer. Answers to abandoned requests are dropped.
    fn ask(&mut self, request: &SignRequest<'_>, patience: Duration) -> io::Result<AnswerBytes> {
        self.discard();
        let patience = if std::mem::take(&mut self.is_slow) { SLOW_PATIENCE } else { patience };
        let deadline = Instant::now() + patience;
        self.socket.send(&request.to_bytes())?;
        let mut received = AnswerBytes { room: [0; ANSWER_ROOM], length: 0 };
        loop {
            match self.socket.recv(&mut received.room) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => {
                    received.length = length;
                    match SignAnswer::parse(&received.room[..length]) {
                        Some((_, SignAnswer::Lost)) => return Ok(received),
                        Some((number, _)) if number == request.number => return Ok(received),
                        _ => {}
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted || is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
            if Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// Discards late answers to earlier requests, and reports of ended processes. Returns whether there were
    /// any.
    fn discard(&mut self) -> bool {
        let mut bytes = [0; ANSWER_ROOM];
        let mut any = false;
        while let Ok((length @ 1.., _)) = recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT) {
            any = true;
            let answer = SignAnswer::parse(&bytes[..length]);
            self.is_slow = answer.is_some_and(|(_, answer)| answer != SignAnswer::Lost);
        }
        any
    }
}

/// Sends a request with a stream, and returns the answer from the stream. The stream ends if the signing
/// process ends.
fn ask_by_stream(
    socket: &UnixDatagram,
    request: &SignRequest<'_>,
    patience: Duration,
) -> io::Result<AnswerBytes> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_read_timeout(Some(patience))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let rights = [theirs.as_fd()];
    if !control.push(SendAncillaryMessage::ScmRights(&rights)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(socket, &[IoSlice::new(&request.to_bytes())], &mut control, SendFlags::NOSIGNAL)?;
    drop(theirs);
    let mut received = AnswerBytes { room: [0; ANSWER_ROOM], length: 0 };
    // The answer is sent in one call, and received whole.
    received.length = rustix::io::retry_on_intr(|| recv(&ours, &mut received.room, RecvFlags::empty()))?.0;
    match SignAnswer::parse(&received.room[..received.length]) {
        Some((number, _)) if number == request.number => Ok(received),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A key that the signing process has.
struct RemoteKey {
    client: Arc<SigningClient>,
    id: KeyId,
    kind: KeyType,
    public_key: SubjectPublicKeyInfoDer<'static>,
}

/// A signature scheme of such a key.
struct RemoteSigner {
    client: Arc<SigningClient>,
    id: KeyId,
    scheme: SignatureScheme,
}

impl SigningKey for RemoteKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let scheme = *self.kind.schemes().iter().find(|scheme| offered.contains(scheme))?;
        Some(Box::new(RemoteSigner { client: Arc::clone(&self.client), id: self.id, scheme }))
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        Some(SubjectPublicKeyInfoDer::from(self.public_key.as_ref()))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.kind.algorithm()
    }
}

impl Signer for RemoteSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        self.client.sign(self.id, self.scheme, message)
    }

    fn scheme(&self) -> SignatureScheme {
        self.scheme
    }
}

impl fmt::Debug for RemoteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteKey").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl fmt::Debug for RemoteSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteSigner").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}
