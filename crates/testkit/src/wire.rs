//! A raw client, which sends exactly the given bytes and reports exactly the received bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with, sockopt};
use rustls::{AlertDescription, Error};

use crate::response::WireResponse;
use crate::seal::Seal;
use crate::time::{PATIENCE, SOON, becomes_true};

/// A connection to a server, optionally through TLS.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    layer: Option<Seal>,
    /// Whether plaintext is sent before the server's hello.
    early: bool,
    /// Whether received bytes are acknowledged immediately.
    acknowledges: bool,
    received: Vec<u8>,
    scratch: Vec<u8>,
}

/// The way the other side ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// An end of stream; through TLS, with its closing record before it.
    Closed,
    /// Through TLS: an end of stream without a closing record, so the data is incomplete.
    Cut,
    /// A reset (ECONNRESET).
    Reset,
}

/// The result of a read.
enum Came {
    Bytes,
    ConnectionEnd,
    Reset,
}

impl Wire {
    /// Connects without TLS.
    pub fn try_connect(address: SocketAddr) -> std::io::Result<Wire> {
        Wire::of_tcp(TcpStream::connect_timeout(&address, PATIENCE)?, false)
    }

    fn of_tcp(stream: TcpStream, tls: bool) -> std::io::Result<Wire> {
        stream.set_nodelay(true)?;
        Wire::of(stream, tls)
    }

    fn of(stream: TcpStream, tls: bool) -> std::io::Result<Wire> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let layer = tls.then(Seal::new);
        Ok(Wire::with(stream, layer, false, false))
    }

    fn with(stream: TcpStream, layer: Option<Seal>, early: bool, acknowledges: bool) -> Wire {
        Wire { stream, layer, early, acknowledges, received: Vec::new(), scratch: vec![0; 128 * 1024] }
    }

    /// For servers with few concurrent connections, which may serve this connection only after another ends.
    #[must_use]
    pub fn sends_early(self, early: bool) -> Wire {
        Wire { early, ..self }
    }

    /// Acknowledges received bytes immediately. A server with a small send buffer waits for acknowledgements.
    #[must_use]
    pub fn acknowledges(self) -> Wire {
        Wire { acknowledges: true, ..self }
    }

    /// The same connection with TLS.
    #[must_use]
    pub fn with_tls(self) -> Wire {
        Wire { layer: Some(Seal::new()), ..self }
    }

    /// The same connection with TLS that offers only this protocol (ALPN).
    #[must_use]
    pub fn with_protocol(self, protocol: &str) -> Wire {
        Wire { layer: Some(Seal::with_protocol(protocol)), ..self }
    }

    /// Whether it has TLS.
    pub fn has_tls(&self) -> bool {
        self.layer.is_some()
    }

    /// The same connection for plaintext, to a server that expects TLS.
    #[must_use]
    pub fn without_tls(self) -> Wire {
        Wire { layer: None, ..self }
    }

    /// Returns a handle of the connection for a thread that only writes. From then on, `self` only reads.
    #[track_caller]
    pub fn writer(&mut self) -> Wire {
        // Otherwise both handles would read the handshake.
        self.greet().expect("the handshake succeeds");
        let stream = self.stream.try_clone().expect("a descriptor is left");
        Wire::with(stream, self.layer.clone(), self.early, self.acknowledges)
    }

    /// Connects without TLS.
    #[track_caller]
    pub fn connect(address: SocketAddr) -> Wire {
        Wire::connect_over(address, false)
    }

    /// Connects, with TLS if `tls` is set.
    #[track_caller]
    pub fn connect_over(address: SocketAddr, tls: bool) -> Wire {
        let stream = TcpStream::connect_timeout(&address, PATIENCE);
        let wire = stream.and_then(|stream| Wire::of_tcp(stream, tls));
        wire.unwrap_or_else(|error| panic!("connect to {address}: {error}"))
    }

    /// Connects to a Unix socket.
    #[track_caller]
    pub fn connect_unix(path: &Path) -> Wire {
        // The calls of a TCP socket also read and write a Unix socket.
        let connected = UnixStream::connect(path).map(|stream| TcpStream::from(OwnedFd::from(stream)));
        let wire = connected.and_then(|stream| Wire::of(stream, false));
        wire.unwrap_or_else(|error| panic!("connect to {}: {error}", path.display()))
    }

    /// Connects from another address of this machine, as another client would.
    #[track_caller]
    pub fn connect_from(source: &str, to: SocketAddr) -> Wire {
        let source = SocketAddr::new(source.parse().expect("an address"), 0);
        Wire::connect_prepared(|socket| bind(socket, &source), to)
    }

    /// Connects with a receive buffer of this size, so that few unread bytes stop the server's sends.
    #[track_caller]
    pub fn connect_with_buffer(bytes: usize, to: SocketAddr) -> Wire {
        Wire::connect_prepared(|socket| sockopt::set_socket_recv_buffer_size(socket, bytes), to)
    }

    #[track_caller]
    fn connect_prepared(prepare: impl FnOnce(&OwnedFd) -> rustix::io::Result<()>, to: SocketAddr) -> Wire {
        let connect = || -> rustix::io::Result<TcpStream> {
            // Otherwise a server of another case would inherit the socket.
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
            prepare(&socket)?;
            connect(&socket, &to)?;
            Ok(socket.into())
        };
        let stream = connect().unwrap_or_else(|error| panic!("connect to {to}: {error}"));
        Wire::of_tcp(stream, false).unwrap_or_else(|error| panic!("set up a socket: {error}"))
    }

    /// The socket itself, for operations other than bytes.
    pub fn socket(&self) -> &TcpStream {
        &self.stream
    }

    /// The client's side of TLS.
    #[track_caller]
    pub fn tls(&self) -> &Seal {
        self.layer.as_ref().expect("the connection has TLS")
    }

    /// Sets the longest wait of a read.
    pub fn wait_at_most(&self, time: Duration) {
        self.stream.set_read_timeout(Some(time)).expect("a socket takes options");
    }

    /// Sets a small receive buffer, so that the server must wait for room.
    pub fn take_little(&self) {
        // If the buffer held less than one packet of the loopback, the kernel would send at the pace of
        // retransmissions.
        self.set_buffer(128 * 1024);
    }

    /// Sets a receive buffer so small that most of an answer stays in the kernel of the server. That is slow.
    pub fn take_next_to_nothing(&self) {
        self.set_buffer(8 * 1024);
    }

    fn set_buffer(&self, bytes: usize) {
        sockopt::set_socket_recv_buffer_size(&self.stream, bytes).expect("a socket takes options");
    }

    /// Sends `bytes` repeatedly while the server accepts them, at most `most` times. Returns the number of sends.
    pub fn send_while_taken(&mut self, bytes: &[u8], most: usize) -> usize {
        let time = Some(Duration::from_millis(300));
        self.stream.set_write_timeout(time).expect("a socket takes options");
        (0..most).take_while(|_| self.try_send(bytes).is_ok()).count()
    }

    /// Sends bytes as they are, without TLS.
    pub fn try_send_raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends bytes as they are, without TLS.
    #[track_caller]
    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.try_send_raw(bytes).unwrap_or_else(|error| panic!("send: {error}"));
    }

    /// Sends all of `bytes`.
    pub fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if !self.early {
            self.greet()?;
        }
        match &self.layer {
            Some(layer) => self.stream.write_all(&layer.seal(bytes))?,
            None => self.stream.write_all(bytes)?,
        }
        self.go_on_with_the_handshake();
        Ok(())
    }

    /// Reads the available bytes of a handshake. A server that does not serve this connection yet has sent nothing.
    fn go_on_with_the_handshake(&mut self) {
        if self.layer.as_ref().is_some_and(Seal::is_shaking_hands) {
            self.stream.set_nonblocking(true).expect("a socket takes options");
            // The error of a read that finds nothing describes the sockets of the whole machine.
            if self.stream.peek(&mut [0; 1]).is_ok() {
                let _ = self.fill();
            }
            self.stream.set_nonblocking(false).expect("a socket takes options");
        }
    }

    /// Performs the handshake.
    pub fn greet(&mut self) -> std::io::Result<()> {
        let Some(layer) = &self.layer else { return Ok(()) };
        self.stream.write_all(&layer.hello())?;
        while self.layer.as_ref().is_some_and(Seal::is_shaking_hands) {
            match self.fill() {
                Ok(Came::Bytes) => {}
                Ok(Came::ConnectionEnd | Came::Reset) => return Err(ErrorKind::ConnectionReset.into()),
                Err(why) => return Err(std::io::Error::other(why)),
            }
        }
        Ok(())
    }

    /// Sends all of `bytes`.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes.as_ref()).unwrap_or_else(|error| panic!("send: {error}"));
    }

    /// Sends a minimal GET request for `target`.
    #[track_caller]
    pub fn get(&mut self, target: &str) {
        self.send(request("GET", target, &[]));
    }

    /// Requests `target`, and receives the response.
    #[track_caller]
    pub fn fetch(&mut self, target: &str) -> WireResponse {
        self.get(target);
        self.response()
    }

    /// Completes the pending request ([`BEGUN`]), begins the next request, and receives the response.
    #[track_caller]
    pub fn response_between(&mut self) -> WireResponse {
        self.send([b"\r\n", BEGUN].concat());
        self.response()
    }

    /// Whether the close of the other side has arrived. Received bytes remain readable.
    #[track_caller]
    pub fn has_ended(&self) -> bool {
        self.stream.set_nonblocking(true).expect("a socket takes options");
        let peeked = self.stream.peek(&mut [0; 1]);
        self.stream.set_nonblocking(false).expect("a socket takes options");
        match peeked {
            Ok(count) => count == 0,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("the connection does not end in order: {error}"),
        }
    }

    /// Receives a response to a request other than HEAD.
    #[track_caller]
    pub fn response(&mut self) -> WireResponse {
        let head = self.head();
        self.with_body(head)
    }

    /// Receives a response to a request other than HEAD; `None` if the connection ends before it.
    #[track_caller]
    pub fn try_response(&mut self) -> Option<WireResponse> {
        let head = self.try_head()?;
        Some(self.with_body(head))
    }

    #[track_caller]
    fn with_body(&mut self, mut response: WireResponse) -> WireResponse {
        if response.has_body() {
            let length = response.promised();
            self.fill_to(length);
            response.body = self.received.drain(..length).collect();
        }
        response
    }

    /// Receives only a head: the whole response to HEAD, or the part before a body that is read separately.
    #[track_caller]
    pub fn head(&mut self) -> WireResponse {
        let mut looked_at = 0usize;
        let end = loop {
            let from = looked_at.saturating_sub(3);
            if let Some(found) = self.received[from..].windows(4).position(|four| four == b"\r\n\r\n") {
                break from + found + 4;
            }
            looked_at = self.received.len();
            self.need_more("the end of a head");
        };
        let bytes: Vec<u8> = self.received.drain(..end).collect();
        WireResponse::of_head(&bytes)
    }

    /// Receives a head; `None` if the connection ends before it.
    #[track_caller]
    pub fn try_head(&mut self) -> Option<WireResponse> {
        while self.received.is_empty() {
            if !self.has_more("a head or an end") {
                return None;
            }
        }
        Some(self.head())
    }

    /// Receives once and discards the bytes. Returns false at the end of the connection.
    #[track_caller]
    pub fn discard(&mut self) -> bool {
        let has_more = self.has_more("bytes or an end");
        self.received.clear();
        has_more
    }

    /// Receives once. Returns false at the end of the connection.
    #[track_caller]
    fn has_more(&mut self, what: &str) -> bool {
        match self.fill() {
            Ok(Came::Bytes) => true,
            Ok(Came::ConnectionEnd | Came::Reset) => false,
            Err(why) => panic!("waiting for {what}: {why}"),
        }
    }

    /// Whether no byte arrives within `time`.
    pub fn is_silent_for(&self, time: Duration) -> bool {
        self.wait_at_most(time);
        let peeked = self.stream.peek(&mut [0]);
        self.wait_at_most(PATIENCE);
        matches!(peeked, Err(error) if error.kind() == ErrorKind::WouldBlock)
    }

    /// Receives bytes and compares them with `expected`.
    #[track_caller]
    pub fn expect_body(&mut self, mut expected: &[u8]) {
        let whole = expected.len();
        while !expected.is_empty() {
            if self.received.is_empty() {
                self.need_more("a body");
            }
            let count = expected.len().min(self.received.len());
            let same = self.received[..count] == expected[..count];
            assert!(
                same,
                "the body is another between bytes {} and +{count} of {whole}",
                whole - expected.len()
            );
            self.received.drain(..count);
            expected = &expected[count..];
        }
    }

    /// Receives `count` bytes; `None` if the connection ends before them.
    #[track_caller]
    pub fn try_take(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.received.len() < count {
            match self.fill() {
                Ok(Came::Bytes) => {}
                Ok(Came::ConnectionEnd | Came::Reset) => return None,
                Err(why) => panic!("waiting for {count} bytes or an end: {why}"),
            }
        }
        Some(self.received.drain(..count).collect())
    }

    /// Receives `count` bytes.
    #[track_caller]
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        self.fill_to(count);
        self.received.drain(..count).collect()
    }

    /// Receives until the end of the connection. Returns the bytes and the kind of the end.
    #[track_caller]
    pub fn rest(&mut self) -> (Vec<u8>, ConnectionEnd) {
        loop {
            match self.fill() {
                Ok(Came::Bytes) => {}
                Ok(Came::Reset) => return (std::mem::take(&mut self.received), ConnectionEnd::Reset),
                Ok(Came::ConnectionEnd) => break,
                Err(why) => panic!("waiting for the end of the connection: {why}{}", self.shown()),
            }
        }
        let cut = self.layer.as_ref().is_some_and(|layer| !layer.is_closed());
        (std::mem::take(&mut self.received), if cut { ConnectionEnd::Cut } else { ConnectionEnd::Closed })
    }

    /// Expects an orderly end of the connection, without a further byte.
    #[track_caller]
    pub fn expect_end(&mut self) {
        let (bytes, end) = self.rest();
        assert!(bytes.is_empty(), "bytes behind the last response: {:?}", String::from_utf8_lossy(&bytes));
        assert_eq!(end, ConnectionEnd::Closed, "the connection does not end in order");
    }

    /// Expects the end of the stream, without a further byte. Through TLS, the closing record may be missing.
    #[track_caller]
    pub fn expect_end_of_stream(&mut self) {
        let (bytes, end) = self.rest();
        assert!(bytes.is_empty(), "bytes before the end: {:?}", String::from_utf8_lossy(&bytes));
        assert_ne!(end, ConnectionEnd::Reset, "the connection is reset");
    }

    /// Repeats a request until a response announces the close, and expects the end. Each response has this body.
    #[track_caller]
    pub fn expect_retirement(&mut self, target: &str, body: &[u8]) {
        becomes_true(SOON, "a response announces the close", || {
            let response = self.fetch(target);
            assert!(response.body == body, "another server answers: {}", response.head);
            response.closes()
        });
        self.expect_end();
    }

    /// Expects that this alert ends the connection, without plaintext.
    #[track_caller]
    pub fn expect_alert(&mut self, alert: AlertDescription) {
        let end = loop {
            match self.read().unwrap_or_else(|why| panic!("waiting for an alert: {why}")) {
                Came::Bytes => {}
                end => break end,
            }
        };
        assert!(matches!(end, Came::ConnectionEnd), "the connection is reset");
        assert_eq!((self.tls().error(), self.tls().is_closed()), (Some(Error::AlertReceived(alert)), false));
        assert!(self.received.is_empty(), "plaintext before the alert: {:?}", self.received);
    }

    /// Expects that the other side closes an idle connection; a closing record and a reset are allowed.
    #[track_caller]
    pub fn expect_dropped(&mut self) {
        let (bytes, _) = self.rest();
        assert!(bytes.is_empty(), "bytes on a connection at rest: {:?}", String::from_utf8_lossy(&bytes));
    }

    /// Ends the output; the input stays open.
    pub fn end_output(&mut self) {
        // Plaintext that waits for the end of a handshake precedes the end. The peer may have closed already.
        if self.layer.as_ref().is_some_and(Seal::is_shaking_hands) {
            let _ = self.greet();
        }
        if let Some(layer) = &self.layer {
            let _ = self.stream.write_all(&layer.close());
        }
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Closes the connection with a reset.
    pub fn reset(self) {
        let _ = rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO));
    }

    #[track_caller]
    fn fill_to(&mut self, length: usize) {
        while self.received.len() < length {
            self.need_more("a body");
        }
    }

    #[track_caller]
    fn need_more(&mut self, what: &str) {
        match self.fill() {
            Ok(Came::Bytes) => {}
            Ok(Came::ConnectionEnd) => panic!("the connection ended before {what} was whole{}", self.shown()),
            Ok(Came::Reset) => panic!("the connection was reset before {what} was whole{}", self.shown()),
            Err(why) => panic!("waiting for {what}: {why}{}", self.shown()),
        }
    }

    fn shown(&self) -> String {
        let start = &self.received[..self.received.len().min(300)];
        format!("; in hand {} bytes: {:?}", self.received.len(), String::from_utf8_lossy(start))
    }

    /// Receives once. Records that violate TLS and alerts are errors.
    fn fill(&mut self) -> Result<Came, String> {
        let came = self.read()?;
        match self.layer.as_ref().and_then(Seal::error) {
            Some(why) => Err(format!("a record of the server: {why}")),
            None => Ok(came),
        }
    }

    fn read(&mut self) -> Result<Came, String> {
        if self.acknowledges {
            // The option holds only for a while. A Unix socket does not have it.
            let _ = sockopt::set_tcp_quickack(&self.stream, true);
        }
        match self.stream.read(&mut self.scratch) {
            Ok(0) => Ok(Came::ConnectionEnd),
            Ok(count) => {
                let bytes = &self.scratch[..count];
                match &self.layer {
                    Some(layer) => {
                        let reply = layer.open(bytes, &mut self.received);
                        // A server may have ended after its last record.
                        let _ = self.stream.write_all(&reply);
                    }
                    None => self.received.extend_from_slice(bytes),
                }
                Ok(Came::Bytes)
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(Came::Reset),
            // A receive with a timeout is not restarted after a signal, such as the end of a child (`man 7 signal`).
            Err(error) if error.kind() == ErrorKind::Interrupted => self.read(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                Err(format!("nothing came in time{}", self.in_the_kernel()))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// The kernel's view of both ends of a TCP connection (queues, timer, retransmissions) and of the memory of all TCP
    /// sockets (`man 5 proc_pid_net`, tcp and sockstat). It distinguishes a server that sends nothing from a kernel that
    /// waits.
    fn in_the_kernel(&self) -> String {
        let [table, memory] = ["tcp", "sockstat"]
            .map(|name| std::fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default());
        // A Unix socket has no such address.
        let Ok(address) = self.stream.local_addr() else { return String::new() };
        let port = format!(":{:04X} ", address.port());
        let ends = table.lines().filter(|line| line.contains("local_address") || line.contains(&port));
        let memory = memory.lines().filter(|line| line.starts_with("TCP:"));
        ends.chain(memory).fold(String::new(), |shown, line| format!("{shown}\n{line}"))
    }
}

/// A request that lacks its last line.
pub const BEGUN: &[u8] = b"GET /1k.html HTTP/1.1\r\nHost: localhost\r\n";

/// A request with a Host and further fields, without a body.
pub fn request(method: &str, target: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n");
    for (name, value) in fields {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.into_bytes()
}
