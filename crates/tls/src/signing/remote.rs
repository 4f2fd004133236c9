//! A key of another process, as rustls sees it.

use std::fmt;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aws_lc_rs::rand;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::sign::{Signer, SigningKey};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};

use super::message::{ANSWER_ROOM, SignAnswer, SignRequest};
use crate::certificates::facts::{CertificateFacts, KeyId, KeyType};

/// The socket of one worker to the process that signs. Threads of a worker take turns.
pub struct SigningClient {
    socket: Mutex<SigningSocket>,
    patience: Duration,
}

struct SigningSocket {
    socket: UnixDatagram,
    /// The number of the next request. It starts at random, so that an answer to a former worker on this socket is not
    /// taken for one of ours.
    next: u64,
}

impl SigningClient {
    /// Returns a client on one end of a pair of sockets; `SOCK_SEQPACKET` tells at once when the other process has
    /// ended. A call waits for `patience` to send, and to receive at most twice that: once for an answer to an
    /// earlier request.
    ///
    /// # Errors
    /// Fails if the socket takes no timeout or the system has no random bytes.
    pub fn new(socket: UnixDatagram, patience: Duration) -> io::Result<Arc<SigningClient>> {
        socket.set_read_timeout(Some(patience))?;
        socket.set_write_timeout(Some(patience))?;
        let mut number = [0; 8];
        rand::fill(&mut number).map_err(|_| io::Error::other("the system has no random bytes"))?;
        let socket = Mutex::new(SigningSocket { socket, next: u64::from_le_bytes(number) });
        Ok(Arc::new(SigningClient { socket, patience }))
    }

    /// Returns the key of a certificate; `None` if TLS cannot use its type.
    pub fn key(self: &Arc<Self>, facts: &CertificateFacts) -> Option<Arc<dyn SigningKey>> {
        Some(Arc::new(RemoteKey {
            client: Arc::clone(self),
            id: facts.key_id(),
            kind: facts.key?,
            public_key: facts.public_key.clone().into(),
        }))
    }

    fn sign(&self, key: KeyId, scheme: SignatureScheme, message: &[u8]) -> Result<Vec<u8>, Error> {
        let failed = |why: &str| Error::General(format!("cannot sign the handshake: {why}"));
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let number = socket.next;
        socket.next = number.wrapping_add(1);
        let deadline = Instant::now() + self.patience;
        let answer = socket.ask(&SignRequest { number, key, scheme, message }, deadline);
        match answer.map_err(|error| failed(&error.to_string()))?.answer() {
            Some(SignAnswer::Signature(signature)) => Ok(signature.to_vec()),
            Some(SignAnswer::UnknownKey) => Err(failed("the signing process does not have the key")),
            Some(SignAnswer::Refused) => Err(failed("the signing process refused the message")),
            Some(SignAnswer::Failed) | None => Err(failed("the signing process failed")),
        }
    }
}

/// The bytes of an answer.
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
    /// Sends a request and returns its answer. Answers to requests that were given up are dropped.
    fn ask(&mut self, request: &SignRequest<'_>, deadline: Instant) -> io::Result<AnswerBytes> {
        self.socket.send(&request.to_bytes())?;
        let mut received = AnswerBytes { room: [0; ANSWER_ROOM], length: 0 };
        loop {
            match self.socket.recv(&mut received.room) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => received.length = length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            let number = SignAnswer::parse(&received.room[..received.length]).map(|(number, _)| number);
            if number == Some(request.number) {
                return Ok(received);
            }
            if Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

/// A key that the other process has.
struct RemoteKey {
    client: Arc<SigningClient>,
    id: KeyId,
    kind: KeyType,
    public_key: SubjectPublicKeyInfoDer<'static>,
}

/// One signature scheme of such a key.
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
