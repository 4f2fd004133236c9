//! The keys of the signing process, and its loop.

use std::collections::HashMap;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketType, recvmsg,
    send, sockopt,
};
use rustls::sign::SigningKey;

use super::message::{REQUEST_ROOM, SignAnswer, SignRequest};
use super::shape;
use crate::certificates::facts::KeyId;

/// The private keys of a server, by the digest of their public keys.
pub struct HeldKeys {
    keys: HashMap<KeyId, Arc<dyn SigningKey>>,
}

impl HeldKeys {
    /// Returns a set of keys.
    pub fn new(keys: impl IntoIterator<Item = Arc<dyn SigningKey>>) -> HeldKeys {
        let named = |key: Arc<dyn SigningKey>| {
            let id = KeyId::of(&key.public_key()?);
            Some((id, key))
        };
        HeldKeys { keys: keys.into_iter().filter_map(named).collect() }
    }

    /// Answers requests on a socket until its other end is closed (`SOCK_SEQPACKET`; a `SOCK_DGRAM` has no
    /// end). The answer goes to the stream that comes with a request, or back on the socket. Several threads
    /// may serve the same keys, each on the socket of one worker. A worker that does not read stops
    /// only its own socket. If it shuts the socket down, its successor needs a new pair.
    ///
    /// Fails if the socket does.
    pub fn serve(&self, socket: &UnixDatagram) -> io::Result<()> {
        let mut room = [0; REQUEST_ROOM];
        loop {
            let (length, reply) = match receive(socket, &mut room) {
                Ok((0, _)) if is_closed(socket)? => return Ok(()),
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
                Err(error) => return Err(error),
            };
            // A message without a number gets no answer; the worker's wait is bounded.
            let Some(answer) = self.answer(&room[..length]) else { continue };
            if let Some(reply) = reply {
                // A client that does not read loses its answer.
                let _ = send(reply, &answer, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
                continue;
            }
            match socket.send(&answer) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Ok(_) | Err(_) => {}
            }
        }
    }

    /// Returns the answer to a message; `None` if it is not a request.
    fn answer(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let request = SignRequest::parse(bytes)?;
        let refused = |answer: SignAnswer<'_>| Some(answer.to_bytes(request.number));
        let Some(key) = self.keys.get(&request.key) else { return refused(SignAnswer::UnknownKey) };
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

/// Notifies the client of a pair, without waiting, that its request may be lost, because the process that
/// served `socket` has ended.
pub fn tell_lost(socket: &UnixDatagram) {
    let _ = send(socket, &SignAnswer::Lost.to_bytes(0), SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

/// Receives a message, and the stream for its answer if the message includes one.
fn receive(socket: &UnixDatagram, bytes: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    let is_stream = |socket: &OwnedFd| {
        sockopt::socket_domain(socket) == Ok(AddressFamily::UNIX)
            && sockopt::socket_type(socket) == Ok(SocketType::STREAM)
    };
    Ok((received.bytes, descriptors.flatten().find(is_stream)))
}

/// Whether the other end is closed; `recv` also returns zero for an empty message.
fn is_closed(socket: &UnixDatagram) -> io::Result<bool> {
    let mut polled = [PollFd::new(socket, PollFlags::RDHUP)];
    poll(&mut polled, Some(&Timespec::default()))?;
    Ok(polled[0].revents().intersects(PollFlags::RDHUP | PollFlags::HUP))
}

#[cfg(test)]
mod tests;
