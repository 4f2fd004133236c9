//! The TLS session of a connection: records in and out, without HTTP.

use std::io::{self, BufRead, Write};

use rustls::{ClientConnection as Rustls, HandshakeKind};
use tenfold_sys::socket::Socket;

use crate::connection::judge::{ExchangeError, exchange_error};
use crate::tls::failure;

/// The most plaintext of one record (RFC 8446 §5.1).
const MOST_IN_RECORD: usize = 16 << 10;
/// The most memory for encrypted bytes that a connection keeps after a send.
const KEPT: usize = 4 << 10;

/// The TLS session of a connection.
#[derive(Debug)]
pub(crate) struct TlsSession {
    rustls: Rustls,
    /// Encrypted bytes. The first `sent` bytes are sent.
    output: Vec<u8>,
    sent: usize,
    /// Whether no byte has arrived.
    fresh: bool,
    /// Whether the server has sent close_notify.
    pub(super) closed: bool,
}

impl TlsSession {
    pub(super) fn new(rustls: Rustls) -> TlsSession {
        TlsSession { rustls, output: Vec::new(), sent: 0, fresh: true, closed: false }
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.rustls.is_handshaking()
    }

    /// The protocol that the server chose by ALPN.
    pub(super) fn protocol(&self) -> Option<&[u8]> {
        self.rustls.alpn_protocol()
    }

    /// The number of encrypted bytes in memory.
    pub(super) fn output(&self) -> usize {
        self.output.len()
    }

    /// Version and cipher suite, and whether a session was resumed, after the handshake.
    pub(super) fn result(&self) -> (String, bool) {
        let version = self.rustls.protocol_version().and_then(|version| version.as_str()).unwrap_or("TLS");
        let suite = self.rustls.negotiated_cipher_suite().map(|suite| suite.suite());
        // rustls marks the suites of TLS 1.3; the IANA registry does not.
        let cipher =
            suite.and_then(|suite| suite.as_str()).unwrap_or("unknown").replacen("TLS13_", "TLS_", 1);
        let resumed = self.rustls.handshake_kind() == Some(HandshakeKind::Resumed);
        (format!("{} {cipher}", version.replace('_', ".")), resumed)
    }

    /// Whether encrypted bytes wait for room in the socket.
    pub(super) fn has_output(&self) -> bool {
        self.rustls.wants_write() || self.sent < self.output.len()
    }

    /// Encrypts the first bytes of `plaintext`, and returns their number.
    pub(super) fn seal(&mut self, plaintext: &[u8]) -> io::Result<usize> {
        let count = self.rustls.writer().write(&plaintext[..plaintext.len().min(MOST_IN_RECORD)])?;
        self.gather()?;
        Ok(count)
    }

    fn gather(&mut self) -> io::Result<()> {
        while self.rustls.wants_write() {
            self.rustls.write_tls(&mut self.output)?;
        }
        Ok(())
    }

    /// Sends the output. Returns whether all of it was sent.
    pub(super) fn send(&mut self, socket: &Socket) -> io::Result<bool> {
        self.gather()?;
        while self.sent < self.output.len() {
            match socket.send(&self.output[self.sent..], false) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.output.clear();
        self.output.shrink_to(KEPT);
        self.sent = 0;
        Ok(true)
    }

    /// Decrypts received bytes and passes the plaintext to `arrived`.
    pub(super) fn open(
        &mut self,
        mut wire: &[u8],
        mut arrived: impl FnMut(&[u8]) -> Result<(), ExchangeError>,
    ) -> Result<(), ExchangeError> {
        let first = std::mem::take(&mut self.fresh).then_some(wire);
        while !wire.is_empty() && !self.closed {
            self.rustls.read_tls(&mut wire).map_err(|error| exchange_error(&error))?;
            let state = self.rustls.process_new_packets().map_err(|error| {
                let (kind, message) = failure(&error, self.rustls.is_handshaking(), first);
                ExchangeError::new(kind, message)
            })?;
            self.closed = state.peer_has_closed();
            let mut left = state.plaintext_bytes_to_read();
            while left > 0 {
                let mut reader = self.rustls.reader();
                let plaintext = reader.fill_buf().map_err(|error| exchange_error(&error))?;
                let count = plaintext.len();
                let result = arrived(plaintext);
                reader.consume(count);
                result?;
                left = left.saturating_sub(count);
            }
        }
        Ok(())
    }

    /// Sends close_notify if the socket has room.
    pub(super) fn end(&mut self, socket: &Socket) {
        self.rustls.send_close_notify();
        // The connection is closed in any case.
        let _ = self.send(socket);
    }
}
