//! Listening sockets that several processes have: one gives them up, and one notices that another shut them down,
//! and lets them listen again.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

use super::listen::{ListenAddress, Listener};
use super::stream::dissolve;
use crate::readiness::wait;

impl Listener {
    /// Gives the socket up in a process that was forked and accepts nothing: code in it cannot shut it down for the
    /// others. Its number leads to standard input from here on. A close would leave a number that is still owned.
    ///
    /// # Errors
    /// The error of `dup3(2)`.
    pub fn abandon(&self) -> io::Result<()> {
        // SAFETY: no memory is passed, and the second number is this value's own and stays open. The first is open in
        // every program of Rust, whose runtime sees to that.
        let result = unsafe { libc::dup3(libc::STDIN_FILENO, self.socket.as_raw_fd(), libc::O_CLOEXEC) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Whether it was shut down, or made a connection: nobody can connect.
    pub fn is_shut_down(&self) -> bool {
        wait::is_shut_down(self.socket.as_fd())
    }

    /// Lets a TCP socket that was shut down or connected listen again, for every process that has it. It keeps its
    /// options, and its port unless the system chose that: then it is bound again. A Unix socket stays shut down
    /// (`unix_shutdown` in net/unix/af_unix.c), and another has to be bound.
    ///
    /// # Errors
    /// The error of `bind(2)` or `listen(2)`: the port was taken meanwhile.
    pub fn listen_again(&self, backlog: i32) -> io::Result<()> {
        if let ListenAddress::Internet(at) = &self.address {
            // If that fails, so does `listen(2)`.
            dissolve(self.socket.as_fd());
            match rustix::net::bind(&self.socket, at) {
                // It has kept its port. What `getsockname(2)` tells does not show that. Without the right to bind a port
                // below 1024 the kernel says that first: such a port was chosen by its number, and is kept.
                Err(Errno::INVAL | Errno::ACCESS) => {}
                bound => bound?,
            }
        }
        Ok(rustix::net::listen(&self.socket, backlog)?)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use rustix::net::{Shutdown, shutdown, sockopt};

    use super::*;
    use crate::net::socket::{ListenOptions, Socket};

    #[test]
    fn h94_a_tcp_socket_that_was_shut_down_listens_again_at_its_port() {
        const KEPT: Duration = Duration::from_secs(77);
        for (reuse_port, dissolves) in [(false, false), (true, false), (false, true), (true, true)] {
            let options = ListenOptions { reuse_port, ..ListenOptions::default() };
            let listener = Listener::bind(&"127.0.0.1:0".parse().expect("an address"), &options)
                .expect("loopback has a free port");
            let ListenAddress::Internet(at) = *listener.address() else { panic!("it is bound to a port") };
            sockopt::set_tcp_keepidle(&listener, KEPT).expect("an option");
            assert!(!listener.is_shut_down());
            match dissolves {
                true => Socket::from(listener.socket.try_clone().expect("a descriptor is left")).reset(),
                false => listener.shut_down(),
            }
            assert!(listener.is_shut_down() && TcpStream::connect(at).is_err());
            let (socket, address) = (listener.socket.try_clone(), listener.address().clone());
            let socket = socket.expect("a descriptor is left");
            let inherited = Listener::inherit(socket, address, None).expect("it is a stream socket");
            inherited.listen_again(16).expect("its port is free");
            assert!(!listener.is_shut_down());
            assert_eq!(sockopt::tcp_keepidle(&listener).expect("an option"), KEPT);
            let _peer = TcpStream::connect(at).expect("it listens");
        }
    }

    /// Services without this capability get such a port from their manager.
    #[test]
    fn h94_a_privileged_port_listens_again_without_the_right_to_bind_it() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        // No other process listens at this address of loopback.
        let [_, own @ ..] = std::process::id().to_be_bytes();
        let at = SocketAddr::from(([127, own[0] | 0x40, own[1], own[2]], 894));
        let address = ListenAddress::Internet(at);
        let listener = Listener::bind(&address, &ListenOptions::default()).expect("this is root");
        listener.shut_down();
        // Capabilities belong to a thread.
        let revived = std::thread::spawn(move || {
            crate::process::user::drop_capabilities().expect("this is root");
            let listens = listener.listen_again(16);
            (listens, listener)
        });
        let (listens, listener) = revived.join().expect("no panic");
        listens.expect("it has kept its port");
        assert!(!listener.is_shut_down());
        TcpStream::connect(at).expect("it listens");
    }

    #[test]
    fn h94_a_tcp_socket_that_was_connected_listens_again_at_its_port() {
        let elsewhere = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let to = elsewhere.local_addr().expect("it is bound");
        let listener = Listener::bind(&"127.0.0.1:0".parse().expect("an address"), &ListenOptions::default());
        let listener = listener.expect("loopback has a free port");
        let ListenAddress::Internet(port) = *listener.address() else { panic!("it is bound to a port") };
        for ends in [false, true] {
            listener.shut_down();
            rustix::net::connect(&listener, &to).expect("somebody listens there");
            let (peer, _) = elsewhere.accept().expect("it is connected");
            assert!(listener.is_shut_down());
            // The watch ends at once, and not after the hour.
            let hour = Duration::from_secs(3600);
            wait::for_input_or_shutdown(&[], &[listener.as_fd()], Some(hour)).expect("a wait");
            let _peer = if ends { None } else { Some(peer) };
            listener.listen_again(16).expect("its port is free");
            assert!(!listener.is_shut_down());
            let _client = TcpStream::connect(port).expect("it listens");
        }
    }

    #[test]
    fn h94_a_unix_socket_that_was_shut_down_is_noticed_and_its_name_can_be_bound_again() {
        let path = std::env::temp_dir().join(format!("tenfold-again-{}", std::process::id()));
        let address = ListenAddress::Unix(path.clone());
        let first = Listener::bind(&address, &ListenOptions::default()).expect("the name is free");
        assert!(!first.is_shut_down());
        for how in [Shutdown::Write, Shutdown::Read] {
            shutdown(&first, how).expect("it is a socket");
            let connects = UnixStream::connect(&path).is_ok();
            assert_eq!(first.is_shut_down(), !connects, "{how:?}");
        }
        assert!(first.is_shut_down());
        let second = Listener::bind(&address, &ListenOptions::default()).expect("nobody listens any more");
        first.remove_file();
        UnixStream::connect(&path).expect("another's file stays");
        second.remove_file();
    }
}
