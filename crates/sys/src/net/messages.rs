//! Messages between processes, which can carry descriptors (`man 7 unix`, SCM_RIGHTS). No call blocks.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::OFlags;
use rustix::io::ioctl_fionread;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair, sockopt,
};

use crate::net::socket::Socket;
use crate::net::socket::option::refuse_descriptors;

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
///
/// # Errors
/// The error of `socketpair(2)`.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// The same for a loop, which may watch them by a library that would set their mode.
///
/// # Errors
/// The error of `socketpair(2)`.
pub fn nonblocking_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?)
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
///
/// # Errors
/// The error of `send(2)`.
pub fn send_bytes(stream: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?)
}

impl ReceivedMessage {
    /// Whether this process has no number left for its descriptor (EMFILE), which was closed.
    pub fn lost_descriptor(&self) -> bool {
        !self.whole && self.descriptors.is_empty()
    }

    /// The only descriptor, if it is a connected Unix stream without unread bytes. Bytes in a queue can bring
    /// descriptors, which are closed with the socket, and a close waits as long as the SO_LINGER of its sender says. So
    /// the stream takes none from here on, and workers may not set SO_LINGER. It is no more than that: the descriptors
    /// of urgent data that was read stay in a queue without unread bytes, and are closed with it.
    pub fn into_socket(self) -> Option<OwnedFd> {
        let [one] = <[OwnedFd; 1]>::try_from(self.descriptors).ok()?;
        refuse_descriptors(&one);
        let is_stream = sockopt::socket_domain(&one) == Ok(AddressFamily::UNIX)
            && sockopt::socket_type(&one) == Ok(SocketType::STREAM);
        // A peek would miss urgent data.
        (is_stream && ioctl_fionread(&one) == Ok(0)).then_some(one)
    }

    /// The only descriptor, if it is a TCP socket whose calls do not wait. Such a socket has no queue for descriptors, and
    /// waits at its close only by SO_LINGER. The close of other descriptors may take long: that of an inotify instance
    /// waits for all processors.
    pub fn into_connection(self) -> Option<Socket> {
        let [one] = <[OwnedFd; 1]>::try_from(self.descriptors).ok()?;
        let is_internet =
            [Ok(AddressFamily::INET), Ok(AddressFamily::INET6)].contains(&sockopt::socket_domain(&one));
        let waits = !rustix::fs::fcntl_getfl(&one).is_ok_and(|mode| mode.contains(OFlags::NONBLOCK));
        Some(Socket::from(one)).filter(|socket| is_internet && !waits && socket.is_tcp())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn passed(what: impl AsFd) -> Option<(Socket, SocketAddr)> {
        let (sender, receiver) = pair().expect("descriptors");
        send(&sender, b"x", &[what.as_fd()]).expect("there is room");
        let received = receive(&receiver, &mut [0; 8]).expect("it has come");
        assert!(received.whole);
        let socket = received.into_connection()?;
        socket.peer().ok().flatten().map(|peer| (socket, peer))
    }

    #[test]
    fn only_a_connected_tcp_socket_is_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let client = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (server, peer) = listener.accept().expect("a connection waits");
        assert!(passed(&server).is_none(), "its calls wait");
        server.set_nonblocking(true).expect("our own socket");
        assert_eq!(passed(&server).expect("a connection").1, peer);
        drop(client);
        let (stream, _other) = UnixStream::pair().expect("descriptors");
        let datagrams = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
        datagrams.connect(peer).expect("any address");
        let null = std::fs::File::open("/dev/null").expect("Linux has it");
        stream.set_nonblocking(true).expect("our own socket");
        datagrams.set_nonblocking(true).expect("our own socket");
        listener.set_nonblocking(true).expect("our own socket");
        for other in [listener.as_fd(), stream.as_fd(), datagrams.as_fd(), null.as_fd()] {
            assert!(passed(other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn more_than_one_descriptor_is_no_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let client = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        client.set_nonblocking(true).expect("our own socket");
        let (sender, receiver) = pair().expect("descriptors");
        send(&sender, b"x", &[client.as_fd(), client.as_fd()]).expect("there is room");
        assert!(receive(&receiver, &mut [0; 8]).expect("it has come").into_connection().is_none());
        send(&sender, b"x", &[]).expect("there is room");
        assert!(receive(&receiver, &mut [0; 8]).expect("it has come").into_connection().is_none());
    }
}
