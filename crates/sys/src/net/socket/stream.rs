//! Sockets of connections.

use std::fs::File;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU8;
use std::time::Duration;

use rustix::net::sockopt::{self, Timeout};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrAny, ipproto};

use super::option::{read_bytes, set_tcp_option};
use crate::memory::mapping::Mapped;

/// The length of the address by which `connect(2)` dissolves a connection: only a family. Every real address
/// is longer, so a filter can distinguish the two.
pub const DISCONNECT_BYTES: u32 = size_of::<libc::sa_family_t>() as u32;

/// The most bytes that one call discards.
const DISCARD_BYTES: usize = 64 * 1024;

/// The memory for discarded bytes. A TCP socket copies nothing into it (`MSG_TRUNC` in `man 7 tcp`), other sockets do.
static DISCARDED: [AtomicU8; DISCARD_BYTES] = [const { AtomicU8::new(0) }; DISCARD_BYTES];

/// The address and the length of memory that the kernel may fill with discarded bytes at any time: it is static,
/// and no code reads it.
pub(crate) fn discarded_bytes() -> (*mut u8, usize) {
    (DISCARDED.as_ptr().cast_mut().cast(), DISCARD_BYTES)
}

/// The flags of a send that others follow.
const MORE: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::MORE);

/// The most slices that one call writes before a mapped file.
const MOST_SLICES: usize = 16;

/// A connection, closed on drop. Writes and calls that move files can raise SIGPIPE, which Rust programs ignore by default.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// Whether it is a TCP socket and not an MPTCP socket.
    pub fn is_tcp(&self) -> bool {
        sockopt::socket_protocol(self) == Ok(Some(ipproto::TCP))
    }

    /// Receives into `into`; 0 is the end (`man 2 recv`).
    ///
    /// # Errors
    /// The error of the system call; `WouldBlock` if the call would wait.
    #[inline]
    pub fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::net::recv(&self.0, into, RecvFlags::empty())?.1)
    }

    /// Receives into `into` what has arrived, without waiting; 0 is the end (`MSG_DONTWAIT` in `man 2 recv`).
    ///
    /// # Errors
    /// The error of the system call; `WouldBlock` if no byte has arrived.
    pub fn try_receive(&self, into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::net::recv(&self.0, into, RecvFlags::DONTWAIT)?.1)
    }

    /// Receives bytes and discards them. Returns their number; 0 is the end.
    ///
    /// # Errors
    /// The error of the system call; `WouldBlock` if the call would wait.
    pub fn discard_input(&self) -> io::Result<usize> {
        let (memory, length) = discarded_bytes();
        // SAFETY: the kernel writes at most `length` bytes, to atomics in static memory that no code reads.
        let result = unsafe { libc::recv(self.number(), memory.cast(), length, libc::MSG_TRUNC) };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }

    /// Sends `bytes` as far as they fit: by `write(2)`, or by `send(2)` with `MSG_MORE` if more follows immediately. The
    /// flags of a send have a condition in the filters of the sandbox, so the kernel runs them for each send. It needs
    /// only a bitmap for a write.
    ///
    /// # Errors
    /// The error of the system call; `WouldBlock` if the call would wait.
    #[inline]
    pub fn send(&self, bytes: &[u8], more: bool) -> io::Result<usize> {
        Ok(match more {
            false => rustix::io::write(&self.0, bytes)?,
            true => rustix::net::send(&self.0, bytes, MORE)?,
        })
    }

    /// Sends `bytes` as far as they fit, without waiting (`MSG_DONTWAIT` in `man 2 send`).
    ///
    /// # Errors
    /// The error of the system call; `WouldBlock` if there is no room.
    pub fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(&self.0, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?)
    }

    /// Sends `slices` as far as they fit, in one call: `writev(2)`, or `sendmsg(2)` with `MSG_MORE`.
    ///
    /// # Errors
    /// The error of the system call; `WouldBlock` if the call would wait.
    pub fn send_slices(&self, slices: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
        Ok(match more {
            false => rustix::io::writev(&self.0, slices)?,
            true => rustix::net::sendmsg(&self.0, slices, &mut SendAncillaryBuffer::default(), MORE)?,
        })
    }

    /// Sends at most `count` bytes of `file` from `offset` on (`man 2 sendfile`); 0 is the file's end.
    ///
    /// # Errors
    /// The error of the system call; `WouldBlock` if the call would wait.
    pub fn send_file(&self, file: &File, mut offset: u64, count: usize) -> io::Result<usize> {
        Ok(rustix::fs::sendfile(&self.0, file, Some(&mut offset), count)?)
    }

    /// Writes `slices` and then a mapped file, as far as they fit (`man 2 writev`).
    ///
    /// # Errors
    /// The error of the system call; `WouldBlock` if the call would wait, EFAULT if the file has become shorter.
    pub fn write_from(&self, slices: &[IoSlice<'_>], mapped: &Mapped) -> io::Result<usize> {
        let nothing = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let mut vectors = [nothing; MOST_SLICES + 1];
        let taken = slices.len().min(MOST_SLICES);
        for (vector, slice) in vectors.iter_mut().zip(&slices[..taken]) {
            *vector = libc::iovec { iov_base: slice.as_ptr().cast_mut().cast(), iov_len: slice.len() };
        }
        let mut count = taken;
        if taken == slices.len() {
            let (start, length) = mapped.mapping.address(&mapped.range);
            vectors[taken] = libc::iovec { iov_base: start.cast_mut().cast(), iov_len: length };
            count += 1;
        }
        // SAFETY: the kernel only reads: from borrowed slices, and from a mapping that outlives the call. It returns
        // EFAULT if the file no longer has such a page.
        let result = unsafe { libc::writev(self.number(), vectors.as_ptr(), count as libc::c_int) };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }

    /// Discards unsent data and resets the connection immediately; pending waits on the socket fail (`AF_UNSPEC` in
    /// `man 2 connect`). On sockets without resets, such as Unix sockets, both directions are shut down.
    pub fn reset(&self) {
        let family = libc::AF_UNSPEC as libc::sa_family_t;
        let length = DISCONNECT_BYTES as libc::socklen_t;
        // SAFETY: the kernel reads the two bytes of the family, which live on.
        if unsafe { libc::connect(self.number(), (&raw const family).cast(), length) } != 0 {
            self.shut_down();
        }
    }

    /// Ends our output; the peer sees the end after it has read the rest (`man 2 shutdown`).
    pub fn shut_down_writing(&self) {
        // It fails only if the peer has left, which needs no reaction.
        let _ = rustix::net::shutdown(&self.0, Shutdown::Write);
    }

    /// The address of the peer; `None` for a Unix socket.
    ///
    /// # Errors
    /// The error of `getpeername(2)`: `NotConnected` if the peer has left.
    pub fn peer(&self) -> io::Result<Option<SocketAddr>> {
        Ok(rustix::net::getpeername(&self.0)?.and_then(internet_address))
    }

    /// Bytes that the peer's system has acknowledged since the connection began; `None` if unknown, as for a Unix
    /// socket (`tcpi_bytes_acked` of `TCP_INFO`, `man 7 tcp`).
    pub fn acknowledged(&self) -> Option<u64> {
        // `struct tcp_info` of linux/tcp.h: 8 bytes, 24 words of 32 bits, two of 64, then this one.
        const ACKNOWLEDGED: usize = 120;
        let mut info = [0; ACKNOWLEDGED + size_of::<u64>()];
        read_bytes(self.as_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, &mut info).ok()?;
        info[ACKNOWLEDGED..].try_into().ok().map(u64::from_ne_bytes)
    }

    /// Ends output and input, so that operations waiting on the socket return.
    pub fn shut_down(&self) {
        let _ = rustix::net::shutdown(&self.0, Shutdown::Both);
    }

    /// Ends input: bytes that have arrived can still be received, and a waiting thread wakes up at the end.
    pub fn shut_down_reading(&self) {
        // It fails if the peer has left, and then the thread wakes up anyway.
        let _ = rustix::net::shutdown(&self.0, Shutdown::Read);
    }

    /// Whether bytes wait to be received. An end or an error is no input.
    pub fn has_input(&self) -> bool {
        let peeked = rustix::net::recv(&self.0, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        matches!(peeked, Ok((_, 1..)))
    }

    /// Moves the socket to the lowest free descriptor.
    pub fn renumber(self) -> io::Result<Socket> {
        Ok(Socket(self.0.try_clone()?))
    }

    /// See [`crate::net::socket::Listener::set_wait_slice`].
    pub fn set_wait_slice(&self, slice: Duration) -> io::Result<()> {
        set_wait_slice(self.0.as_fd(), slice)
    }

    /// Limits the unsent bytes in the socket's buffer, if it has no limit (`TCP_NOTSENT_LOWAT`, `man 7 tcp`). Above
    /// the limit, the kernel accepts no more.
    pub fn limit_unsent(&self, bytes: u32) -> io::Result<()> {
        let mut limit = [0; 4];
        read_bytes(self.as_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &mut limit)?;
        match limit {
            [0, 0, 0, 0] => set_tcp_option(self.as_fd(), libc::TCP_NOTSENT_LOWAT, bytes),
            _ => Ok(()),
        }
    }

    /// Holds partial segments back, or releases them (`TCP_CORK`, `man 7 tcp`).
    pub fn set_cork(&self, on: bool) -> io::Result<()> {
        Ok(sockopt::set_tcp_cork(&self.0, on)?)
    }

    /// Its number, for registration with a selector or for an operation of a ring.
    #[inline]
    pub fn number(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> OwnedFd {
        socket.0
    }
}

impl From<OwnedFd> for Socket {
    fn from(descriptor: OwnedFd) -> Socket {
        Socket(descriptor)
    }
}

/// The longest wait of a call on a socket that blocks: then its caller checks the clock and the phase. A connection
/// inherits it from its listener when its handshake completes, which may be before the first accept.
#[cfg(not(feature = "test-hooks"))]
pub const fn wait_slice() -> Duration {
    Duration::from_secs(1)
}

/// In builds for tests, 20 ms, so that no test waits for a second; or `TENFOLD_TEST_SLICE` in milliseconds.
#[cfg(feature = "test-hooks")]
pub fn wait_slice() -> Duration {
    static MILLISECONDS: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    let chosen = || std::env::var("TENFOLD_TEST_SLICE").ok()?.parse().ok();
    Duration::from_millis(*MILLISECONDS.get_or_init(|| chosen().unwrap_or(20)))
}

pub(super) fn set_wait_slice(socket: BorrowedFd<'_>, slice: Duration) -> io::Result<()> {
    sockopt::set_socket_timeout(socket, Timeout::Recv, Some(slice))?;
    Ok(sockopt::set_socket_timeout(socket, Timeout::Send, Some(slice))?)
}

pub(super) fn internet_address(address: SocketAddrAny) -> Option<SocketAddr> {
    let address = SocketAddr::try_from(address).ok()?;
    // A passed socket of IPv6 may also accept IPv4 (`man 7 ipv6`, IPV6_V6ONLY).
    match address.ip().to_canonical() {
        mapped @ IpAddr::V4(_) => Some(SocketAddr::new(mapped, address.port())),
        IpAddr::V6(_) => Some(address),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::os::unix::net::UnixStream;

    use super::super::{ListenAddress, ListenOptions, Listener};
    use super::*;

    fn pair() -> (TcpStream, Socket) {
        let any = ListenAddress::Internet("127.0.0.1:0".parse().expect("an address"));
        let listener = Listener::bind(&any, &ListenOptions::default()).expect("loopback has a free port");
        let ListenAddress::Internet(at) = *listener.address() else { panic!("it is bound to a port") };
        let peer = TcpStream::connect(at).expect("it listens");
        let (socket, address) = listener.accept(false).expect("a connection waits");
        assert_eq!(address, peer.local_addr().ok());
        (peer, socket)
    }

    #[test]
    fn bytes_arrive_and_an_end_is_zero_bytes() {
        let (mut peer, socket) = pair();
        peer.write_all(b"hello").expect("a peer may send");
        let mut into = [0; 16];
        assert_eq!(socket.receive(&mut into).expect("bytes have come"), 5);
        socket.set_wait_slice(Duration::from_millis(10)).expect("an option");
        let error = socket.receive(&mut into).expect_err("nothing has come");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        drop(peer);
        assert_eq!(socket.receive(&mut into).expect("the end has come"), 0);
    }

    #[test]
    fn a_try_of_a_socket_that_blocks_does_not_wait() {
        let (mut peer, socket) = pair();
        let mut into = [0; 16];
        let error = socket.try_receive(&mut into).expect_err("nothing has come");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        peer.write_all(b"hello").expect("a peer may send");
        drop(peer);
        assert_eq!(socket.try_receive(&mut into).expect("bytes have come"), 5);
        assert_eq!(socket.try_receive(&mut into).expect("the end has come"), 0);
    }

    #[test]
    fn bytes_are_discarded_and_an_end_is_zero_bytes() {
        fn discards(mut peer: impl Write, socket: &Socket) {
            peer.write_all(&[7; 100_000]).expect("a peer may send");
            let mut left = 100_000;
            while left > 0 {
                let count = socket.discard_input().expect("bytes have come");
                assert!((1..=DISCARD_BYTES.min(left)).contains(&count), "{count} of {left}");
                left -= count;
            }
            peer.write_all(b"x").expect("a peer may send");
            assert_eq!(socket.receive(&mut [0; 16]).expect("no more than has come is discarded"), 1);
            socket.set_wait_slice(Duration::from_millis(10)).expect("an option");
            let error = socket.discard_input().expect_err("nothing has come");
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            drop(peer);
            assert_eq!(socket.discard_input().expect("the end has come"), 0);
        }
        let (peer, socket) = pair();
        discards(peer, &socket);
        let (ours, peer) = UnixStream::pair().expect("descriptors");
        discards(peer, &Socket::from(OwnedFd::from(ours)));
    }

    #[test]
    fn input_that_waits_is_seen_and_stays() {
        let (mut peer, socket) = pair();
        assert!(!socket.has_input());
        peer.write_all(b"x").expect("a peer may send");
        peer.shutdown(std::net::Shutdown::Write).expect("a peer may end its output");
        let mut polled = [rustix::event::PollFd::new(&socket, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut polled, None).expect("bytes come");
        assert!(socket.has_input());
        assert_eq!(socket.receive(&mut [0; 16]).expect("bytes have come"), 1);
        assert_eq!(socket.receive(&mut [0; 16]).expect("the end has come"), 0);
        assert!(!socket.has_input());
    }

    #[test]
    fn the_end_of_input_wakes_a_thread_that_receives() {
        let (mut peer, socket) = pair();
        std::thread::scope(|scope| {
            // A wait of a test build ends after 20 ms, so the thread waits again.
            let is_over = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
            let receive = || std::iter::repeat_with(|| socket.receive(&mut [0; 16]));
            let receiver =
                scope.spawn(move || receive().find(|received| !received.as_ref().is_err_and(is_over)));
            // Usually the thread waits by now; otherwise it finds the end immediately.
            std::thread::sleep(Duration::from_millis(50));
            socket.shut_down_reading();
            let received = receiver.join().expect("it does not panic").expect("it receives without end");
            assert_eq!(received.expect("an end is no error"), 0);
        });
        assert_eq!(socket.send(b"bye", false).expect("output goes on"), 3);
        assert_eq!(peer.read(&mut [0; 16]).expect("it arrives"), 3);
    }

    #[test]
    fn a_renumbered_socket_has_the_lowest_free_number_and_the_same_peer() {
        let (mut peer, socket) = pair();
        let before = socket.number();
        let socket = socket.renumber().expect("descriptors");
        assert_ne!(socket.number(), before);
        socket.send(b"x", false).expect("the peer is there");
        assert_eq!(peer.read(&mut [0; 16]).expect("it arrives"), 1);
    }

    #[test]
    fn a_reset_is_reported_at_both_ends() {
        let (mut peer, socket) = pair();
        socket.reset();
        let error = peer.read(&mut [0; 16]).expect_err("it is no end in order");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        let error = socket.receive(&mut [0; 16]).expect_err("who receives hears of it");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);

        let (ours, mut peer) = UnixStream::pair().expect("descriptors");
        let socket = Socket::from(OwnedFd::from(ours));
        socket.reset();
        assert_eq!(peer.read(&mut [0; 16]).expect("it ends"), 0);
        assert_eq!(socket.receive(&mut [0; 16]).expect("it ends"), 0);
    }
}
