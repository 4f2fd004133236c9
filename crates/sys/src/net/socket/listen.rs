//! Listening sockets: their addresses, options, and queued connections.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use rustix::fs::Mode;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use rustix::process::umask;

use super::option::{
    defer_accept, is_zerocopy_permitted, new_socket, permit_zerocopy, set_bytes, set_tcp_option,
};
use super::stream::{Socket, internet_address, set_wait_slice, wait_slice};
use super::unix;
use crate::files::identity::Identity;

/// The address of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// An address and a port, as in `127.0.0.1:8080` or `[::]:80`.
    Internet(SocketAddr),
    /// A Unix socket, as in `unix:/run/site.sock`.
    Unix(PathBuf),
}

impl ListenAddress {
    /// Whether other machines may connect.
    pub fn is_off_loopback(&self) -> bool {
        matches!(self, ListenAddress::Internet(at) if !at.ip().to_canonical().is_loopback())
    }
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
                "" => Err("unix: requires a path, as in unix:/run/site.sock".into()),
                _ => Ok(ListenAddress::Unix(path.into())),
            };
        }
        with_zone(text).or_else(|| text.parse().ok()).map(ListenAddress::Internet).ok_or_else(|| {
            match text.parse::<IpAddr>() {
                Ok(alone) => format!("{text:?} has no port; write {}", SocketAddr::new(alone, 8080)),
                Err(_) => format!("{text:?} is not an address; write 127.0.0.1:8080, [::]:80 or unix:PATH"),
            }
        })
    }
}

/// Parses `[fe80::1%eth0]:80` or, as in a URL, `[fe80::1%25eth0]:80` (RFC 6874). A zone is the name or the number of an
/// interface of this machine; None without such a zone.
fn with_zone(text: &str) -> Option<SocketAddr> {
    let (address, rest) = text.split_once('%')?;
    let (zone, port) = rest.split_once(']')?;
    let mut at: SocketAddrV6 = format!("{address}]{port}").parse().ok()?;
    let socket = new_socket(AddressFamily::INET6, SocketFlags::empty()).ok()?;
    let index = |zone: &str| name_to_index(&socket, zone).ok().or_else(|| zone.parse().ok());
    at.set_scope_id(zone.strip_prefix("25").and_then(index).or_else(|| index(zone))?);
    Some(at.into())
}

/// Options of a listening socket. Its connections inherit `tcp_nodelay`, `linger` and `notsent_lowat`; the others apply
/// only to the listener. A Unix socket has only a backlog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// The number of connections that the kernel completes ahead of `accept` (`man 2 listen`), at most
    /// `net.core.somaxconn`.
    pub backlog: i32,
    /// `TCP_NODELAY`: send small segments immediately (`man 7 tcp`).
    pub tcp_nodelay: bool,
    /// `TCP_DEFER_ACCEPT`: accept a connection when its first bytes have arrived (`man 7 tcp`).
    pub defer_accept: bool,
    /// `SO_ZEROCOPY`: permits zero-copy sends on accepted connections; TCP only ([`crate::net::zerocopy`]).
    pub zerocopy: bool,
    /// `SO_REUSEPORT`: several sockets on one address, among which the kernel spreads connections.
    pub reuse_port: bool,
    /// `TCP_FASTOPEN`: a returning client sends its request with its SYN. The value is the greatest number of such
    /// connections with an unfinished handshake.
    pub fastopen: Option<u32>,
    /// `SO_LINGER`: `close(2)` waits until sent data has been acknowledged, at most so many seconds (`man 7 socket`).
    pub linger: Option<u16>,
    /// `TCP_NOTSENT_LOWAT`: a connection is writable only while fewer unsent bytes are queued (`man 7 tcp`).
    pub notsent_lowat: Option<u32>,
}

impl Default for ListenOptions {
    /// A backlog of 4096, and nothing set.
    fn default() -> ListenOptions {
        ListenOptions {
            backlog: 4096,
            tcp_nodelay: false,
            defer_accept: false,
            zerocopy: false,
            reuse_port: false,
            fastopen: None,
            linger: None,
            notsent_lowat: None,
        }
    }
}

/// A bound and listening socket.
#[derive(Debug)]
pub struct Listener {
    pub(super) socket: OwnedFd,
    pub(super) address: ListenAddress,
    /// Of a Unix socket's file.
    file: Option<Identity>,
}

impl Listener {
    /// Binds to `address` and listens.
    ///
    /// # Errors
    /// The error of the system call: the address is in use or not local, or its port is privileged. A stale Unix socket
    /// is replaced; one in use is not. A link of another user in its path is refused:
    /// [`crate::files::location::Location::find`].
    pub fn bind(address: &ListenAddress, options: &ListenOptions) -> io::Result<Listener> {
        let (socket, file) = match address {
            ListenAddress::Internet(at) => (internet(at, options)?, None),
            ListenAddress::Unix(path) => {
                let (socket, file) = unix::bind(path)?;
                (socket, Some(file))
            }
        };
        listen(socket.as_fd(), options)?;
        let address = match address {
            ListenAddress::Internet(_) => {
                let bound = rustix::net::getsockname(&socket)?;
                ListenAddress::Internet(bound.try_into().map_err(io::Error::from)?)
            }
            ListenAddress::Unix(_) => address.clone(),
        };
        Ok(Listener { socket, address, file })
    }

    /// Checks that no socket has this address, with or without `SO_REUSEPORT`, and that the options can be set. It does
    /// not listen: a connection that arrived meanwhile would be reset when the socket is closed.
    ///
    /// # Errors
    /// The error of `bind(2)`: the address is in use or not local, or its port is privileged.
    pub fn expect_free(at: &SocketAddr, options: &ListenOptions) -> io::Result<()> {
        internet(at, &ListenOptions { reuse_port: false, ..options.clone() }).map(drop)
    }

    /// Listens on a socket that was bound outside of this process.
    pub(super) fn adopt(
        socket: OwnedFd,
        address: ListenAddress,
        options: &ListenOptions,
    ) -> io::Result<Listener> {
        listen(socket.as_fd(), options)?;
        let listener = Listener { socket, address, file: None };
        listener.set_nonblocking(false)?;
        Ok(listener)
    }

    /// Takes a listening socket that the former program of this process passed, with its options and the result of
    /// [`Listener::file`]. Workers of that program use it meanwhile, so its options do not change.
    ///
    /// # Errors
    /// It is no listening stream socket.
    pub fn inherit(socket: OwnedFd, file: Option<(u64, u64)>) -> io::Result<Listener> {
        let address = listening_address(socket.as_fd())?;
        let file = file.map(|(device, inode)| Identity { device, inode });
        Ok(Listener { socket, address, file })
    }

    /// The device and the inode of a Unix socket's file, if this server made it.
    pub fn file(&self) -> Option<(u64, u64)> {
        self.file.map(|file| (file.device, file.inode))
    }

    /// Closes the socket in a process that was forked and accepts no connection. Its number leads to standard input from
    /// here on: a close would leave a number that is still owned.
    pub fn abandon(&self) -> io::Result<()> {
        // SAFETY: no memory is passed, and the second number is this value's own and stays open. The first is open in
        // every program of Rust, whose runtime sees to that.
        let result = unsafe { libc::dup3(libc::STDIN_FILENO, self.socket.as_raw_fd(), libc::O_CLOEXEC) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Binds a Unix socket whose file has this mode from the first moment: a later chmod by name could reach another
    /// file. The umask applies to the whole process, so the process must have one thread.
    pub fn bind_with_mode(
        mode: u32,
        address: &ListenAddress,
        options: &ListenOptions,
    ) -> io::Result<Listener> {
        let before = umask(Mode::from_raw_mode(0o777 & !mode));
        let bound = Listener::bind(address, options);
        umask(before);
        bound
    }

    /// Stops listening, for every process that has this socket. It fails only if that was done before.
    pub fn shut_down(&self) {
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }

    /// The address, with the port that the system chose if none was given.
    pub fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// A second handle to the same socket, with the same queue.
    pub fn duplicate(&self) -> io::Result<Listener> {
        let (socket, address) = (self.socket.try_clone()?, self.address.clone());
        Ok(Listener { socket, address, file: self.file })
    }

    /// Removes the file of a Unix socket, unless its path now leads to something else.
    pub fn remove_file(&self) {
        if let (ListenAddress::Unix(path), Some(file)) = (&self.address, self.file) {
            unix::remove(path, file);
        }
    }

    /// Sets whether `accept` returns immediately if no connection is queued. Applies to every handle to the socket.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        Ok(rustix::io::ioctl_fionbio(&self.socket, on)?)
    }

    /// Bounds the waits of `accept`, and of every receive and send on accepted connections, to `slice` (`SO_RCVTIMEO`,
    /// `SO_SNDTIMEO`; TCP sockets inherit them).
    pub fn set_wait_slice(&self, slice: Duration) -> io::Result<()> {
        set_wait_slice(self.socket.as_fd(), slice)
    }

    /// Whether its connections may send without copying: [`ListenOptions::zerocopy`].
    pub fn permits_zerocopy(&self) -> bool {
        is_zerocopy_permitted(self.socket.as_fd())
    }

    /// Limits each connection accepted from now on to so many bytes per second (`SO_MAX_PACING_RATE`, `man 7 socket`);
    /// `None` for no limit. Only TCP obeys it; other sockets accept and ignore it.
    pub fn set_max_rate(&self, bytes: Option<u64>) -> io::Result<()> {
        let rate: libc::c_ulong = bytes.unwrap_or(libc::c_ulong::MAX);
        set_bytes(self.as_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &rate.to_ne_bytes())
    }

    /// Accepts a connection. The address is `None` for a Unix socket.
    ///
    /// # Errors
    /// The error of `accept(2)`; [`crate::errors::failure::after_accept`] classifies it.
    pub fn accept(&self, nonblocking: bool) -> io::Result<(Socket, Option<SocketAddr>)> {
        let flags =
            if nonblocking { SocketFlags::CLOEXEC | SocketFlags::NONBLOCK } else { SocketFlags::CLOEXEC };
        let (socket, peer) = rustix::net::acceptfrom_with(&self.socket, flags)?;
        Ok((socket.into(), peer.and_then(internet_address)))
    }

    /// Its number, for registration with a selector.
    pub fn number(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn listen(socket: BorrowedFd<'_>, options: &ListenOptions) -> io::Result<()> {
    // Connections inherit it on completion, which may be before their accept.
    set_wait_slice(socket, wait_slice())?;
    Ok(rustix::net::listen(socket, options.backlog)?)
}

fn internet(at: &SocketAddr, options: &ListenOptions) -> io::Result<OwnedFd> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = new_socket(family, SocketFlags::empty())?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if options.reuse_port {
        sockopt::set_socket_reuseport(&socket, true)?;
    }
    if at.is_ipv6() {
        // `[::]` means IPv6 only, so that the server listens exactly where the address says.
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    set_tcp_options(socket.as_fd(), options)?;
    rustix::net::bind(&socket, at)?;
    Ok(socket)
}

/// Sets the options of a TCP socket that may be set before and after its bind.
pub(super) fn set_tcp_options(socket: BorrowedFd<'_>, options: &ListenOptions) -> io::Result<()> {
    sockopt::set_tcp_nodelay(socket, options.tcp_nodelay)?;
    if options.zerocopy {
        permit_zerocopy(socket)?;
    }
    if options.defer_accept {
        defer_accept(socket)?;
    }
    if let Some(waiting) = options.fastopen {
        set_tcp_option(socket, libc::TCP_FASTOPEN, waiting)?;
    }
    if let Some(bytes) = options.notsent_lowat {
        set_tcp_option(socket, libc::TCP_NOTSENT_LOWAT, bytes)?;
    }
    if let Some(seconds) = options.linger {
        sockopt::set_socket_linger(socket, Some(Duration::from_secs(seconds.into())))?;
    }
    Ok(())
}

/// The address of a listening stream socket.
pub(super) fn listening_address(socket: BorrowedFd<'_>) -> io::Result<ListenAddress> {
    let kind = sockopt::socket_type(socket)
        .map_err(|error| io::Error::other(format!("it is not a socket: {}", io::Error::from(error))))?;
    if kind != SocketType::STREAM || !sockopt::socket_acceptconn(socket)? {
        return Err(io::Error::other("it is not a listening stream socket; use ListenStream="));
    }
    let name = rustix::net::getsockname(socket)?;
    if let Ok(unix) = SocketAddrUnix::try_from(name.clone()) {
        let path = unix
            .path()
            .ok_or_else(|| io::Error::other("it is a Unix socket without a path; use ListenStream=/PATH"))?;
        return Ok(ListenAddress::Unix(PathBuf::from(OsStr::from_bytes(path.to_bytes()))));
    }
    let address = internet_address(name).map(ListenAddress::Internet);
    address.ok_or_else(|| io::Error::other("it is neither a TCP nor a Unix socket"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use rustix::net::sockopt::Timeout;

    use super::*;

    fn any() -> ListenAddress {
        ListenAddress::Internet("127.0.0.1:0".parse().expect("an address"))
    }

    #[test]
    fn a_zone_is_an_interface_in_both_spellings() {
        for text in ["[fe80::1%lo]:80", "[fe80::1%25lo]:80", "[fe80::1%1]:80", "[fe80::1%251]:80"] {
            let address = text.parse::<ListenAddress>().expect(text).to_string();
            assert_eq!(address, "[fe80::1%1]:80", "{text}");
        }
        for wrong in ["[fe80::1%]:80", "[fe80::1%none0]:80", "127.0.0.1%lo:80", "[fe80::1%lo]"] {
            assert!(wrong.parse::<ListenAddress>().is_err(), "{wrong}");
        }
    }

    /// Creates a listener with these options, and a connection to it.
    fn accepted(options: &ListenOptions) -> (Listener, Socket, TcpStream) {
        let listener = Listener::bind(&any(), options).expect("loopback has a free port");
        let ListenAddress::Internet(at) = *listener.address() else { panic!("it is bound to a port") };
        let peer = TcpStream::connect(at).expect("it listens");
        let (socket, _) = listener.accept(false).expect("a connection waits");
        (listener, socket, peer)
    }

    fn tcp_option(socket: impl AsFd, option: libc::c_int) -> libc::c_int {
        let (mut value, mut length): (libc::c_int, _) = (0, size_of::<libc::c_int>() as libc::socklen_t);
        let number = socket.as_fd().as_raw_fd();
        // SAFETY: the option is an int; the pointers are those of a live one and of its length.
        let result = unsafe {
            libc::getsockopt(number, libc::IPPROTO_TCP, option, (&raw mut value).cast(), &raw mut length)
        };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
        value
    }

    #[test]
    fn a_connection_inherits_its_options_even_before_anybody_accepts() {
        let options = ListenOptions {
            tcp_nodelay: true,
            linger: Some(3),
            notsent_lowat: Some(16_384),
            ..ListenOptions::default()
        };
        let (_listener, socket, _peer) = accepted(&options);
        assert!(sockopt::tcp_nodelay(&socket).expect("an option"));
        assert_eq!(sockopt::socket_linger(&socket).expect("an option"), Some(Duration::from_secs(3)));
        assert_eq!(tcp_option(&socket, libc::TCP_NOTSENT_LOWAT), 16_384);
        for timeout in [Timeout::Recv, Timeout::Send] {
            let slice = sockopt::socket_timeout(&socket, timeout).expect("an option");
            assert_eq!(slice, Some(wait_slice()), "a wait without a bound misses every deadline");
        }
    }

    #[test]
    fn an_address_with_a_listener_is_not_free() {
        for reuse_port in [false, true] {
            let options = ListenOptions { reuse_port, ..ListenOptions::default() };
            let listener = Listener::bind(&any(), &options).expect("loopback has a free port");
            let ListenAddress::Internet(at) = *listener.address() else { panic!("it is bound to a port") };
            let used = Listener::expect_free(&at, &options).expect_err("it listens");
            assert_eq!(used.kind(), io::ErrorKind::AddrInUse);
            drop(listener);
            Listener::expect_free(&at, &options).expect("nothing listens");
        }
    }

    #[test]
    fn options_of_the_listener_are_set_on_it() {
        let options = ListenOptions { defer_accept: true, fastopen: Some(7), ..ListenOptions::default() };
        let listener = Listener::bind(&any(), &options).expect("loopback has a free port");
        assert!(tcp_option(&listener, libc::TCP_DEFER_ACCEPT) >= 1);
        assert_eq!(tcp_option(&listener, libc::TCP_FASTOPEN), 7);
        let (listener, socket, _peer) = accepted(&ListenOptions::default());
        assert_eq!(tcp_option(&listener, libc::TCP_FASTOPEN), 0);
        assert_eq!(tcp_option(&listener, libc::TCP_DEFER_ACCEPT), 0);
        assert_eq!(sockopt::socket_linger(&socket).expect("an option"), None);
    }

    /// The reason why it is set for each response: connections inherit a listener's cork and never lose it.
    #[test]
    fn a_cork_on_the_listener_is_inherited_and_on_a_connection_it_comes_off() {
        let listener = Listener::bind(&any(), &ListenOptions::default()).expect("loopback has a free port");
        sockopt::set_tcp_cork(&listener, true).expect("an option");
        let ListenAddress::Internet(at) = *listener.address() else { panic!("it is bound to a port") };
        let _peer = TcpStream::connect(at).expect("it listens");
        let (socket, _) = listener.accept(false).expect("a connection waits");
        assert!(sockopt::tcp_cork(&socket).expect("an option"));
        socket.set_cork(false).expect("an option");
        assert!(!sockopt::tcp_cork(&socket).expect("an option"));
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
