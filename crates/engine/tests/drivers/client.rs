//! A client that controls bytes and times. Of HTTP, it only parses the end of a response.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::seal::Seal;

/// The timeout of every operation in these tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection, seen from the peer's side.
pub(crate) struct Client {
    stream: Stream,
    tls: Option<Seal>,
    /// Whether a send does not wait for the handshake.
    early: bool,
    received: Vec<u8>,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The peer ended its output.
    Ended,
    /// The connection was reset.
    Reset,
}

pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr, tls: Option<Seal>) -> Client {
        let stream = TcpStream::connect(address).expect("a server that is ready can be connected to");
        stream.set_nodelay(true).expect("a connection takes options");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout can be set");
        Client { stream: Stream::Tcp(stream), tls, early: false, received: Vec::new() }
    }

    pub(crate) fn connect_unix(path: &Path, tls: Option<Seal>) -> Client {
        let stream = UnixStream::connect(path).expect("a server that is ready can be connected to");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        Client { stream: Stream::Unix(stream), tls, early: false, received: Vec::new() }
    }

    /// Lets a send return before the handshake is over, for a server that might not serve this connection.
    pub(crate) fn sends_early(self) -> Client {
        Client { early: true, ..self }
    }

    /// The same connection for plaintext, to a server that expects TLS.
    pub(crate) fn without_tls(self) -> Client {
        Client { tls: None, ..self }
    }

    /// The client's side of TLS.
    pub(crate) fn tls(&self) -> &Seal {
        self.tls.as_ref().expect("the connection has TLS")
    }

    /// Returns a handle of the connection for a thread that only writes. From then on, `self` only reads.
    pub(crate) fn writer(&mut self) -> Client {
        // Otherwise both handles would read the handshake.
        assert!(self.greet(), "the handshake succeeds");
        let stream = match &self.stream {
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone().expect("there are descriptors")),
            Stream::Unix(stream) => Stream::Unix(stream.try_clone().expect("there are descriptors")),
        };
        Client { stream, tls: self.tls.clone(), early: self.early, received: Vec::new() }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }

    /// The local port.
    pub(crate) fn port(&self) -> u16 {
        match &self.stream {
            Stream::Tcp(stream) => stream.local_addr().expect("it is connected").port(),
            Stream::Unix(_) => panic!("a Unix socket has no port"),
        }
    }

    /// Sets a small receive buffer, so that the server must wait for room.
    pub(crate) fn take_little(&self) {
        // If the buffer held less than one packet of the loopback, the kernel would send at the pace of
        // retransmissions.
        self.take(128 * 1024);
    }

    /// Sets a receive buffer so small that most of an answer stays in the kernel of the server. That is slow.
    pub(crate) fn take_next_to_nothing(&self) {
        self.take(8 * 1024);
    }

    fn take(&self, bytes: usize) {
        rustix::net::sockopt::set_socket_recv_buffer_size(self.descriptor(), bytes)
            .expect("an option is set");
    }

    /// Sends `bytes` repeatedly while the server accepts them, at most `most` times. Returns the number of sends.
    pub(crate) fn send_while_taken(&mut self, bytes: &[u8], most: usize) -> usize {
        let time = Some(Duration::from_millis(300));
        match &self.stream {
            Stream::Tcp(stream) => stream.set_write_timeout(time),
            Stream::Unix(stream) => stream.set_write_timeout(time),
        }
        .expect("a timeout can be set");
        (0..most).take_while(|_| self.try_send(bytes)).count()
    }

    /// Sets the timeout of receives.
    pub(crate) fn be_patient_for(&self, time: Duration) {
        match &self.stream {
            Stream::Tcp(stream) => stream.set_read_timeout(Some(time)),
            Stream::Unix(stream) => stream.set_read_timeout(Some(time)),
        }
        .expect("a timeout can be set");
    }

    /// Sends `bytes`. Returns whether the server accepted them.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        if !self.early && !self.greet() {
            return false;
        }
        match self.tls.as_ref().map(|tls| tls.seal(bytes)) {
            Some(sealed) => self.try_send_raw(&sealed),
            None => self.try_send_raw(bytes),
        }
    }

    /// Sends bytes as they are, without TLS.
    pub(crate) fn try_send_raw(&mut self, bytes: &[u8]) -> bool {
        match &mut self.stream {
            Stream::Tcp(stream) => stream.write_all(bytes).is_ok(),
            Stream::Unix(stream) => stream.write_all(bytes).is_ok(),
        }
    }

    /// Performs the handshake. Returns whether it succeeded.
    pub(crate) fn greet(&mut self) -> bool {
        let Some(hello) = self.tls.as_ref().map(Seal::hello) else { return true };
        if !hello.is_empty() && !self.try_send_raw(&hello) {
            return false;
        }
        while self.tls().is_shaking_hands() {
            if !matches!(self.receive_once(), Ok(1..)) {
                return false;
            }
        }
        true
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        assert!(self.try_send(bytes), "the server takes what is sent");
    }

    /// Requests `target` on a persistent connection.
    pub(crate) fn ask(&mut self, target: &str) {
        self.send(&request(target));
    }

    pub(crate) fn get(&mut self, target: &str) -> Response {
        self.ask(target);
        self.response()
    }

    pub(crate) fn shut_down_writing(&mut self) {
        if let Some(close) = self.tls.as_ref().map(Seal::close) {
            // The server may have closed already.
            self.try_send_raw(&close);
        }
        match &self.stream {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
        .expect("a connection that is there can be shut down");
    }

    /// Resets the connection.
    pub(crate) fn reset(self) {
        let linger = Some(Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(self.descriptor(), linger).expect("an option is set");
    }

    /// Receives until plaintext arrives. Returns the number of its bytes, 0 at the end.
    pub(crate) fn receive(&mut self) -> Result<usize, End> {
        let before = self.received.len();
        loop {
            match self.receive_once() {
                Ok(1..) if self.received.len() == before => {}
                Ok(1..) => return Ok(self.received.len() - before),
                end => return end,
            }
        }
    }

    /// Receives once. Returns the number of bytes, including those without plaintext.
    pub(crate) fn receive_once(&mut self) -> Result<usize, End> {
        let mut chunk = [0; 64 * 1024];
        if matches!(self.stream, Stream::Tcp(_)) {
            // A server with a small send buffer waits for acknowledgements. The option holds only for a while, so it is
            // set again.
            let _ = rustix::net::sockopt::set_tcp_quickack(self.descriptor(), true);
        }
        let result = match &mut self.stream {
            Stream::Tcp(stream) => stream.read(&mut chunk),
            Stream::Unix(stream) => stream.read(&mut chunk),
        };
        match result {
            Ok(count) => {
                match &self.tls {
                    Some(tls) => {
                        let more = tls.open(&chunk[..count], &mut self.received);
                        if !more.is_empty() {
                            self.try_send_raw(&more);
                        }
                    }
                    None => self.received.extend_from_slice(&chunk[..count]),
                }
                Ok(count)
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Err(End::Reset),
            Err(error) => {
                let sockets = self.sockets();
                panic!("nothing came: {error}; in hand are {} bytes\n{sockets}", self.received.len())
            }
        }
    }

    /// The kernel's view of both ends of a TCP connection (queues, timer, retransmissions) and of the memory of all TCP
    /// sockets (`man 5 proc_pid_net`, tcp and sockstat). This tells a server that sends nothing from a kernel that waits.
    fn sockets(&self) -> String {
        let Stream::Tcp(_) = self.stream else { return String::new() };
        let [table, memory] = ["tcp", "sockstat"]
            .map(|name| std::fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default());
        let port = format!(":{:04X} ", self.port());
        let ends = table.lines().filter(|line| line.contains("local_address") || line.contains(&port));
        let memory = memory.lines().filter(|line| line.starts_with("TCP:"));
        ends.chain(memory).collect::<Vec<_>>().join("\n")
    }

    /// Receives, and discards the bytes.
    pub(crate) fn receive_and_forget(&mut self) -> Result<usize, End> {
        let result = self.receive();
        self.received.clear();
        result
    }

    /// Returns a response, or `None` if the connection ends instead.
    pub(crate) fn rest_or_response(&mut self) -> Option<Response> {
        match self.receive() {
            Ok(1..) => Some(self.response()),
            Ok(_) | Err(_) => None,
        }
    }

    /// Whether no byte arrives within `time`.
    pub(crate) fn is_silent_for(&mut self, time: Duration) -> bool {
        self.be_patient_for(time);
        let mut byte = [0];
        let result = match &mut self.stream {
            Stream::Tcp(stream) => stream.peek(&mut byte),
            Stream::Unix(stream) => stream.read(&mut byte),
        };
        self.be_patient_for(PATIENCE);
        matches!(result, Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    pub(crate) fn exactly(&mut self, count: usize) -> Vec<u8> {
        while self.received.len() < count {
            let before = self.received.len();
            assert_ne!(self.receive(), Ok(0), "the end came after {before} of {count} bytes");
            assert_ne!(self.received.len(), before, "a reset came after {before} of {count} bytes");
        }
        let rest = self.received.split_off(count);
        std::mem::replace(&mut self.received, rest)
    }

    pub(crate) fn head(&mut self) -> String {
        let end = loop {
            let found = self.received.windows(4).position(|four| four == b"\r\n\r\n");
            match found {
                Some(at) => break at + 4,
                None => assert!(matches!(self.receive(), Ok(1..)), "an end came instead of a response"),
            }
        };
        String::from_utf8(self.exactly(end)).expect("a head is text")
    }

    pub(crate) fn response(&mut self) -> Response {
        let head = self.head();
        let status = head[9..12].parse().expect("a status is a number");
        let body = self.exactly(length(&head));
        Response { status, head, body }
    }

    /// Reads to the end of the connection. Returns the plaintext and the kind of end.
    pub(crate) fn rest(&mut self) -> (Vec<u8>, End) {
        let end = loop {
            match self.receive() {
                Ok(0) => break End::Ended,
                Ok(_) => {}
                Err(end) => break end,
            }
        };
        (std::mem::take(&mut self.received), end)
    }

    /// Asserts that the connection ends here in order, without further bytes.
    pub(crate) fn ends(&mut self) {
        let (rest, end) = self.rest();
        assert_eq!((String::from_utf8_lossy(&rest).as_ref(), end), ("", End::Ended));
    }
}

/// A request whose head has at least 64 bytes.
pub(crate) fn request(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: driver-tests\r\n\r\n").into_bytes()
}

pub(crate) fn length(head: &str) -> usize {
    let line = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    line.and_then(|value| value.parse().ok()).expect("every response here has a length")
}
