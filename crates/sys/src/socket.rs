//! Sockets: listening ones, and the connections they accept.

use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrAny, SocketAddrUnix,
    SocketFlags, SocketType,
};

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// An address and a port, as in `127.0.0.1:8080` or `[::]:80`.
    Internet(SocketAddr),
    /// A Unix socket, as in `unix:/run/site.sock`.
    Unix(PathBuf),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Internet(address) => address.fmt(f),
            ListenAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<ListenAddress, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match path {
                "" => Err("unix: needs a path behind it".into()),
                _ => Ok(ListenAddress::Unix(path.into())),
            };
        }
        text.parse()
            .map(ListenAddress::Internet)
            .map_err(|_| format!("{text:?} is no address; write 127.0.0.1:8080, [::]:80 or unix:PATH"))
    }
}

/// How long calls that wait last at most on connections that come before [`Listener::set_wait_slice`].
const FIRST_SLICE: Duration = Duration::from_secs(1);

/// What is set on a listening socket; accepted ones inherit the TCP options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// Connections that the kernel completes ahead of `accept` (`man 2 listen`); it cuts the number at
    /// `net.core.somaxconn`.
    pub backlog: i32,
    /// `TCP_NODELAY`: send at once, however little (`man 7 tcp`).
    pub tcp_nodelay: bool,
    /// `TCP_DEFER_ACCEPT`: a connection is accepted when its first bytes are there (`man 7 tcp`).
    pub defer_accept: bool,
    /// `SO_REUSEPORT`: several sockets on one address, among which the kernel spreads connections.
    pub reuse_port: bool,
}

/// A bound and listening socket.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    address: ListenAddress,
}

impl Listener {
    /// Binds to `address` and listens.
    ///
    /// # Errors
    /// What the system says: the address is in use, not of this machine, or its port is privileged. A
    /// Unix socket that nobody listens on any more is replaced; one in use is not.
    pub fn bind(address: &ListenAddress, options: &ListenOptions) -> io::Result<Listener> {
        let socket = match address {
            ListenAddress::Internet(at) => internet(at, options)?,
            ListenAddress::Unix(path) => {
                let at = SocketAddrUnix::new(path.as_path())?;
                let socket = new_socket(AddressFamily::UNIX)?;
                if is_stale(path, &at)? {
                    std::fs::remove_file(path)?;
                }
                rustix::net::bind(&socket, &at)?;
                socket
            }
        };
        // Connections inherit it when they are complete, which may be before anybody accepts them.
        set_wait_slice(socket.as_fd(), FIRST_SLICE)?;
        rustix::net::listen(&socket, options.backlog)?;
        let address = match address {
            ListenAddress::Internet(_) => {
                let bound = rustix::net::getsockname(&socket)?;
                ListenAddress::Internet(bound.try_into().map_err(io::Error::from)?)
            }
            ListenAddress::Unix(_) => address.clone(),
        };
        Ok(Listener { socket, address })
    }

    /// Where it listens, with the port that the system chose when none was asked for.
    pub fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// A second handle to the same socket, with the same queue.
    ///
    /// # Errors
    /// When no descriptors are left.
    pub fn duplicate(&self) -> io::Result<Listener> {
        Ok(Listener { socket: self.socket.try_clone()?, address: self.address.clone() })
    }

    /// Whether `accept` returns at once when nobody is there. Holds for every handle to the socket.
    ///
    /// # Errors
    /// What `ioctl(2)` says.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        Ok(rustix::io::ioctl_fionbio(&self.socket, on)?)
    }

    /// Lets `accept`, and every receive and send on accepted connections, wait at most `slice`
    /// (`SO_RCVTIMEO`, `SO_SNDTIMEO`; TCP sockets inherit them).
    ///
    /// # Errors
    /// What `setsockopt(2)` says.
    pub fn set_wait_slice(&self, slice: Duration) -> io::Result<()> {
        set_wait_slice(self.socket.as_fd(), slice)
    }

    /// Lets each connection that is accepted from now on send at most so many bytes a second
    /// (`SO_MAX_PACING_RATE`, `man 7 socket`); `None` for as many as it can. It is for TCP: other sockets take
    /// it and heed it not.
    ///
    /// # Errors
    /// What `setsockopt(2)` says.
    pub fn set_max_rate(&self, bytes: Option<u64>) -> io::Result<()> {
        let rate: libc::c_ulong = bytes.unwrap_or(libc::c_ulong::MAX);
        // SAFETY: the option takes an unsigned long; the pointer and length are those of a live one.
        let result = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MAX_PACING_RATE,
                (&raw const rate).cast(),
                size_of::<libc::c_ulong>() as libc::socklen_t,
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Accepts a connection. `None` stands for a peer on a Unix socket.
    ///
    /// # Errors
    /// What `accept(2)` says; [`crate::failure::after_accept`] says what to do then.
    pub fn accept(&self, nonblocking: bool) -> io::Result<(Socket, Option<SocketAddr>)> {
        let flags =
            if nonblocking { SocketFlags::CLOEXEC | SocketFlags::NONBLOCK } else { SocketFlags::CLOEXEC };
        let (socket, peer) = rustix::net::acceptfrom_with(&self.socket, flags)?;
        Ok((Socket(socket), peer.and_then(internet_address)))
    }

    /// Its number, for a selector's registration.
    pub fn number(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn internet(at: &SocketAddr, options: &ListenOptions) -> io::Result<OwnedFd> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = new_socket(family)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if options.reuse_port {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    if at.is_ipv6() {
        // `[::]` means IPv6 alone: what is served is what is named.
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    sockopt::set_tcp_nodelay(&socket, options.tcp_nodelay)?;
    if options.defer_accept {
        defer_accept(socket.as_fd())?;
    }
    rustix::net::bind(&socket, at)?;
    Ok(socket)
}

fn new_socket(family: AddressFamily) -> io::Result<OwnedFd> {
    Ok(rustix::net::socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// Whether a socket file is left from a server that has gone.
fn is_stale(path: &std::path::Path, at: &SocketAddrUnix) -> io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Ok(facts) if facts.file_type().is_socket() => {
            let probe = new_socket(AddressFamily::UNIX)?;
            Ok(rustix::net::connect(&probe, at) == Err(rustix::io::Errno::CONNREFUSED))
        }
        _ => Ok(false),
    }
}

/// `TCP_DEFER_ACCEPT`: a listening socket hands connections out when their first bytes are there; on a
/// connecting one, the handshake's acknowledgement travels with them.
pub(crate) fn defer_accept(socket: BorrowedFd<'_>) -> io::Result<()> {
    let seconds: libc::c_int = 1;
    // SAFETY: the option takes an int; the pointer and length are those of a live one.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
            (&raw const seconds).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn set_wait_slice(socket: BorrowedFd<'_>, slice: Duration) -> io::Result<()> {
    sockopt::set_socket_timeout(socket, Timeout::Recv, Some(slice))?;
    Ok(sockopt::set_socket_timeout(socket, Timeout::Send, Some(slice))?)
}

fn internet_address(address: SocketAddrAny) -> Option<SocketAddr> {
    address.try_into().ok()
}

/// A connection. Closed when dropped. Nothing here raises SIGPIPE.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// Receives into `into`; 0 is the end (`man 2 recv`).
    ///
    /// # Errors
    /// What the system says; `WouldBlock` where it would have waited.
    #[inline]
    pub fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::net::recv(&self.0, into, RecvFlags::empty())?.1)
    }

    /// Sends what fits of `bytes` (`man 2 send`). `more` says that more follows at once (`MSG_MORE`).
    ///
    /// # Errors
    /// What the system says; `WouldBlock` where it would have waited.
    #[inline]
    pub fn send(&self, bytes: &[u8], more: bool) -> io::Result<usize> {
        Ok(rustix::net::send(&self.0, bytes, send_flags(more))?)
    }

    /// Sends what fits of `slices` in one call (`man 2 sendmsg`).
    ///
    /// # Errors
    /// What the system says; `WouldBlock` where it would have waited.
    pub fn send_slices(&self, slices: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
        let mut nothing = SendAncillaryBuffer::default();
        Ok(rustix::net::sendmsg(&self.0, slices, &mut nothing, send_flags(more))?)
    }

    /// Sends at most `count` bytes of `file` from `offset` on (`man 2 sendfile`); 0 is the file's end.
    ///
    /// # Errors
    /// What the system says; `WouldBlock` where it would have waited.
    pub fn send_file(&self, file: &File, mut offset: u64, count: usize) -> io::Result<usize> {
        Ok(rustix::fs::sendfile(&self.0, file, Some(&mut offset), count)?)
    }

    /// Ends our output; the peer sees an end when it has read the rest (`man 2 shutdown`).
    pub fn shut_down_writing(&self) {
        // It fails when the peer is gone, and then there is nobody to tell.
        let _ = rustix::net::shutdown(&self.0, Shutdown::Write);
    }

    /// The address of the other end; none for a Unix socket.
    ///
    /// # Errors
    /// What `getpeername(2)` says: `NotConnected` when the peer is gone.
    pub fn peer(&self) -> io::Result<Option<SocketAddr>> {
        Ok(rustix::net::getpeername(&self.0)?.and_then(internet_address))
    }

    /// Bytes that the peer's system has acknowledged since the connection began; none where that is not
    /// known, as for a Unix socket (`tcpi_bytes_acked` of `TCP_INFO`, `man 7 tcp`).
    pub fn acknowledged(&self) -> Option<u64> {
        // `struct tcp_info` of linux/tcp.h: 8 bytes, 24 words of 32 bits, two of 64, then this one.
        const ACKNOWLEDGED: usize = 120;
        let mut info = [0u8; ACKNOWLEDGED + size_of::<u64>()];
        let mut length = info.len() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to `info`, and how many into `length`.
        let result = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                info.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        let whole = result == 0 && length as usize == info.len();
        whole.then(|| info[ACKNOWLEDGED..].try_into().ok().map(u64::from_ne_bytes)).flatten()
    }

    /// Ends output and input, so that operations which wait on the socket come back.
    pub fn shut_down(&self) {
        let _ = rustix::net::shutdown(&self.0, Shutdown::Both);
    }

    /// See [`Listener::set_wait_slice`].
    ///
    /// # Errors
    /// What `setsockopt(2)` says.
    pub fn set_wait_slice(&self, slice: Duration) -> io::Result<()> {
        set_wait_slice(self.0.as_fd(), slice)
    }

    /// Its number, for a selector's registration or an operation of a ring.
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

fn send_flags(more: bool) -> SendFlags {
    if more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpStream;

    use super::*;

    const OPTIONS: ListenOptions =
        ListenOptions { backlog: 16, tcp_nodelay: true, defer_accept: false, reuse_port: false };

    fn pair() -> (TcpStream, Socket) {
        let any = ListenAddress::Internet("127.0.0.1:0".parse().expect("an address"));
        let listener = Listener::bind(&any, &OPTIONS).expect("loopback has a free port");
        let ListenAddress::Internet(at) = *listener.address() else { panic!("it is bound to a port") };
        let peer = TcpStream::connect(at).expect("it listens");
        let (socket, address) = listener.accept(false).expect("a connection waits");
        assert_eq!(address, peer.local_addr().ok());
        (peer, socket)
    }

    #[test]
    fn a_connection_inherits_its_options_even_before_anybody_accepts() {
        let (_peer, socket) = pair();
        assert!(sockopt::tcp_nodelay(&socket).expect("an option"));
        for timeout in [Timeout::Recv, Timeout::Send] {
            let slice = sockopt::socket_timeout(&socket, timeout).expect("an option");
            assert_eq!(slice, Some(FIRST_SLICE), "who waits without a bound misses every deadline");
        }
    }

    #[test]
    fn what_is_sent_arrives_and_an_end_is_no_bytes() {
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
    fn a_unix_socket_that_is_left_over_is_replaced_and_one_in_use_is_not() {
        let path = std::env::temp_dir().join(format!("tenfold-socket-{}", std::process::id()));
        let address = ListenAddress::Unix(path.clone());
        let first = Listener::bind(&address, &OPTIONS).expect("the name is free");
        let error = Listener::bind(&address, &OPTIONS).expect_err("somebody listens");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        drop(first);
        Listener::bind(&address, &OPTIONS).expect("nobody listens any more");
        std::fs::remove_file(path).expect("it was made here");
    }

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for text in ["127.0.0.1:80", "[::1]:8080", "unix:/run/site.sock"] {
            assert_eq!(text.parse::<ListenAddress>().map(|address| address.to_string()), Ok(text.into()));
        }
        for text in ["unix:", "localhost", "127.0.0.1", "80"] {
            assert!(text.parse::<ListenAddress>().is_err(), "{text}");
        }
    }
}
