//! Listening sockets that a service manager opened and passed to this process (`man 3 sd_listen_fds`).

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use super::listen::{ListenAddress, ListenOptions, Listener, listening_address, set_tcp_options};
use super::option::refuse_descriptors;
use crate::process::exec;

/// The number of the first passed descriptor (`SD_LISTEN_FDS_START`).
const FIRST: RawFd = 3;

/// A listening stream socket that was opened outside of this process.
#[derive(Debug)]
pub struct PassedSocket {
    socket: OwnedFd,
    address: ListenAddress,
}

impl PassedSocket {
    /// Takes the descriptor at `place`, counted from 0. It is closed on exec from now on.
    ///
    /// # Errors
    /// No descriptor was passed there, it was taken before, or it is not a listening stream socket with an address.
    pub fn take(place: u16) -> io::Result<PassedSocket> {
        let socket = exec::inherit(FIRST + RawFd::from(place))?;
        let address = listening_address(socket.as_fd())?;
        Ok(PassedSocket { socket, address })
    }

    /// Its address.
    pub fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// Its descriptor.
    pub fn number(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Sets the options of a listener on it, and its backlog. The service manager still owns the file of a Unix socket.
    pub fn listen(self, options: &ListenOptions) -> io::Result<Listener> {
        match self.address {
            ListenAddress::Internet(_) => set_tcp_options(self.socket.as_fd(), options)?,
            ListenAddress::Unix(_) => refuse_descriptors(&self.socket),
        }
        Listener::adopt(self.socket, self.address, options)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn only_inherited_descriptors_are_taken() {
        // Every descriptor of the test program is closed on exec.
        let own = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let place = u16::try_from(own.as_raw_fd() - FIRST).expect("it is above the standard streams");
        let error = PassedSocket::take(place).expect_err("it has an owner");
        assert_eq!(error.to_string(), "it was not passed to this program");
        assert!(PassedSocket::take(u16::MAX).is_err(), "no descriptor has this number");
    }

    #[test]
    fn only_listening_stream_sockets_have_an_address() {
        let tcp = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let expected = ListenAddress::Internet(tcp.local_addr().expect("it is bound"));
        assert_eq!(listening_address(tcp.as_fd()).expect("it listens"), expected);
        let path = std::env::temp_dir().join(format!("tenfold-passed-{}", std::process::id()));
        let unix = UnixListener::bind(&path).expect("a temporary folder");
        assert_eq!(listening_address(unix.as_fd()).expect("it listens"), ListenAddress::Unix(path.clone()));
        std::fs::remove_file(path).expect("our own file");
        let datagrams = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
        let (stream, _peer) = UnixStream::pair().expect("descriptors");
        let file = std::fs::File::open("/dev/null").expect("Linux has it");
        for (other, why) in [
            (datagrams.as_fd(), "ListenStream="),
            (stream.as_fd(), "ListenStream="),
            (file.as_fd(), "not a socket"),
        ] {
            let error = listening_address(other).expect_err("it is no listener");
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
