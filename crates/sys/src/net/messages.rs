//! Messages between processes, which can carry descriptors (`man 7 unix`, SCM_RIGHTS). No call blocks.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// The most descriptors of a message.
const MOST_DESCRIPTORS: usize = 2;

/// A received message.
#[derive(Debug)]
pub struct ReceivedMessage {
    /// Bytes of the message.
    pub length: usize,
    /// Whether its bytes and descriptors are complete.
    pub whole: bool,
    descriptors: Vec<OwnedFd>,
}

/// Creates two connected sockets that preserve message boundaries.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends a message with `descriptors`, at most two.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if the queue is full, or the error of `sendmsg(2)`.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a message and its descriptor.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if there is no message, or the error of `recvmsg(2)`.
pub fn receive(socket: impl AsFd, bytes: &mut [u8]) -> io::Result<ReceivedMessage> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, flags)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let whole = !received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    Ok(ReceivedMessage { length: received.bytes, whole, descriptors })
}

/// Sends bytes to a stream. Returns the number of bytes sent.
pub fn send_bytes(stream: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?)
}

impl ReceivedMessage {
    /// The only descriptor.
    pub fn into_descriptor(self) -> Option<OwnedFd> {
        let [only] = <[OwnedFd; 1]>::try_from(self.descriptors).ok()?;
        Some(only)
    }
}
