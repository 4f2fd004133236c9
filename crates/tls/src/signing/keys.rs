//! The keys of the process that signs, and its loop.

use std::collections::HashMap;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::sign::SigningKey;

use super::message::{REQUEST_ROOM, SignAnswer, SignRequest};
use super::shape;
use crate::certificates::facts::KeyId;

/// The private keys of a server, by the digest of their public keys.
pub struct HeldKeys {
    keys: ArcSwap<HashMap<KeyId, Arc<dyn SigningKey>>>,
}

impl HeldKeys {
    /// Returns a set of keys.
    pub fn new(keys: impl IntoIterator<Item = Arc<dyn SigningKey>>) -> HeldKeys {
        HeldKeys { keys: ArcSwap::from_pointee(by_id(keys)) }
    }

    /// Replaces all keys. Keys of the generation that leaves must be among them.
    pub fn replace(&self, keys: impl IntoIterator<Item = Arc<dyn SigningKey>>) {
        self.keys.store(Arc::new(by_id(keys)));
    }

    /// Answers requests on a socket until its other end is closed (`SOCK_SEQPACKET`; a `SOCK_DGRAM` has no end).
    /// Several threads may serve the same keys, each on the socket of one worker. A worker that does not read stops its
    /// own socket alone; one that shuts it down stops it for its successor, too, which needs a new pair.
    ///
    /// # Errors
    /// Returns an error of the socket.
    pub fn serve(&self, socket: &UnixDatagram) -> io::Result<()> {
        let mut room = [0; REQUEST_ROOM];
        loop {
            let length = match socket.recv(&mut room) {
                Ok(0) if is_closed(socket)? => return Ok(()),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
                Err(error) => return Err(error),
            };
            // No number, no answer: the worker's wait has a bound.
            let Some(answer) = self.answer(&room[..length]) else { continue };
            match socket.send(&answer) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Returns the answer to one message; `None` if it is no request.
    fn answer(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let request = SignRequest::parse(bytes)?;
        let refused = |answer: SignAnswer<'_>| Some(answer.to_bytes(request.number));
        let keys = self.keys.load();
        let Some(key) = keys.get(&request.key) else { return refused(SignAnswer::UnknownKey) };
        let signer = key.choose_scheme(&[request.scheme]);
        let Some(signer) = signer.filter(|_| shape::is_handshake(request.message, request.scheme)) else {
            return refused(SignAnswer::Refused);
        };
        match signer.sign(request.message) {
            Ok(signature) => Some(SignAnswer::Signature(&signature).to_bytes(request.number)),
            Err(_) => refused(SignAnswer::Failed),
        }
    }
}

/// Whether the other end is closed. `recv` returns zero for an empty message, too.
fn is_closed(socket: &UnixDatagram) -> io::Result<bool> {
    let mut polled = [PollFd::new(socket, PollFlags::RDHUP)];
    poll(&mut polled, Some(&Timespec::default()))?;
    Ok(polled[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP))
}

fn by_id(keys: impl IntoIterator<Item = Arc<dyn SigningKey>>) -> HashMap<KeyId, Arc<dyn SigningKey>> {
    let named = |key: Arc<dyn SigningKey>| {
        let id = KeyId::of(&key.public_key()?);
        Some((id, key))
    };
    keys.into_iter().filter_map(named).collect()
}

#[cfg(test)]
mod tests;
