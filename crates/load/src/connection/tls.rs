//! TLS of a connection: records between the socket and HTTP.

use std::io::{self, BufRead, Write};

use rustls::{ClientConnection as Rustls, HandshakeKind};
use tenfold_sys::socket::Socket;

use super::{ClientConnection, ConnectionState, IoProgress, WorkerContext};
use crate::connection::judge::{ExchangeError, exchange_error};
use crate::measure::record::ErrorKind;
use crate::tls::{TlsTarget, failure};

/// The most plaintext of one record (RFC 8446 §5.1).
const MOST_IN_RECORD: usize = 16 << 10;
/// The encrypted bytes from which on no more requests are encrypted before a send.
const ENOUGH: usize = 64 << 10;
/// The most memory for encrypted bytes that a connection keeps after a send.
const KEPT: usize = 4 << 10;

/// The TLS session of a connection.
#[derive(Debug)]
pub(crate) struct TlsSession {
    rustls: Rustls,
    /// Encrypted bytes, sent up to `sent`.
    output: Vec<u8>,
    sent: usize,
    /// No byte has arrived.
    fresh: bool,
    /// The server has sent close_notify.
    pub(super) closed: bool,
}

impl TlsSession {
    /// Whether encrypted bytes wait for room in the socket.
    pub(super) fn has_output(&self) -> bool {
        self.rustls.wants_write() || self.sent < self.output.len()
    }

    /// Encrypts the first bytes of `plaintext`, and returns their number.
    fn seal(&mut self, plaintext: &[u8]) -> io::Result<usize> {
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
    fn send(&mut self, socket: &Socket) -> io::Result<bool> {
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

    /// Decrypts received bytes, and passes their plaintext on.
    fn open(
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

    /// Sends close_notify, as far as the socket has room.
    fn end(&mut self, socket: &Socket) {
        self.rustls.send_close_notify();
        // The connection is closed in any case.
        let _ = self.send(socket);
    }
}

impl ClientConnection {
    /// Begins a handshake on an established connection.
    ///
    /// # Errors
    /// The error of rustls or of `send(2)`.
    pub(crate) fn begin_handshake(&mut self, target: &TlsTarget, now: u64) -> Result<(), ExchangeError> {
        let rustls = target.connect().map_err(|error| {
            ExchangeError::new(ErrorKind::Tls, format!("cannot begin a TLS handshake: {error}"))
        })?;
        let mut tls = TlsSession { rustls, output: Vec::new(), sent: 0, fresh: true, closed: false };
        self.state = ConnectionState::Handshaking(now);
        if let Some(socket) = &self.socket {
            tls.send(socket).map_err(|error| exchange_error(&error))?;
        }
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    /// Version and cipher suite, and whether a session was resumed, after the handshake.
    pub(crate) fn handshake_result(&self) -> Option<(String, bool)> {
        let rustls = &self.tls.as_ref().filter(|tls| !tls.rustls.is_handshaking())?.rustls;
        let version = rustls.protocol_version().and_then(|version| version.as_str()).unwrap_or("TLS");
        let suite = rustls.negotiated_cipher_suite().map(|suite| suite.suite());
        // rustls marks the suites of TLS 1.3; the IANA registry does not.
        let cipher =
            suite.and_then(|suite| suite.as_str()).unwrap_or("unknown").replacen("TLS13_", "TLS_", 1);
        let resumed = rustls.handshake_kind() == Some(HandshakeKind::Resumed);
        Some((format!("{} {cipher}", version.replace('_', ".")), resumed))
    }

    /// Whether encrypted bytes wait for room in the socket.
    #[inline]
    pub(crate) fn has_output(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_output())
    }

    /// Encrypts and sends at most `most` queued bytes, behind the output that waits.
    pub(super) fn flush_tls(
        &mut self,
        context: &mut WorkerContext<'_>,
        now: u64,
        most: usize,
    ) -> io::Result<IoProgress> {
        let Some(mut tls) = self.tls.take() else { return Ok(IoProgress::Blocked) };
        let result = self.flush_through(&mut tls, context, now, most);
        self.tls = Some(tls);
        result
    }

    fn flush_through(
        &mut self,
        tls: &mut TlsSession,
        context: &mut WorkerContext<'_>,
        now: u64,
        most: usize,
    ) -> io::Result<IoProgress> {
        let mut left = most;
        loop {
            while self.state == ConnectionState::Open
                && self.has_unsent()
                && left > 0
                && tls.output.len() < ENOUGH
            {
                let count = tls.seal(self.waiting(context, left))?;
                left -= count;
                self.advance(count, context, now);
            }
            let Some(socket) = &self.socket else { return Ok(IoProgress::Blocked) };
            if !tls.send(socket)? || self.state != ConnectionState::Open {
                return Ok(IoProgress::Blocked);
            }
            if !self.has_unsent() {
                return Ok(IoProgress::All);
            }
            if left == 0 {
                return Ok(IoProgress::Limited);
            }
        }
    }

    /// Decrypts and parses received bytes.
    ///
    /// # Errors
    /// The reason, if they break TLS or HTTP.
    pub(super) fn arrived_sealed(
        &mut self,
        wire: &[u8],
        context: &mut WorkerContext<'_>,
        now: u64,
    ) -> Result<(), ExchangeError> {
        let Some(mut tls) = self.tls.take() else { return Ok(()) };
        let result = tls.open(wire, |plaintext| self.arrived(plaintext, context, now));
        // A flight of the handshake, or the alert of an error. The last flight leaves together with the first request.
        if let Some(socket) = self.socket.as_ref().filter(|_| result.is_err() || tls.rustls.is_handshaking())
        {
            // A receive reports a broken connection.
            let _ = tls.send(socket);
        }
        self.tls = Some(tls);
        result
    }

    /// Ends the session, orderly if `orderly`.
    pub(crate) fn end_tls(&mut self, orderly: bool) {
        if let (Some(mut tls), Some(socket)) = (self.tls.take(), &self.socket)
            && orderly
        {
            tls.end(socket);
        }
    }
}
